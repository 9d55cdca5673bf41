"""Unmodified clients of other people against a real server process; their environments come from `clients/`."""
