"""Tests of what agent authors touch."""
