"""What is about the PostgreSQL store alone."""
