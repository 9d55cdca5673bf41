"""What the gateway needs from the outside: a store, an engine, agents. Protocols and plain values only."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from enum import Enum
from typing import Protocol

from msgspec import Raw, Struct

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.hooks import KeptConfig
from dragoman.model import (
    Approval,
    ArtifactChunk,
    Change,
    Cursor,
    Decision,
    Filters,
    Message,
    Scope,
    StatusChange,
    TaskEvent,
    TaskFold,
    TaskPage,
    TaskState,
)
from dragoman.model.allowance import Allowance
from dragoman.model.card import Capabilities, Skill
from dragoman.model.payload import ABSENT


class RunRequest(Struct, frozen=True, omit_defaults=True):
    """What a handler must know of the request besides the messages; saved with the run."""

    accepted_output_modes: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    metadata: Raw = ABSENT


class Acceptance(Struct, frozen=True, kw_only=True):
    """A message to accept. `task_id` and `context_id` are the ids to use should a new task be needed.

    `message.task_id` names the task that the message continues, if any, and `answers` if only while that waits for its
    caller. `deadline` is in milliseconds from acceptance, and `flat` if waiting does not move it. `visible` is false
    where the answer may turn out to be a bare message. `metadata` is what a new task keeps and shows as its own, a
    JSON object. `audit` is what to note of it, if anything. `allowance` bounds how many tasks there may be of its
    principal and of its tenant, if anything does. `push` is to be told of the task's events, from those of this message
    on; of a message that was accepted before it changes nothing.
    """

    scope: Scope
    message: Message
    digest: bytes
    idempotent: bool
    task_id: str
    context_id: str
    request: RunRequest
    deadline: int
    visible: bool
    flat: bool = False
    answers: bool = False
    metadata: Raw = ABSENT
    audit: AuditEntry | None = None
    allowance: Allowance | None = None
    push: KeptConfig | None = None


class Lease(Struct, frozen=True):
    """The right to write to a run: good as long as the run's epoch is this one."""

    task_id: str
    epoch: int


class RunRef(Struct, frozen=True, kw_only=True):
    """A run that is to be executed. Times are milliseconds since 1970 UTC by the store's clock.

    `again`: its handler may have been entered before, so there may be a journal.
    """

    scope: Scope
    lease: Lease
    context_id: str
    attempt: int
    deadline_at: int
    request: RunRequest
    messages: tuple[Message, ...]
    state: TaskState
    visible: bool
    again: bool = False


class Placing(Enum):
    """Who executes the runs of what a server accepts: itself, workers that share its store, or an engine outside."""

    HERE = "here"
    WORKERS = "workers"
    ENGINE = "engine"


class Commit(Struct, frozen=True):
    """What a commit made known: events, in order, and runs that are to be executed here now.

    And the tasks whose push notification configurations were changed, and runs that others are to execute: their
    leases are good until somebody takes them.
    """

    events: Sequence[TaskEvent]
    runs: Sequence[RunRef]
    hooked: Sequence[str] = ()
    offered: Sequence[RunRef] = ()


class Accepted(Struct, frozen=True, kw_only=True):
    """What became of an acceptance.

    `replayed`: the message had been accepted before and nothing was stored.
    """

    task_id: str
    replayed: bool
    events: tuple[TaskEvent, ...]


class JournalEntry(Struct, frozen=True, kw_only=True):
    """A journaled point of a run: what was done, how many acts came before it, and what it gave.

    The result of a point that asked the caller is which message of theirs answered it, counted from 0; it is absent
    until there is one. `given` is what a step gave of a result that is gathered, not committed.
    """

    ordinal: int
    kind: str
    name: str
    acts: int
    result: Raw
    given: tuple[ArtifactChunk, ...] = ()


class ApprovalRequest(Struct, frozen=True, kw_only=True):
    """What a handler wants to do and somebody must allow."""

    id: str
    action: str
    details: Raw = ABSENT


class LostRun(Struct, frozen=True, kw_only=True):
    """A run whose server died or lost it, or may have; `entered` tells whether its handler may have begun."""

    scope: Scope
    task_id: str
    epoch: int
    attempt: int
    entered: bool


class Purged(Struct, frozen=True):
    """What one step of a purge did: how many tasks it deleted, and the place where the next step goes on.

    The place is empty when the round is over.
    """

    tasks: int
    place: str


class TaskStore(Protocol):
    """Where tasks live. Every method that reaches a task takes a Scope, a Lease given for one, or a LostRun.

    Any method raises Unavailable when the store cannot do its work just now.
    """

    def accept(
        self, acceptance: Acceptance, *, decided: Callable[[], object] | None = None
    ) -> Awaitable[Accepted]:
        """Store a message, and with it a new task and run or the next turn of an old one, in one transaction.

        A message to a task that waits for its caller moves it to WORKING, is noted in the journal as the answer, and
        has the run executed; its deadline moves by the time that it waited. One to a running task joins the history.

        `decided` is called on the calling loop once it is certain what becomes of the message, and after the commit, if
        there is one, was announced; also if the caller has stopped waiting for it.

        Raises:
            MessageIdConflict: the messageId was used for another message.
            QuotaExceeded: there are as many tasks as its `allowance` lets be; one to a task that there is, or that was
                accepted before, is not refused for that.
            TaskNotFound, UnsupportedOperation, InvalidParams: the task to continue is missing, finished, in another
                context, waits for an approval, or does not wait though it should.
            QuotaExceeded: it has as many push notification configurations as it may.
        """
        ...

    async def known(self, acceptance: Acceptance) -> Accepted | None:
        """Return what became of a message that was accepted before, `None` if it was not; stores nothing.

        Raises:
            MessageIdConflict: the messageId was used for another message.
        """
        ...

    def append(
        self, lease: Lease, changes: Sequence[Change], *, reveal: bool = False
    ) -> Awaitable[tuple[TaskEvent, ...]]:
        """Add events to a run, all or none; `reveal` makes its task visible. A source is noted once for a run.

        Raises:
            Fenced: the lease is not good any more.
            IllegalChange: the lifecycle does not allow it.
        """
        ...

    async def wait(self, leases: Sequence[Lease]) -> None:
        """Note that runs wait for room: nobody has entered their handlers yet."""
        ...

    async def enter(self, lease: Lease) -> None:
        """Note that a run that waited is entered now.

        Raises:
            Fenced: the lease is not good any more.
        """
        ...

    async def begin_work(self, leases: Sequence[Lease]) -> None:
        """Move those runs that are still SUBMITTED to WORKING, and make their tasks visible; leave the others."""
        ...

    async def cancel(self, scope: Scope, task_id: str, *, audit: AuditEntry | None = None) -> TaskEvent:
        """Move a task to CANCELED and fence its run out; `audit` is what to note of it, if anything.

        Raises:
            TaskNotFound, TaskNotCancelable.
        """
        ...

    async def expire(self) -> tuple[TaskEvent, ...]:
        """Move every running task that is past its deadline to FAILED and fence its run out."""
        ...

    async def park(
        self,
        lease: Lease,
        change: StatusChange,
        entry: JournalEntry,
        *,
        reveal: bool = False,
        approval: ApprovalRequest | None = None,
    ) -> TaskEvent:
        """Have a run wait for its caller: commit the status that says so and the point where it waits, together.

        The lease is given up with it, and nobody takes the run over: the caller's next message has it executed.
        `entry` has no result yet; `reveal` makes the task visible. With an `approval` no message answers: only its
        decision has the run executed.

        Raises:
            Fenced: the lease is not good any more.
            IllegalChange: the lifecycle does not allow it.
        """
        ...

    async def expire_parked(
        self, limits: Mapping[str, int], flat: Collection[str] = ()
    ) -> tuple[TaskEvent, ...]:
        """Move tasks that wait for their caller for too long to FAILED: `limits` is in milliseconds, by agent.

        Those of the agents in `flat` have no time beside their deadline.
        """
        ...

    async def decide(
        self,
        tenant: str,
        approval_id: str,
        decision: Decision,
        *,
        digest: str | None,
        flat: Collection[str],
        audit: AuditEntry | None = None,
    ) -> Approval:
        """Decide an approval of a tenant, once, and have the run that waits for it executed.

        `digest` is that of what whoever decides was shown, if they say so; `audit` is what to note of it, if anything.

        Raises:
            ApprovalNotFound: the tenant has none of this id.
            ApprovalClosed: it was decided before, nobody waits for it any more, or it is not what was shown.
        """
        ...

    async def approval(self, tenant: str, approval_id: str) -> Approval:
        """Return an approval of a tenant, decided or not.

        Raises:
            ApprovalNotFound.
        """
        ...

    async def approvals(self, tenant: str, *, after: str, limit: int) -> tuple[Approval, ...]:
        """Return approvals of a tenant that wait to be decided, oldest first, after the one with the id `after`."""
        ...

    async def read(
        self, scope: Scope, task_id: str, *, hidden: bool = False, until: int | None = None
    ) -> TaskFold:
        """Return the fold of all events so far, or of those until a sequence number.

        With `hidden` also that of a task nobody may see yet.

        Raises:
            TaskNotFound.
        """
        ...

    async def events(self, task_id: str, after: int) -> tuple[TaskEvent, ...]:
        """Return the events of a task that was reached through its scope before, after sequence number `after`.

        Raises:
            TaskNotFound: it was purged meanwhile.
        """
        ...

    async def page(
        self,
        filters: Filters,
        *,
        size: int,
        cursor: Cursor | None,
        history_length: int,
        artifacts: bool,
        withheld: Callable[[str], bool] | None = None,
    ) -> TaskPage:
        """Return one page of the tasks that `filters` lets through, newest status change first.

        With `withheld`, which tells of a source whether it is, a run with such a source is neither shown nor counted.
        """
        ...

    async def journal(self, lease: Lease) -> tuple[JournalEntry, ...]:
        """Return the journal of a run, in order."""
        ...

    async def record(self, lease: Lease, entry: JournalEntry) -> None:
        """Add to the journal of a run.

        Raises:
            Fenced: the lease is not good any more.
        """
        ...

    async def fenced(self, leases: Sequence[Lease]) -> tuple[str, ...]:
        """Return the ids of those tasks whose lease is not good any more."""
        ...

    async def lost(self) -> tuple[LostRun, ...]:
        """Return the runs that no living server holds, in the order in which their tasks were accepted."""
        ...

    async def quiet(self) -> tuple[LostRun, ...]:
        """Return the runs that this server holds and whose tasks have kept their state for as long as a lease.

        Most of them simply take their time. Those that the engine does not know of were left lying.
        """
        ...

    async def take_over(self, run: LostRun) -> bool:
        """Take a lost run for this server, as its next attempt; false if somebody else was quicker.

        A run that was never entered loses no attempt. Of one that somebody had, what is not journaled is taken back.
        """
        ...

    async def give_up(self, run: LostRun, text: str, *, reveal: bool) -> None:
        """End a lost run as FAILED, saying `text`; `reveal` makes its task visible."""
        ...

    async def purge(self, ages: Mapping[TaskState, int], place: str, *, thorough: bool = True) -> Purged:
        """Delete a few of the tasks that ended in a state longer ago than its age, in milliseconds.

        A state without an age is kept. Nothing of a task is left: events, journal, the identities of its messages,
        its part in every total. Nobody who writes waits for more than a few milliseconds.

        A round begins with an empty `place` and goes on with the place that each step returns. A `thorough` round
        finds the runs that never showed as a task too; it may have to look at tasks that are kept.
        """
        ...

    async def scopes(self) -> tuple[Scope, ...]:
        """Return every scope that has tasks (for operators; tasks are then reached through each)."""
        ...

    def on_commit(self, listener: Callable[[Commit], None]) -> None:
        """Call `listener` on the serving loop after each commit, in order."""
        ...


class AgentSettings(Struct, frozen=True, kw_only=True):
    """How an agent is served. Durations are seconds.

    `legacy_card`: a card that is asked for without a version also has the members that older callers need.
    `flat_deadline`: the deadline does not move while a run waits for its caller.
    `one_result`: what the agent gives is gathered into one text artifact, which comes with the completion.
    `extended_card`: the card declares an extended one, which has `extended_skills` besides.
    """

    replies: str = "task"
    capabilities: Capabilities = Capabilities()
    input_modes: tuple[str, ...] = ("text/plain",)
    strict_input_modes: bool = True
    idempotency: str = "always"
    on_lost_worker: str = "retry"
    max_attempts: int = 3
    deadline: float = 3600.0
    parked_deadline: float = 7 * 86400.0
    max_runs: int = 100
    max_waiting: int = 1000
    legacy_card: bool = True
    one_result: bool = False
    flat_deadline: bool = False
    extended_card: bool = False
    extended_skills: tuple[Skill, ...] = ()


class Engine(Protocol):
    """Executes runs. It holds no state that an answer depends on, except that it may be full."""

    def reserve(self, scope: Scope, task_id: str) -> bool:
        """Keep room for the run of a task that is about to be accepted; false if too many wait for the agent already.

        The room is given back by `release`, or used by the run when it is dispatched. Runs that were accepted before
        are dispatched without. Returns at once; called on the serving loop.
        """
        ...

    def release(self, task_id: str) -> None:
        """Give back the room that was kept for a task, if no run of it was dispatched."""
        ...

    def dispatch(self, runs: Sequence[RunRef]) -> None:
        """Start runs as soon as there is room. Returns at once; called on the serving loop."""
        ...

    def stop(self, task_id: str) -> None:
        """Stop the handler of a run that was fenced out. Returns at once; called on the serving loop."""
        ...
