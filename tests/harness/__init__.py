"""Real processes for tests: the Dragoman server (`server`), other people's A2A clients (`clients`), raw HTTP (`wire`).

Nothing here imports pytest, so benchmarks and scripts may use it too.
"""
