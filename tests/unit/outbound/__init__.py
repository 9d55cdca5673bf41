"""What the server sends of its own accord."""
