"""Upstream conformance kits, run on the conformance agents. No registry has them: checkouts are named by variables."""
