"""One folder a peer: its server and its locked requirements.

A peer's server runs in an environment of its own under `.cache/bench/`, so it
imports nothing of Dragoman and of `bench` only `bench.peers.announced`.

The lock files are made in a peer's folder, after a change of `requirements.in` or
`package.json`, with

    uv pip compile --universal --generate-hashes --python-version 3.11 \\
        requirements.in -o requirements.lock
    npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved
"""
