"""The journal of a run: what its handler did at its points, so that it goes the same way when it is entered again.

Points are counted in the order in which the handler comes to them, and so are its acts. A handler that comes to another
point than the journal tells of, or to the same after more or fewer acts, is not the one that was entered before.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import Struct

from dragoman.gateway.ports import JournalEntry
from dragoman.model import ArtifactChunk, Change
from dragoman.model.errors import IllegalChange

_PERFORMING: ContextVar[list[ArtifactChunk] | None] = ContextVar("_PERFORMING", default=None)
"""Set if this code is what a step performs: it is done again with its step, or not at all. Holds what the step gives,
where that is not committed but gathered."""


class JournalMismatch(Exception):
    """The handler does not do what its journal says it did: nothing is guessed, the run fails."""


class JournalPoint(Struct, frozen=True):
    """A point at which a handler does something once, and what is `known` of it from an earlier entry."""

    ordinal: int
    kind: str
    name: str
    acts: int
    known: JournalEntry | None


class Journal:
    """Follows a handler from its start.

    Attributes:
        mismatch: how the handler left the way that the journal tells of, if it did. It stays, because a handler that
            takes it for some error of its own must not go on by guessing.
    """

    __slots__ = ("_acts", "_entries", "_points", "_replayed", "mismatch")

    def __init__(self) -> None:
        self.mismatch: JournalMismatch | None = None
        self._entries: dict[int, JournalEntry] = {}
        self._points = 0
        self._acts = 0
        self._replayed = 0

    def load(self, entries: Sequence[JournalEntry]) -> None:
        """Take what was journaled when the handler was entered before."""
        self._entries = {entry.ordinal: entry for entry in entries}
        self._replayed = max((entry.acts for entry in entries), default=0)

    def next_act(self) -> bool:
        """Count one more act; tell whether it is new, or was committed before the last journaled point already.

        What a step does is new whenever it is done, and does not count.
        """
        if self.is_performing:
            return True
        self._acts += 1
        return self._acts > self._replayed

    def next_point(self, kind: str, name: str) -> JournalPoint:
        """Count one more point, and return it with what is known of it.

        Raises:
            JournalMismatch: the handler did something else there.
            IllegalChange: it is inside of a step.
        """
        if self.is_performing:
            raise IllegalChange(
                f"{kind} {name!r} is inside of a step, which is one point of the journal itself"
            )
        self._points += 1
        known = self._entries.get(self._points)
        if known is not None and (known.kind, known.name, known.acts) != (kind, name, self._acts):
            raise self.mismatched(
                f"point {self._points} of the journal is {known.kind} {known.name!r} after {known.acts} acts, "
                f"but the handler now does {kind} {name!r} after {self._acts}"
            )
        return JournalPoint(self._points, kind, name, self._acts, known)

    def check_end(self) -> None:
        """Make sure that the handler may end here.

        Raises:
            JournalMismatch: it went further when it was entered before.
        """
        if self._points < len(self._entries):
            raise self.mismatched(
                f"the handler now ends after {self._points} points, but the journal has {len(self._entries)}"
            )

    @property
    def is_performing(self) -> bool:
        """Whether it is a step that asks."""
        return _PERFORMING.get() is not None

    def give(self, changes: Iterable[Change]) -> None:
        """Note what is gathered: a step is not performed again, so what it gave is journaled with it."""
        given = _PERFORMING.get()
        if given is not None:
            given.extend(change for change in changes if isinstance(change, ArtifactChunk))

    @contextmanager
    def performing(self) -> Iterator[list[ArtifactChunk]]:
        """Have what is done inside belong to the step that performs it; yields what it gives of what is gathered."""
        given: list[ArtifactChunk] = []
        token = _PERFORMING.set(given)
        try:
            yield given
        finally:
            _PERFORMING.reset(token)

    def mismatched(self, how: str) -> JournalMismatch:
        """Return what to raise of a handler that has left the way that the journal tells of; it stays."""
        self.mismatch = JournalMismatch(how)
        return self.mismatch
