"""One module a scenario (the closed loops share one): each takes a `Session` and gives samples."""
