"""Streams of 0.3: their items in the form with kinds, and the task that they tell of."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.interaction import events
from tests.interaction.events import Frame
from tests.interaction.v0_3.answers import Reply
from tests.interaction.v0_3.dialects import Dialect


@dataclass(frozen=True)
class Item:
    """One item of a stream: its id, its kind (`error` for an error) and its value in the form with kinds."""

    id: int | None
    kind: str
    value: Any

    @property
    def state(self) -> str:
        """The state that a task or a status update tells of; empty for everything else."""
        return str(self.value["status"]["state"]) if self.kind in ("task", "status-update") else ""

    @property
    def final(self) -> bool:
        """Whether it says that nothing follows."""
        return self.kind == "status-update" and self.value["final"] is True


class Stream:
    """A reply that goes on, or the whole reply that came instead of one."""

    def __init__(
        self,
        binding: str,
        status: int,
        headers: Mapping[str, str],
        chunks: Iterator[bytes],
        dialect: Dialect,
        whole: Callable[[int, bytes], Reply],
    ) -> None:
        self.binding = binding
        self.status = status
        self.headers = headers
        self._chunks = chunks
        self._raw = events.Stream(binding, status, headers, chunks)
        self._dialect = dialect
        self._whole = whole

    def reply(self) -> Reply:
        """The reply that is no stream."""
        assert not self.headers.get("content-type", "").startswith("text/event-stream"), self.headers
        return self._whole(self.status, b"".join(self._chunks))

    @property
    def head(self) -> Reply:
        """The reply as far as it is there before the first event."""
        return self._whole(self.status, b"")

    def frames(self) -> Iterator[Frame]:
        """What comes, comments included, until the server ends the stream."""
        return self._raw.frames()

    def items(self) -> Iterator[Item]:
        """The items, to the end of the stream. Can be called again to go on reading."""
        for frame in self.frames():
            if frame.data is not None:
                yield self._item(frame, frame.data)

    def next(self) -> Item:
        """The next item."""
        return next(self.items())

    def rest(self) -> list[Item]:
        """All items that are left, to the end of the stream."""
        return list(self.items())

    def _item(self, frame: Frame, data: str) -> Item:
        number = int(frame.id) if frame.id is not None else None
        value = json.loads(data)
        if self.binding == "jsonrpc":
            assert frame.event is None and value["jsonrpc"] == "2.0" and value["id"] == 1, frame
            if "error" in value:
                return Item(number, "error", value)
            value = value["result"]
        elif frame.event is not None:
            assert frame.event == "error", frame
            return Item(number, "error", value)
        read = self._dialect.item(value)
        return Item(number, str(read["kind"]), read)


def folded(items: list[Item]) -> dict[str, Any]:
    """The task that a stream tells of: its snapshots and updates put together, as a client would."""
    names = {"status-update": "statusUpdate", "artifact-update": "artifactUpdate"}
    return events.folded([events.Item(one.id, names.get(one.kind, one.kind), one.value) for one in items])
