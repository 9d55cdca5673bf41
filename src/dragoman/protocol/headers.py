"""Request headers as plain data."""

from collections.abc import Iterable


class Headers:
    """The headers of one request, names in lower case."""

    __slots__ = ("_first", "_repeated")

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._first: dict[bytes, bytes] = {}
        self._repeated: dict[bytes, list[bytes]] | None = None
        first = self._first
        for name, value in pairs:
            if name in first:
                if self._repeated is None:
                    self._repeated = {}
                self._repeated.setdefault(name, [first[name]]).append(value)
            else:
                first[name] = value

    def get(self, name: bytes) -> bytes | None:
        """Return the first header of a name, or `None`."""
        return self._first.get(name)

    def joined(self, name: bytes) -> bytes | None:
        """Return all headers of a name as the one list that they stand for (RFC 9110 §5.3), or `None`."""
        if self._repeated is not None and name in self._repeated:
            return b", ".join(self._repeated[name])
        return self._first.get(name)

    def all(self, name: bytes) -> list[bytes]:
        """Return every header of a name, in order."""
        if self._repeated is not None and name in self._repeated:
            return self._repeated[name]
        value = self._first.get(name)
        return [] if value is None else [value]
