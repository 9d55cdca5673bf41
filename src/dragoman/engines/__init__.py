"""Engines: ways of getting runs executed. Each implements `gateway.ports.Engine`."""
