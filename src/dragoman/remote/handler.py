"""The handler of an agent that is somebody else's: a conversation with it for each run."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from dragoman.agents.run import Run
from dragoman.cards.validate import validate
from dragoman.egress.client import Egress
from dragoman.egress.policy import EgressPolicy
from dragoman.model.errors import Fenced
from dragoman.remote.card import CardMissingError, CardUnusableError, Mirrored, drift, mirrored
from dragoman.remote.client import RemoteClient
from dragoman.remote.conversation import Conversation, OverError, Terms
from dragoman.remote.failing import FailedError
from dragoman.remote.keeping import CardKeeper, CardSource, read_kept
from dragoman.remote.passing import PassingRun

_LOG = logging.getLogger("dragoman.remote")

IDLE_CONNECTION_SECONDS = 3.0
"""Seconds that a connection is kept: less than servers usually do. One that they close as a message is on its way
leaves nobody knowing whether it arrived."""

INSPECTION_SECONDS = 10.0
"""Seconds that an inspection waits for a card."""

PARTING_SECONDS = 1.0
"""Seconds that the end of the server waits until remote agents are told of cancellations."""


class RemoteSettings(Struct, frozen=True, kw_only=True):
    """How a remote agent is called.

    `name` is the id of the agent here, `file` where its card is kept, `policy` opens its origins alone, `credentials`
    are headers of every request, `refresh` is how many seconds a card is believed.
    """

    name: str
    source: CardSource
    file: Path | None
    policy: EgressPolicy
    credentials: tuple[tuple[str, str], ...]
    terms: Terms
    refresh: float
    user_agent: str

    def secrets(self) -> tuple[str, ...]:
        """Return what must not show in anything that callers are told."""
        return tuple(part for _, value in self.credentials for part in (value, value.removeprefix("Bearer ")))

    def egress(self) -> Egress:
        """Return a way out to the agent, to be used on one loop."""
        return Egress(
            self.policy,
            user_agent=self.user_agent,
            total_seconds=self.terms.idle,
            idle_seconds=IDLE_CONNECTION_SECONDS,
        )

    def client(self, egress: Egress) -> RemoteClient:
        """Return what calls the agent, by this way out."""
        return RemoteClient(egress, self.credentials, idle=self.terms.idle, largest=self.terms.largest)


async def inspect(settings: RemoteSettings) -> str:
    """Return what a remote agent's card says of how it is called, and how it has changed since it was seen last.

    Raises:
        CardMissingError: there is none to be had just now.
        CardUnusableError: the agent cannot be called by it.
    """
    egress = settings.egress()
    try:
        async with asyncio.timeout(INSPECTION_SECONDS):
            found = await settings.source.fetch(settings.client(egress))
    except TimeoutError:
        raise CardMissingError(f"cannot be had within {INSPECTION_SECONDS:g} s") from None
    finally:
        await egress.close()
    choice = found.choice
    seen = read_kept(settings.file, settings.source.url) if settings.file is not None else None
    if seen is None:
        told = "was not seen before"
    else:
        members = drift(validate(seen.card.encode()).card, found.report.card)
        told = (
            f"has changed since it was seen last: {', '.join(members)}"
            if members
            else "is as it was seen last"
        )
    return f"A2A {choice.version} over {choice.binding} at {choice.place.url}; its card {told}"


class _Line(Struct, frozen=True):
    """What there is once the agent is started."""

    egress: Egress
    client: RemoteClient
    cards: CardKeeper


class RemoteAgent:
    """Answers messages with what a remote agent says to them."""

    def __init__(self, settings: RemoteSettings, on_card: Callable[[Mirrored], object]) -> None:
        """Prepare to answer; `on_card` is told, on the agent's loop, what the card here is to say."""
        self._settings = settings
        self._on_card = on_card
        self._line: _Line | None = None
        self._partings: set[asyncio.Task[None]] = set()

    async def startup(self) -> None:
        """Learn how the agent is called, waiting only a moment for it, and begin to answer."""
        settings = self._settings
        egress = settings.egress()
        client = settings.client(egress)
        cards = CardKeeper(
            settings.source,
            settings.name,
            settings.file,
            refresh=settings.refresh,
            on_change=lambda known: self._on_card(mirrored(known.report.card)),
        )
        self._line = _Line(egress, client, cards)
        await cards.start(client)

    async def shutdown(self) -> None:
        """Wait a moment for what still has to be said, and let go of connections."""
        if self._line is None:
            return
        if self._partings:
            await asyncio.wait(self._partings, timeout=PARTING_SECONDS)
        await self._line.cards.stop()
        await self._line.egress.close()

    async def answer(self, run: Run) -> None:
        """Have the remote agent answer, to the end."""
        if self._line is None:
            raise AssertionError("startup comes before the first run")
        client, settings, talk = self._line.client, self._settings, None
        try:
            choice = (await self._line.cards.current(client)).choice
            binding = settings.source.clients[choice.version][choice.binding]
            talk = Conversation(settings.name, PassingRun.of(run), client, choice, binding, settings.terms)
            await talk.hold()
        except OverError:
            return
        except (asyncio.CancelledError, Fenced):
            if talk is not None:
                # Beside this: whoever stopped the run waits for its place.
                parting = asyncio.create_task(talk.withdraw())
                self._partings.add(parting)
                parting.add_done_callback(self._partings.discard)
            raise
        except CardUnusableError as error:
            await self._fail(run, FailedError("The remote agent cannot be called.", f"its card {error}"))
        except FailedError as error:
            await self._fail(run, error)
        finally:
            if talk is not None:
                await talk.close()

    async def _fail(self, run: Run, error: FailedError) -> None:
        facts = {"agent": self._settings.name, "task_id": run.task_id, "attempt": run.attempt}
        _LOG.warning("%s%s", error, f" ({error.detail})" if error.detail else "", extra=facts)
        change = error.change(run.task_id, run.context_id, self._settings.secrets())
        await PassingRun.of(run).relay(change)
