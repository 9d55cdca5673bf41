"""Tests of the engines' parts, without loops and stores."""
