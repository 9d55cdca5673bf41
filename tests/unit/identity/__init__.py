"""Tests of who is let in."""
