"""Extensions of ours (A2A 1.0 §4.6): what callers may ask for beside the operations."""

from collections.abc import Iterable

from dragoman.model.card import Extension

IDEMPOTENCY = Extension(
    uri="urn:dragoman:ext:idempotency:v1",
    description="A message sent again under its messageId is the same message: it is accepted once.",
)


def activated(requested: Iterable[str], declared: Iterable[Extension]) -> tuple[str, ...]:
    """Return those of the requested extension URIs that an agent declares, in the order of the request."""
    known = {extension.uri for extension in declared}
    return tuple(dict.fromkeys(uri for uri in requested if uri in known))
