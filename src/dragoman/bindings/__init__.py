"""Bindings: bytes to requests and replies to bytes. HTTP+JSON, JSON-RPC, event streams, and the fixed endpoints."""
