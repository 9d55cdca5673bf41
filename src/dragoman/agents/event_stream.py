"""Reading server-sent events (WHATWG HTML §9.2), whatever pieces they come in."""

import re

MAX_EVENT = 1024 * 1024
"""Bytes of one event."""

_LINE_END = re.compile(rb"\r\n|\r|\n")
_MARK = b"\xef\xbb\xbf"


class EventTooLarge(Exception):
    """An event, or a line, has more bytes than it may."""


class EventStream:
    """Takes a stream apart into the data of its events; their names and ids are not told."""

    def __init__(self, largest: int = MAX_EVENT) -> None:
        """Begin with nothing; an event may have `largest` bytes."""
        self._largest = largest
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._after_return = False
        self._begun = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of the events that this piece of the stream completes, their lines joined by a newline.

        An event that the stream ends in is none: nothing tells whether it is whole.

        Raises:
            EventTooLarge.
        """
        if not piece:
            return []
        if self._after_return and piece.startswith(b"\n"):
            # The second half of a line's end, which came with the piece before.
            piece = piece[1:]
        self._after_return = piece.endswith(b"\r")
        *ended, rest = _LINE_END.split(piece)
        found = []
        for end in ended:
            self._line += end
            line = bytes(self._line)
            self._line.clear()
            if self._take(line):
                found.append(b"\n".join(self._data))
                self._data, self._size = [], 0
        self._line += rest
        if self._size + len(self._line) > self._largest:
            raise EventTooLarge
        return found

    def _take(self, line: bytes) -> bool:
        """Take one line; return whether it ends an event that has data."""
        if not self._begun:
            self._begun, line = True, line.removeprefix(_MARK)
        if not line:
            return bool(self._data)
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size += len(value)
            if self._size > self._largest:
                raise EventTooLarge
        return False
