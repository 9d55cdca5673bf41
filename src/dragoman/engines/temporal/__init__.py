"""Temporal as the engine: it decides when and where a run is executed; the store decides what became of it."""
