"""Run: what a handler is given. The message it answers, and the acts it may do.

`Run` is for `async` handlers: its acts are awaited. `BlockingRun` is for plain ones, which run in a thread: its
acts block. The two have the same names.
"""

import asyncio
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, overload

import msgspec

from dragoman.agents.called import Called, as_called
from dragoman.agents.outcome import as_artifact, as_message, as_parts
from dragoman.gateway.execute import Execution
from dragoman.gateway.ports import ApprovalRequest
from dragoman.model import (
    Artifact,
    ArtifactChunk,
    Message,
    Part,
    Role,
    StatusChange,
    TaskState,
)
from dragoman.model.approval import Decision, approval_digest
from dragoman.model.ids import new_id
from dragoman.model.message import text_of
from dragoman.model.payload import ABSENT, pack, pack_object, unpack

T = TypeVar("T")

LONGEST_ACTION = 2000
MAX_DETAILS = 64 * 1024
LONGEST_SOURCE = 128

Content = str | Part | Artifact | dict[str, Any] | list[Any]
"""What an act takes as content: text, a part, an artifact, or a JSON value (a data part)."""


class _Facts:
    """What both kinds of Run know of the request."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._ref = execution.ref

    @property
    def message(self) -> Message:
        """The message that began the task. It is the same in every attempt, whatever was said since."""
        return self._ref.messages[0]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the message."""
        return self.message.parts

    @property
    def text(self) -> str:
        """The text parts of the message, joined by newlines."""
        return text_of(self.message.parts)

    @property
    def history(self) -> tuple[Message, ...]:
        """All messages of the caller to this task when the handler was entered, oldest first."""
        return self._ref.messages

    @property
    def reference_task_ids(self) -> tuple[str, ...]:
        """Ids of earlier tasks that the message refers to."""
        return self.message.reference_task_ids

    @property
    def id(self) -> str:
        """The same for every attempt of this run, and for no other: an idempotency key for effects outside."""
        return self._ref.lease.task_id

    @property
    def task_id(self) -> str:
        """The id of the task."""
        return self._ref.lease.task_id

    @property
    def context_id(self) -> str:
        """The id of the conversation that the task belongs to."""
        return self._ref.context_id

    @property
    def attempt(self) -> int:
        """1, and 1 more for each crash that interrupted the run; an answer that enters it again does not count."""
        return self._ref.attempt

    @property
    def deadline(self) -> float:
        """When the run will be stopped, in seconds since 1970 UTC; later by the time that it waited for its caller."""
        return self._ref.deadline_at / 1000

    @property
    def principal(self) -> str:
        """The name of the caller."""
        return self._ref.scope.principal

    @property
    def tenant(self) -> str:
        """The tenant of the caller."""
        return self._ref.scope.tenant

    @property
    def accepted_output_modes(self) -> tuple[str, ...]:
        """Media types that the caller can take, best first; empty if it did not say."""
        return self._ref.request.accepted_output_modes

    @property
    def extensions(self) -> tuple[str, ...]:
        """URIs of the extensions that are active for this request."""
        return self._ref.request.extensions

    @property
    def metadata(self) -> Any:
        """The metadata of the request; `None` if there is none. The message has metadata of its own."""
        return unpack(self._ref.request.metadata)

    def _status(
        self, state: TaskState, text: Content | None, metadata: dict[str, Any] | None = None
    ) -> StatusChange:
        message = None
        if text is not None:
            message = as_message(text, task_id=self.task_id, context_id=self.context_id)
        return StatusChange(state, message, pack_object(metadata))

    def _artifact(
        self, content: Content, artifact_id: str | None, *, append: bool, last: bool, **said: Any
    ) -> ArtifactChunk:
        if not isinstance(content, Artifact):
            artifact_id = artifact_id or self._execution.next_artifact_id()
        artifact = as_artifact(content, artifact_id=artifact_id, **said)
        return ArtifactChunk(artifact, append=append, last_chunk=last)


class Run(_Facts):
    """One attempt at answering a message, for an async handler."""

    @property
    def cancelled(self) -> bool:
        """Whether the run was stopped (cancelled, expired or taken over). The handler is cancelled as well."""
        return self._execution.cancelled

    async def working(self, text: Content | None = None, *, metadata: dict[str, Any] | None = None) -> None:
        """Tell that the work goes on (WORKING), with a word about it. May be repeated.

        Raises:
            IllegalChange: the run has ended.
            Fenced: the run was stopped. Every act can raise these two.
        """
        await self._execution.act(self._status(TaskState.WORKING, text, metadata))

    async def artifact(
        self,
        content: Content,
        *,
        artifact_id: str | None = None,
        name: str = "",
        description: str = "",
        metadata: dict[str, Any] | None = None,
        last: bool = True,
    ) -> str:
        """Add an artifact, or replace the one with this id, and return its id. With `last=False` more will follow."""
        chunk = self._artifact(
            content,
            artifact_id,
            name=name,
            description=description,
            metadata=metadata,
            append=False,
            last=last,
        )
        await self._execution.act(chunk)
        return chunk.artifact.artifact_id

    async def append(self, artifact_id: str, content: Content, *, last: bool = False) -> None:
        """Add a piece to an artifact that was begun with `artifact(..., last=False)`."""
        await self._execution.act(self._artifact(content, artifact_id, append=True, last=last))

    async def reply(self, content: Content | Message) -> None:
        """Answer with a bare message and end the run.

        An agent that replies with tasks, or whose run shows as a task already, completes the task with it.
        """
        message = as_message(content, task_id=self.task_id, context_id=self.context_id)
        await self._execution.reply(message)

    async def complete(self, text: Content | None = None) -> None:
        """End the run as COMPLETED. Not needed: a handler that returns has completed."""
        await self._execution.act(self._status(TaskState.COMPLETED, text))

    async def fail(self, text: Content) -> None:
        """End the run as FAILED, saying why to the caller."""
        await self._execution.act(self._status(TaskState.FAILED, text))

    async def reject(self, text: Content) -> None:
        """End the run as REJECTED: the agent will not do what was asked."""
        await self._execution.act(self._status(TaskState.REJECTED, text))

    async def ask(self, question: Content, *, name: str = "") -> Message:
        """Ask the caller (INPUT_REQUIRED), and return the message that they answer with, however late it comes.

        The handler is ended here, and entered again from its start once there is an answer; then this returns it.
        Nothing is held meanwhile. The answer is one to this question: the handler must ask the same again, or, where
        the words change, give the question a `name` that does not.

        Raises:
            IllegalChange: the run has ended, or the agent replies with bare messages, so that nobody could answer.
        """
        change = self._status(TaskState.INPUT_REQUIRED, question)
        return await self._execution.ask("ask", name or _digest(change), change)

    async def require_auth(self, text: Content, *, name: str = "") -> Message:
        """Ask the caller to authorize something (AUTH_REQUIRED): as `ask`, but streams of the caller stay open."""
        change = self._status(TaskState.AUTH_REQUIRED, text)
        return await self._execution.ask("require_auth", name or _digest(change), change)

    async def approve(self, action: str, details: Any = None, *, name: str = "") -> Decision:
        """Have somebody allow an action, and return what they decided (INPUT_REQUIRED until then).

        `details` is a JSON value that says exactly what would be done. Only the approval API decides, once, bound to
        what was shown; no message of the caller does. Like `ask`, the handler is ended here and entered again.

        Raises:
            IllegalChange: as `ask`.
            ValueError, TypeError: the details have no JSON form, or are more than somebody can be shown.
        """
        shown = ABSENT if details is None else pack(details)
        if len(action) > LONGEST_ACTION or len(bytes(shown)) > MAX_DETAILS:
            raise ValueError(
                f"an approval shows up to {LONGEST_ACTION} characters of action and {MAX_DETAILS} bytes of details"
            )
        request = ApprovalRequest(id=new_id(), action=action, details=shown)
        question = self._status(TaskState.INPUT_REQUIRED, f"Waits for an approval: {action}")
        point = name or approval_digest(action, shown)[:16]
        return await self._execution.approve(point, question, request)

    async def call(self, remote: str, message: Content | Message) -> Called:
        """Delegate to a remote agent that the run's tenant has registered, and return what became of it.

        `remote` is its id, or its name if no other one has that. The message is sent once for this run, whatever
        happens: a later attempt gets what is known of it, asks the remote agent by its task's id, or is told
        `unknown`. A remote task is followed until it has ended, or waits for somebody. A later attempt must say the
        same to the same: a run that does not is ended.

        Raises:
            IllegalChange: the run has ended, or this is inside of a step.
            ValueError, TypeError: the message has no JSON form.
        """
        said = message
        if not isinstance(said, Message):
            said = Message(message_id="", role=Role.USER, parts=as_parts(message))
        name = hashlib.sha256(msgspec.json.encode([remote, said.parts])).hexdigest()[:16]
        return as_called(await self._execution.call(name, remote, said))

    async def use_source(self, source: str) -> None:
        """Record that what this run gives from now on comes from a source of data as well (evidence).

        Where runs of a tenant are served by the hosted profile, nobody sees them who is not granted all their sources
        at that moment. Say so before you read the source, also inside of a step.

        Raises:
            ValueError: it is no name of a source.
        """
        _check_source(source)
        await self._execution.use_source(source)

    @overload
    async def step(self, name: str, perform: Callable[[], Awaitable[T]]) -> T: ...

    @overload
    async def step(self, name: str, perform: Callable[[], T]) -> T: ...

    async def step(self, name: str, perform: Callable[[], Any]) -> Any:
        """Do something once for this run, and return its result also on a later attempt without doing it again.

        Effects outside (a payment, a mail, a paid model call) belong in a step. The result must be a JSON value.
        `perform` runs at least once: it is repeated if the server dies before its result is saved. It may tell of
        its progress, but holds no other step and no question.

        Raises:
            ValueError, TypeError: the result has no JSON form.
        """
        await self._execution.flush()
        point = self._execution.recall("step", name)
        known = point.known
        if known is None:
            with self._execution.performing() as given:
                performed = perform()
                value = await performed if inspect.isawaitable(performed) else performed
            known = await self._execution.remember(point, value, given)
        return unpack(known.result)


def _check_source(source: str) -> None:
    if not 1 <= len(source) <= LONGEST_SOURCE:
        raise ValueError(f"a source has a name of 1 to {LONGEST_SOURCE} characters")


def _digest(question: StatusChange) -> str:
    """Return what tells a question from others in a journal, which logs quote: nothing that anybody said."""
    parts = question.message.parts if question.message is not None else ()
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:16]


class BlockingRun(_Facts):
    """One attempt at answering a message, for a plain handler in a thread. See `Run` for what each act promises."""

    def __init__(self, execution: Execution, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(execution)
        self._loop = loop
        self._run = Run(execution)
        self._bell = execution.bell()

    @property
    def cancelled(self) -> bool:
        """Whether the run was stopped. Nothing interrupts a thread: a long handler should look at this."""
        return self._execution.cancelled

    def wait_cancelled(self, timeout: float) -> bool:
        """Sleep for up to `timeout` seconds, and return early and `True` if the run is stopped meanwhile."""
        return self._bell.wait(timeout)

    def working(self, text: Content | None = None, *, metadata: dict[str, Any] | None = None) -> None:
        """See `Run.working`."""
        self._await(self._run.working(text, metadata=metadata))

    def artifact(
        self,
        content: Content,
        *,
        artifact_id: str | None = None,
        name: str = "",
        description: str = "",
        metadata: dict[str, Any] | None = None,
        last: bool = True,
    ) -> str:
        """See `Run.artifact`."""
        return self._await(
            self._run.artifact(
                content,
                artifact_id=artifact_id,
                name=name,
                description=description,
                metadata=metadata,
                last=last,
            )
        )

    def append(self, artifact_id: str, content: Content, *, last: bool = False) -> None:
        """See `Run.append`."""
        self._await(self._run.append(artifact_id, content, last=last))

    def reply(self, content: Content | Message) -> None:
        """See `Run.reply`."""
        self._await(self._run.reply(content))

    def complete(self, text: Content | None = None) -> None:
        """See `Run.complete`."""
        self._await(self._run.complete(text))

    def fail(self, text: Content) -> None:
        """See `Run.fail`."""
        self._await(self._run.fail(text))

    def reject(self, text: Content) -> None:
        """See `Run.reject`."""
        self._await(self._run.reject(text))

    def ask(self, question: Content, *, name: str = "") -> Message:
        """See `Run.ask`."""
        return self._await(self._run.ask(question, name=name))

    def require_auth(self, text: Content, *, name: str = "") -> Message:
        """See `Run.require_auth`."""
        return self._await(self._run.require_auth(text, name=name))

    def approve(self, action: str, details: Any = None, *, name: str = "") -> Decision:
        """See `Run.approve`."""
        return self._await(self._run.approve(action, details, name=name))

    def call(self, remote: str, message: Content | Message) -> Called:
        """See `Run.call`."""
        return self._await(self._run.call(remote, message))

    def use_source(self, source: str) -> None:
        """See `Run.use_source`."""
        self._await(self._run.use_source(source))

    def step(self, name: str, perform: Callable[[], T]) -> T:
        """See `Run.step`."""
        self._await(self._execution.flush())
        point = self._execution.recall("step", name)
        known = point.known
        if known is None:
            with self._execution.performing() as given:
                value = perform()
            known = self._await(self._execution.remember(point, value, given))
        result: T = unpack(known.result)
        return result

    def _await(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


HOLD_SECONDS = 0.05
"""Seconds that a yielded chunk is held back at most, to find out whether it is the last one."""


class Chunks:
    """Streams what a generator yields into one artifact: text and parts are appended, the last chunk is marked.

    An artifact that is yielded whole stands by itself. A chunk is held back for a moment, because the one after which
    the generator ends is to be marked as the last.
    """

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._artifact_id = ""
        self._begun = False
        self._held: Artifact | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        execution.before = self.flush

    async def add(self, content: Content) -> None:
        """Take one more chunk, and hold it back."""
        await self.flush()
        if isinstance(content, Artifact):
            await self._execution.commit(ArtifactChunk(content, last_chunk=True))
            return
        self._artifact_id = self._artifact_id or self._execution.next_artifact_id()
        self._held = as_artifact(content, artifact_id=self._artifact_id)
        self._timer = asyncio.get_running_loop().call_later(HOLD_SECONDS, self._flush_soon)

    async def flush(self) -> None:
        """Commit the chunk that is held back, as one that others follow."""
        flushing, self._flushing = self._flushing, None
        held = self._take()
        if flushing is not None:
            await flushing
        if held is not None:
            await self._execution.commit(self._chunk(held, last=False))

    async def finish(self) -> None:
        """Commit the last chunk, marked as such, and complete the task, unless the handler has ended it."""
        if self._execution.ended:
            return
        held = self._take()
        await self.flush()
        last = (self._chunk(held, last=True),) if held is not None else ()
        await self._execution.commit(*last, StatusChange(TaskState.COMPLETED))

    def _take(self) -> Artifact | None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        held, self._held = self._held, None
        return held

    def _flush_soon(self) -> None:
        held = self._take()
        if held is not None:
            # Whatever becomes of it is told where the next act waits for it; if none comes, the run was stopped.
            self._flushing = asyncio.ensure_future(self._execution.commit(self._chunk(held, last=False)))
            self._flushing.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _chunk(self, artifact: Artifact, *, last: bool) -> ArtifactChunk:
        begun, self._begun = self._begun, True
        return ArtifactChunk(artifact, append=begun, last_chunk=last)
