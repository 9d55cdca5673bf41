"""Streams of events are read the same whatever pieces they come in."""

import pytest

from dragoman.agents.event_stream import MAX_EVENT, EventStream, EventTooLarge

STREAMS: list[tuple[bytes, list[bytes]]] = [
    (b"data: one\n\ndata: two\n\n", [b"one", b"two"]),
    (b"data: one\r\n\r\ndata: two\r\n\r\n", [b"one", b"two"]),
    (b"data: one\r\rdata: two\r\r", [b"one", b"two"]),
    (b"data: one\r\n\ndata: two\n\r\n", [b"one", b"two"]),
    (b"data: a\ndata: b\r\ndata\rdata:  c\n\n", [b"a\nb\n\n c"]),
    (b": comment\n\n:\n\nevent: x\nid: 5\nretry: 9\ndata:one\n\n", [b"one"]),
    (b"event: x\n\nunknown\n\ndata: one\n\n", [b"one"]),
    (b"\xef\xbb\xbfdata: one\n\n", [b"one"]),
    (b"data: \xef\xbb\xbfone\n\n", [b"\xef\xbb\xbfone"]),
    (b"data: one\n\ndata: half\n", [b"one"]),
    (b"data:\n\n", [b""]),
    (b"\n\n\r\ndatum: x\n\n", []),
    ("data: é\u2028\x85\n\n".encode(), ["é\u2028\x85".encode()]),
]


@pytest.mark.parametrize(("stream", "events"), STREAMS)
def test_a_stream_is_the_same_in_pieces_of_any_size(stream: bytes, events: list[bytes]) -> None:
    for size in range(1, len(stream) + 1):
        reader = EventStream()
        pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
        assert [event for piece in pieces for event in (*reader.feed(piece), *reader.feed(b""))] == events


def test_an_event_is_bounded_however_it_grows() -> None:
    fits = EventStream()
    assert fits.feed(b"data: " + b"x" * (MAX_EVENT - 8) + b"\n\n") == [b"x" * (MAX_EVENT - 8)]
    for piece in (b"x" * 1000, b"data: " + b"x" * 1000 + b"\n"):
        with pytest.raises(EventTooLarge):
            _feed(piece, 2 * MAX_EVENT // 1000)


def test_the_bound_of_an_event_can_be_another() -> None:
    assert EventStream(20).feed(b"data: 12345\n\n") == [b"12345"]
    with pytest.raises(EventTooLarge):
        EventStream(20).feed(b"data: " + b"1" * 20)


def _feed(piece: bytes, times: int) -> None:
    reader = EventStream()
    for _ in range(times):
        reader.feed(piece)
