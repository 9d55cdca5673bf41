"""What can be the matter with a store before anybody is served from it."""


class StoreError(Exception):
    """The store cannot be used; the message says why and what to do."""


class StoreBusy(StoreError):
    """Another process is writing to the store, for longer than a write should take."""
