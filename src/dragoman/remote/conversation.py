"""One run's talk with a remote agent: turn by turn, each a message to it and what comes of that.

What is promised of a crash: the id that the remote agent gives to its task is journaled before anything of the task is
passed on, so the next attempt finds the task by it and never sends again. A send of which nobody knows whether it
arrived is repeated only where the remote agent takes a message under the same id for the same one.
"""

import asyncio
import hashlib
import itertools
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct, structs

from dragoman.model import Change, Message, StatusChange, Task
from dragoman.model.errors import TaskNotFound
from dragoman.model.payload import pack_object
from dragoman.protocol.client import Call, ClientBinding, Item, Outgoing, RemoteRefusalError
from dragoman.remote.card import OURS, Choice
from dragoman.remote.client import LostError, RemoteClient, TooMuchError, UnreachedError
from dragoman.remote.failing import FailedError, is_passing, of_refusal, too_large, uncertain, wrong_task
from dragoman.remote.passing import PassingRun
from dragoman.remote.relay import Asked, OverflowingError, Relay, WrongTaskError

_LOG = logging.getLogger("dragoman.remote")

HISTORY = 100
"""Messages of a task's history that are asked for, to find what was said while nobody listened."""

WAITS = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds between two looks at a task that tell nothing new; the last one repeats."""

CONNECTS = (0.2, 1.0)
"""Seconds before a further try to connect. Nothing was sent then, so nothing is done twice."""

REPEATS = (0.5, 2.0)
"""Seconds before a message is sent again, where that is the same as once."""

CANCEL_SECONDS = 8.0
"""Seconds for telling the remote agent of a cancellation."""


class OverError(Exception):
    """The run has its end."""


class Terms(Struct, frozen=True):
    """How long and how much a remote agent may talk.

    `idle` is how many seconds it may be silent, `patience` how many seconds a task that cannot be reached is looked
    for, `largest` how many bytes a reply, an event, and all artifacts of a task may have.
    """

    idle: float
    patience: float
    largest: int


class Conversation:
    """Talks with a remote agent for one attempt of a run."""

    def __init__(
        self,
        agent: str,
        run: PassingRun,
        client: RemoteClient,
        choice: Choice,
        binding: ClientBinding,
        terms: Terms,
    ) -> None:
        """Prepare to talk for `run` of the agent that has the id `agent` here."""
        self._agent = agent
        self._run = run
        self._client = client
        self._choice = choice
        self._binding = binding
        self._terms = terms
        self._relay = Relay(run.task_id, run.context_id, largest=terms.largest)
        self._stream: AsyncGenerator[Sequence[Item], None] | None = None
        self._held: tuple[Change, ...] = ()
        self._begun = False
        self._streams = choice.streams
        self._facts = {"agent": agent, "task_id": run.task_id, "attempt": run.attempt}

    async def hold(self) -> None:
        """Talk until the run has its end.

        Raises:
            OverError: it has.
            FailedError: it must end so.
        """
        run, relay = self._run, self._relay
        if run.attempt > 1 or len(run.history) > 1:
            relay.know(await run.stored())
        message, began, answered = run.message, 1, None
        for turn in itertools.count(1):
            self._begun = False
            outgoing = self._outgoing(message, turn)
            sent = await run.step(f"send {turn}", partial(self._send, outgoing, began, answered))
            if not self._begun:
                relay.begin(sent["task"], sent["context"], answered)
            ended = await run.step(f"follow {turn}", self._follow)
            answered, began = msgspec.convert(ended["asked"], Asked), ended["attempt"]
            question = msgspec.json.decode(ended["question"], type=StatusChange)
            message = await run.relay_question(question, name=f"turn {turn}")

    async def withdraw(self) -> None:
        """Cancel the remote agent's task if ours is over; one that was stopped otherwise goes on in a later attempt."""
        remote_id = self._relay.remote_id
        if not remote_id:
            return
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                if (await self._run.stored()).status.state.is_terminal:
                    await self._client.ask(self._binding.cancel(self._choice.place, remote_id))
        except (TimeoutError, LostError, UnreachedError, TooMuchError, RemoteRefusalError) as error:
            why = error.kind.reason if isinstance(error, RemoteRefusalError) else str(error) or "no answer"
            _LOG.warning("the remote agent could not be told of a cancellation: %s", why, extra=self._facts)
        except TaskNotFound:
            return

    async def close(self) -> None:
        """Let go of the connection."""
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.aclose()

    # ------------------------------------------------------------------------------------------------------- sending

    def _outgoing(self, message: Message, turn: int) -> Outgoing:
        run = self._run
        passed = tuple(uri for uri in run.extensions if not uri.startswith(OURS))
        return Outgoing(
            message=structs.replace(
                message,
                # The same in every attempt, and of no other message.
                message_id=f"{run.id}-{turn}",
                context_id=self._relay.remote_context or self._context(),
                task_id=self._relay.remote_id,
                # They name tasks of ours.
                reference_task_ids=(),
            ),
            accepted_output_modes=run.accepted_output_modes,
            metadata=pack_object(run.metadata),
            extensions=(*self._choice.activated, *passed),
        )

    def _context(self) -> str:
        """Return a context for the remote agent: one for each of ours, and of each caller.

        Contexts belong to their callers, who may choose the same name; there, all of them come with one credential.
        """
        run = self._run
        whose = "\0".join((self._agent, run.tenant, run.principal, run.context_id))
        return hashlib.sha256(whose.encode()).hexdigest()[:32]

    async def _send(self, outgoing: Outgoing, began: int, answered: Asked | None) -> dict[str, Any]:
        """Send a message, unless it was or need not be, and return the ids of the task that it is about.

        `began` is the attempt in which it may have been sent at the earliest.
        """
        relay = self._relay
        relay.begin(relay.remote_id, relay.remote_context, answered)
        self._begun = True
        may_have_arrived = self._run.attempt > began
        if relay.remote_id:
            task = await self._found(relay.remote_id)
            if not task.status.state.is_interrupted or (may_have_arrived and _holds(task, outgoing)):
                # It went on by itself, or has the message already.
                return {"task": relay.remote_id, "context": relay.remote_context}
        if may_have_arrived:
            self._check_repeatable("an attempt was lost while it sent the message")
        await self._deliver(outgoing)
        return {"task": relay.remote_id, "context": relay.remote_context}

    async def _found(self, remote_id: str) -> Task:
        """Return the remote agent's task as it stands, however long that takes within the patience that there is."""
        until = time.monotonic() + self._terms.patience
        for count in itertools.count():
            try:
                return await self._look(remote_id)
            except (LostError, UnreachedError, RemoteRefusalError) as error:
                self._bear(error, until)
            except TooMuchError:
                raise too_large(self._terms.largest) from None
            await asyncio.sleep(_wait(count))
        raise AssertionError("unreachable")

    async def _deliver(self, outgoing: Outgoing) -> None:
        """Send a message, once or as often as that is the same, and hear the first words of the answer."""
        send = self._binding.stream if self._streams else self._binding.send
        call = send(self._choice.place, outgoing)
        connects, repeats = iter(CONNECTS), iter(REPEATS)
        while True:
            try:
                await self._hear(call)
                return
            except UnreachedError as error:
                wait = next(connects, None)
                if wait is None:
                    raise FailedError("The remote agent cannot be reached.", str(error)) from None
            except LostError as error:
                if self._relay.remote_id and _holds(await self._found(self._relay.remote_id), outgoing):
                    return
                self._check_repeatable(str(error))
                wait = next(repeats, None)
                if wait is None:
                    raise uncertain(str(error)) from None
            except RemoteRefusalError as refusal:
                raise of_refusal(refusal) from None
            except TooMuchError:
                raise too_large(self._terms.largest) from None
            await asyncio.sleep(wait)

    def _check_repeatable(self, why: str) -> None:
        """Make sure that a message which may have arrived can be sent again; say so in the log.

        Raises:
            FailedError: it cannot.
        """
        if not self._choice.idempotent:
            raise uncertain(why)
        _LOG.warning(
            "a message that may have arrived is sent again under the same id: %s", why, extra=self._facts
        )

    async def _hear(self, call: Call) -> None:
        """Send a call and take the first words of the answer."""
        await self.close()
        if self._streams:
            self._stream = self._client.follow(call)
            items = await anext(self._stream, None) or ()
        else:
            items = (await self._client.ask(call),)
        if not items:
            raise LostError("ended the stream before it said anything")
        if isinstance(items[0], Message):
            await self._run.reply(self._relay.words(items[0]))
            raise OverError
        self._held = self._take(items)
        if self._is_over():
            # All at once: there is nothing left to find again, so nothing needs to be journaled.
            await self._pass_on(self._held)
            raise OverError

    # ----------------------------------------------------------------------------------------------------- following

    async def _follow(self) -> dict[str, Any]:
        """Pass on what the remote agent does until it waits for the caller, and return what it asks.

        Raises:
            OverError, FailedError: as `hold`.
        """
        held, self._held = self._held, ()
        await self._pass_on(held)
        lost_at, count = None, 0
        while self._relay.turn is None:
            try:
                async with aclosing(self._round()) as told:
                    async for changes in told:
                        lost_at = None
                        if changes:
                            count = 0
                            await self._pass_on(changes)
            except (LostError, UnreachedError, RemoteRefusalError) as error:
                # Silence is no loss yet: the patience begins when the remote agent is not found the first time.
                lost_at = time.monotonic() if lost_at is None else lost_at
                self._bear(error, lost_at + self._terms.patience)
            except TooMuchError:
                raise too_large(self._terms.largest) from None
            finally:
                await self.close()
            if self._relay.turn is None:
                await asyncio.sleep(_wait(count))
                count += 1
        if self._is_over():
            raise OverError
        turn = self._relay.turn
        return {
            "asked": msgspec.to_builtins(turn.asked),
            "question": msgspec.json.encode(turn.change).decode(),
            "attempt": self._run.attempt,
        }

    async def _round(self) -> AsyncGenerator[tuple[Change, ...], None]:
        """Yield what the stream that is open tells, or else the task as it stands and a stream after that."""
        if self._stream is None:
            yield self._take((await self._look(self._relay.remote_id),))
            if self._relay.turn is not None or not self._streams:
                return
            place = self._choice.place
            self._stream = self._client.follow(self._binding.subscribe(place, self._relay.remote_id))
            try:
                items = await anext(self._stream, None) or ()
            except RemoteRefusalError as refusal:
                if not is_passing(refusal):
                    # It streams what is sent, but cannot be listened to later, or its task has just ended.
                    self._streams = False
                return
            yield self._take(items)
        async for items in self._stream:
            yield self._take(items)
            if self._relay.turn is not None:
                return

    async def _look(self, remote_id: str) -> Task:
        found = await self._client.ask(self._binding.get(self._choice.place, remote_id, HISTORY))
        if not isinstance(found, Task):
            raise LostError("answered with something that is no task")
        if found.id != remote_id:
            raise wrong_task()
        return found

    def _take(self, items: Sequence[Item]) -> tuple[Change, ...]:
        try:
            return self._relay.take(items)
        except WrongTaskError:
            raise wrong_task() from None
        except OverflowingError:
            raise too_large(self._terms.largest) from None

    async def _pass_on(self, changes: Sequence[Change]) -> None:
        if changes:
            await self._run.relay(*changes)

    def _is_over(self) -> bool:
        turn = self._relay.turn
        return turn is not None and turn.change.state.is_terminal

    def _bear(self, error: LostError | UnreachedError | RemoteRefusalError, until: float) -> None:
        """Let go by what may be over a moment later, until a time.

        Raises:
            FailedError: it will not be, or that time has come.
        """
        if isinstance(error, RemoteRefusalError) and not is_passing(error):
            raise of_refusal(error)
        if time.monotonic() >= until:
            why = error.kind.reason if isinstance(error, RemoteRefusalError) else str(error)
            raise FailedError("The remote agent cannot be reached any more; its task may go on.", why)


def _wait(count: int) -> float:
    return WAITS[min(count, len(WAITS) - 1)]


def _holds(task: Task, outgoing: Outgoing) -> bool:
    """Tell whether a message is among those of a task."""
    return any(message.message_id == outgoing.message.message_id for message in task.history)
