"""What is in deploy/: the files, and the fleet that they describe."""
