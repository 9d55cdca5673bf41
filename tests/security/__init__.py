"""Tests of who is let in, to what, and what nobody learns."""
