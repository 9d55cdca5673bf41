"""The facts of one call, and what an operation gives back."""

from collections.abc import AsyncGenerator, Callable

from msgspec import Struct

from dragoman.gateway.access import Access
from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.policy import OPEN, Policy
from dragoman.gateway.ports import AgentSettings
from dragoman.model import Message, Principal, Scope, Task, TaskEvent
from dragoman.model.allowance import Allowance


def unconditional() -> None:
    """Go on, whatever changes."""


class Call(Struct, frozen=True, kw_only=True):
    """Who calls which agent, and what they asked for beside the operation itself.

    `access` is what the caller may still see of what its tasks hold: everything, where it is `None`. What it may not
    see is withheld, and only cancelling is left. `still` raises what the caller would be refused with by now: what
    goes on for long is given up by that. `audit` is what to note of what is changed, if anything. `allowance` bounds
    how many tasks there may be of the caller and its tenant.
    """

    principal: Principal
    scope: Scope
    settings: AgentSettings
    policy: Policy = OPEN
    access: Access | None = None
    still: Callable[[], None] = unconditional
    audit: AuditEntry | None = None
    allowance: Allowance | None = None
    extensions: tuple[str, ...] = ()


class Answer(Struct, frozen=True, kw_only=True):
    """The result of a send: a task or a bare message; `replayed` if the message had been accepted before."""

    result: Task | Message
    replayed: bool = False


class Committed:
    """A committed event on its way to its observers.

    Attributes:
        event: the event.
        size: its weight in bytes, roughly.
        forms: its encodings, by the name of the wire form and whether the event is the last one of its stream:
            each is made once, whoever asks first.
    """

    __slots__ = ("event", "forms", "size")

    def __init__(self, event: TaskEvent, size: int) -> None:
        self.event = event
        self.size = size
        self.forms: dict[tuple[str, bool], bytes] = {}


class StreamItem(Struct, frozen=True):
    """One item of a stream: a task snapshot, a bare message or a committed event, and the event sequence it is at.

    `last`: the stream ends after it, because nothing more can follow or it is the caller's turn.
    """

    seq: int
    value: Task | Message | Committed
    last: bool = False


class EventStream(Struct, frozen=True, kw_only=True):
    """The result of a streaming operation; an item that is `None` tells that nothing happened for a while.

    `release` must be called in the end, whatever became of the stream: a generator that was never begun frees nothing.
    """

    task_id: str
    items: AsyncGenerator[StreamItem | None]
    release: Callable[[], None]
    replayed: bool = False
