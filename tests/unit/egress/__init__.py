"""Where requests may go, and how they get there."""
