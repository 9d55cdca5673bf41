"""What must survive: kill -9, freezes, restarts, dropped callers, blocked handlers. Real server processes only."""
