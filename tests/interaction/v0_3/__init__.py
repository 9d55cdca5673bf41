"""What the server promises callers of A2A 0.3: headerless interface, alias, official HTTP+JSON, JSON-RPC.

Seed A's own conformance harness targets its headerless 0.3 interface; it is not published. This suite is our
reconstruction of what it must hold, from the seed, the standard and the clients, and not an upstream kit.

Everything that needs 0.3 lives in folders named `v0_3`: without them and `protocol/v0_3` all else stays green.
"""
