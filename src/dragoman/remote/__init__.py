"""Agents of other people, served as ours: their cards mirrored, their tasks followed, their words passed on."""
