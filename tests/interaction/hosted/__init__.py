"""The hosted profile: what its callers are promised, clause by clause."""
