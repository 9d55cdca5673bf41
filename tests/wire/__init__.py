"""Golden files of each protocol version, and properties of the round trips between wire, model and storage."""
