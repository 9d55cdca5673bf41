"""Stores: where tasks, runs and events live. Each folder implements the ports of `dragoman.gateway.ports`."""
