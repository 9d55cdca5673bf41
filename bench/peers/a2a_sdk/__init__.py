"""The peer a2a-sdk: `python -m bench.peers.a2a_sdk.echo`."""
