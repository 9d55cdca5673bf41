"""Tests of the gateway against a store in memory and an engine that does as it is told."""
