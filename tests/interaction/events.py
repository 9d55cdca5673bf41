"""Reading an event stream byte for byte: what came, and whether it is what the standard calls a stream."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.interaction.answers import Reply


@dataclass(frozen=True)
class Frame:
    """One event of a stream, or one comment, which is a line by itself."""

    id: str | None
    event: str | None
    data: str | None
    comment: str | None


@dataclass(frozen=True)
class Item:
    """One item of an A2A stream: its id, which member it has (`task`, `statusUpdate`, …, `error`), and the value."""

    id: int | None
    kind: str
    value: Any

    @property
    def state(self) -> str:
        """The state that a task or a status update tells of; empty for everything else."""
        return str(self.value["status"]["state"]) if self.kind in ("task", "statusUpdate") else ""


class Stream:
    """A reply that goes on, or the whole reply that came instead of one."""

    def __init__(
        self, binding: str, status: int, headers: Mapping[str, str], chunks: Iterator[bytes]
    ) -> None:
        self.binding = binding
        self.status = status
        self.headers = headers
        self._chunks = chunks
        self._pieces = _frames(chunks)

    def reply(self) -> Reply:
        """The reply that is no stream."""
        assert not self.headers.get("content-type", "").startswith("text/event-stream"), self.headers
        return Reply(self.binding, self.status, self.headers, b"".join(self._chunks))

    def frames(self) -> Iterator[Frame]:
        """What comes, comments included, until the server ends the stream."""
        assert (self.status, self.headers.get("content-type")) == (200, "text/event-stream"), self.headers
        # `yield from` would close the pieces with this generator, and a reader that stops here may go on later.
        while (piece := next(self._pieces, None)) is not None:
            yield piece

    def items(self) -> Iterator[Item]:
        """The items, to the end of the stream. Can be called again to go on reading."""
        for frame in self.frames():
            if frame.data is not None:
                yield self._item(frame)

    def next(self) -> Item:
        """The next item."""
        return next(self.items())

    def rest(self) -> list[Item]:
        """All items that are left, to the end of the stream."""
        return list(self.items())

    def _item(self, frame: Frame) -> Item:
        assert frame.data is not None
        value = json.loads(frame.data)
        if self.binding == "jsonrpc":
            assert value["jsonrpc"] == "2.0" and value["id"] == 1, value
            assert frame.event is None, frame
            value = {"error": value["error"]} if "error" in value else value["result"]
        elif frame.event is not None:
            assert frame.event == "error" and "error" in value, frame
        assert len(value) == 1, value
        kind, content = next(iter(value.items()))
        return Item(int(frame.id) if frame.id is not None else None, kind, content)


def _frames(chunks: Iterator[bytes]) -> Iterator[Frame]:
    """Cut bytes into frames. Only LF ends a line here, so a stream that needs more lenience is not understood."""
    waiting = b""
    for chunk in chunks:
        waiting += chunk
        while True:
            ending = b"\n" if waiting.startswith(b":") else b"\n\n"
            block, ended, rest = waiting.partition(ending)
            if not ended:
                break
            waiting = rest
            yield _frame(block)
    assert not waiting, f"the stream ends inside a frame: {waiting[-200:]!r}"


def _frame(block: bytes) -> Frame:
    found: dict[str, list[str]] = {}
    for line in block.decode().split("\n"):
        name, _, value = line.partition(":")
        assert name in ("id", "event", "data", ""), line
        found.setdefault(name, []).append(value.removeprefix(" "))
    assert len(found.get("id", [])) < 2 and len(found.get("event", [])) < 2, block

    def joined(name: str) -> str | None:
        return "\n".join(found[name]) if name in found else None

    return Frame(joined("id"), joined("event"), joined("data"), joined(""))


def folded(items: list[Item]) -> dict[str, Any]:
    """The task that a stream tells of: its snapshots and updates put together, as a client would."""
    task: dict[str, Any] = {}
    for item in items:
        if item.kind == "task":
            task = json.loads(json.dumps(item.value))
        elif item.kind == "statusUpdate":
            task["status"] = item.value["status"]
        elif item.kind == "artifactUpdate":
            _fold_artifact(task.setdefault("artifacts", []), item.value)
    return task


def _fold_artifact(artifacts: list[dict[str, Any]], update: dict[str, Any]) -> None:
    artifact = json.loads(json.dumps(update["artifact"]))
    for index, known in enumerate(artifacts):
        if known["artifactId"] == artifact["artifactId"]:
            if update.get("append"):
                known["parts"] += artifact["parts"]
            else:
                artifacts[index] = artifact
            return
    assert not update.get("append"), f"appends to an artifact that nobody began: {update}"
    artifacts.append(artifact)
