"""Server-sent events (WHATWG HTML §9.2)."""

from dragoman.protocol.media import EVENT_STREAM

HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-type", EVENT_STREAM.encode()),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)

# Without an empty line after it: some readers take that for the end of an event without data, once an id was seen.
KEEP_ALIVE = b": keep-alive\n"
FAREWELL = b": the server is stopping\n"

# Clients that split lines as Unicode has it would break a frame at these; escaped they mean the same in JSON.
_BREAKS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


def one_line(text: bytes) -> bytes:
    """Return JSON text in which nothing can be taken for the end of a line."""
    for character, escape in _BREAKS:
        if character in text:
            text = text.replace(character, escape)
    return text


def frame(data: bytes, *, event_id: int | None = None, event: bytes | None = None) -> bytes:
    """Return one event; `data` is JSON text on one line."""
    head = b""
    if event is not None:
        head += b"event: " + event + b"\n"
    if event_id is not None:
        head += b"id: %d\n" % event_id
    return head + b"data: " + data + b"\n\n"


def last_event(value: bytes | None) -> int | None:
    """Return the sequence number in a Last-Event-ID header; anything that is none counts as absent."""
    return int(value) if value is not None and value.isdigit() and len(value) < 16 else None
