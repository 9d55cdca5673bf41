"""Remote agents: their registration, and what is delegated to them."""
