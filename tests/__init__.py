"""The tests of Dragoman. CONTRIBUTING.md says which folder holds what."""
