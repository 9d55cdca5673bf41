"""Engines: ways of getting runs executed. Each implements `gateway.ports.Engine`."""

from dragoman.engines.embedded import EmbeddedEngine

__all__ = ["EmbeddedEngine"]
