"""What the tests of durability need of A2A 0.3."""
