"""The benchmark: Dragoman and its peers, loaded in turn on one machine.

Run it with `./dev bench SCENARIO`, which is `python -m bench SCENARIO` in the
project's environment. Nothing is imported here: the peers' servers live in
`bench.peers` and run in environments of their own, without Dragoman's packages.
"""
