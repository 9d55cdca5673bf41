"""What the server sends of its own accord: push notifications, and the secrets that they need."""
