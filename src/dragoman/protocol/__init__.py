"""The wire, pure: negotiation, media types, ProtoJSON, JSON-RPC, and one folder for each protocol version.

Nothing here does I/O. A version folder exports one `SPEC`; `registry` finds the folders.
"""
