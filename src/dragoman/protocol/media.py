"""Media types of requests and replies (A2A 1.0.1 §11.1)."""

from collections.abc import Sequence

from dragoman.model.errors import UnsupportedMediaType

JSON = "application/json"
A2A_JSON = "application/a2a+json"
EVENT_STREAM = "text/event-stream"
PROBLEM_JSON = "application/problem+json"


def essence(value: bytes) -> str:
    """Return a media type without its parameters, in lower case."""
    return value.partition(b";")[0].strip().lower().decode("latin-1")


def check_content_type(value: bytes | None, known: Sequence[str]) -> str | None:
    """Return the media type of a request's body, or `None` if it names none.

    Raises:
        UnsupportedMediaType: it is not among `known`.
    """
    if value is None:
        return None
    if value == b"application/json":
        return JSON
    media_type = essence(value)
    if media_type not in known:
        raise unsupported(known)
    return media_type


def unsupported(known: Sequence[str]) -> UnsupportedMediaType:
    """Return the refusal of a body's media type."""
    return UnsupportedMediaType(f"The body must have the Content-Type {' or '.join(known)}")


def accepts(accept: bytes | None, media_types: Sequence[str]) -> bool:
    """Tell whether an Accept header (or its absence) allows one of `media_types`."""
    if not accept or accept == b"*/*":
        return True
    return any(_allows(accept, media_type) for media_type in media_types)


def names(accept: bytes | None, media_type: str) -> bool:
    """Tell whether an Accept header names exactly `media_type`."""
    return accept is not None and any(
        name == media_type and quality > 0 for name, quality in _preferences(accept)
    )


def _allows(accept: bytes, media_type: str) -> bool:
    """The most specific range that fits decides (RFC 9110 §12.5.1)."""
    kind = media_type.partition("/")[0]
    best, quality = -1, 0.0
    for name, weight in _preferences(accept):
        rank = 2 if name == media_type else 1 if name == f"{kind}/*" else 0 if name == "*/*" else -1
        if rank > best:
            best, quality = rank, weight
    return quality > 0


def _preferences(accept: bytes) -> list[tuple[str, float]]:
    found = []
    for item in accept.decode("latin-1").lower().split(","):
        name, *parameters = [piece.strip() for piece in item.split(";")]
        quality = 1.0
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip() == "q":
                try:
                    quality = float(value)
                except ValueError:
                    quality = 0.0
        if name:
            found.append((name, quality))
    return found
