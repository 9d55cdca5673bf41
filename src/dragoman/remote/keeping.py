"""Keeping a remote agent's card: fetched at the start and from time to time, verified, compared, and kept for later.

A remote agent that is down is called by the card that it had when it was last seen.
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from dragoman.cards.validate import CardReport, validate
from dragoman.cards.verify import JwksError, trusted, verify
from dragoman.protocol.client import RemoteRefusalError
from dragoman.remote.card import (
    CardMissingError,
    CardUnusableError,
    Choice,
    Clients,
    Wanted,
    card_urls,
    choose,
    drift,
)
from dragoman.remote.client import LostError, RemoteClient, TooMuchError, UnreachedError

_LOG = logging.getLogger("dragoman.remote")

FOLDER = "remotes"
"""The folder, in the data folder, that holds the cards that were seen last."""

START_SECONDS = 3.0
"""Seconds that a start waits for a card."""

SOONEST, LATEST = 1.0, 60.0
"""Seconds until a card that could not be had is asked for again: at first, and at most."""


class Seen(Struct, frozen=True):
    """A card as it came: from which URL of the configuration, when (seconds since 1970 UTC), and its text."""

    url: str
    at: float
    card: str


class Known(Struct, frozen=True):
    """A card that can be used, and how the agent is called by it."""

    seen: Seen
    report: CardReport
    choice: Choice


class CardSource(Struct, frozen=True, kw_only=True):
    """Where a remote agent's card is, and what makes it one that can be used.

    `jwks` is the text of a JWK Set by whose keys it must be signed; anybody's word counts if it is empty.
    """

    url: str
    clients: Clients
    wanted: Wanted
    jwks: bytes = b""

    async def fetch(self, client: RemoteClient) -> Known:
        """Return the card as it is now.

        Raises:
            CardMissingError: there is none.
            CardUnusableError: there is none that can be used.
        """
        text = b""
        why = ""
        for url in card_urls(self.url):
            try:
                text = await client.fetch(url)
                break
            except RemoteRefusalError as error:
                why = why or f"answers with {error.message}"
            except (UnreachedError, LostError) as error:
                raise CardMissingError(f"cannot be had: {error}") from None
            except TooMuchError:
                raise CardUnusableError("is too large") from None
        else:
            raise CardMissingError(f"cannot be had: its place {why}")
        return self.judge(Seen(self.url, time.time(), text.decode(errors="replace")))

    def judge(self, seen: Seen) -> Known:
        """Return what can be done by a card.

        Raises:
            CardUnusableError: it cannot be used.
        """
        report = validate(seen.card.encode())
        if report.is_ambiguous:
            raise CardUnusableError(
                "can be read in more than one way: it gives a member twice, or what is no text"
            )
        choice = choose(report, self.clients, self.wanted)
        if self.jwks:
            self._verify(report, choice.version)
        return Known(seen, report, choice)

    def _verify(self, report: CardReport, version: str) -> None:
        try:
            verdict = verify(report.card, trusted(self.jwks, time.time()))
        except JwksError as error:
            raise CardUnusableError(f"cannot be verified: the file of keys {error}") from None
        if version not in verdict.covered:
            flaws = "; ".join(dict.fromkeys(one.flaw for one in verdict.signatures if one.flaw))
            raise CardUnusableError(
                f"is not signed by the pinned keys for what A2A {version} reads of it"
                + (f": its signature {flaws}" if flaws else "")
            )


def read_kept(file: Path, url: str) -> Seen | None:
    """Return the card that was kept in a file, if it is one of this URL."""
    try:
        seen = msgspec.json.decode(file.read_bytes(), type=Seen)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return seen if seen.url == url else None


def keep(file: Path, seen: Seen) -> None:
    """Write a card down, for this user alone.

    Raises:
        OSError: it cannot be written.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as handle:
        handle.write(msgspec.json.encode(seen))
    draft.replace(file)


class CardKeeper:
    """Keeps the card of one remote agent. To be used on one loop.

    Attributes:
        known: the card by which the agent is called; `None` as long as none could be had.
        why: what speaks against the newest one; empty if nothing does.
    """

    def __init__(
        self,
        source: CardSource,
        name: str,
        file: Path | None,
        *,
        refresh: float,
        on_change: Callable[[Known], object],
    ) -> None:
        """Prepare to keep a card.

        Args:
            source: where it is.
            name: the id of the agent here, for the log.
            file: where it is kept; nowhere if there is none.
            refresh: seconds until it is fetched again.
            on_change: called with a card that is the first, or another one than before.
        """
        self.known: Known | None = None
        self.why = ""
        self._source = source
        self._file = file
        self._refresh = refresh
        self._on_change = on_change
        self._facts = {"agent": name, "url": source.url}
        self._fetching = asyncio.Lock()
        self._work: asyncio.Task[None] | None = None

    async def start(self, client: RemoteClient) -> None:
        """Take the card that was kept, wait a moment for the one there is now, and go on keeping it."""
        seen = read_kept(self._file, self._source.url) if self._file is not None else None
        if seen is not None:
            with contextlib.suppress(CardUnusableError):
                self.known = self._source.judge(seen)
        if self.known is not None:
            self._on_change(self.known)
        first = asyncio.create_task(self.fetch(client))
        self._work = asyncio.create_task(self._go_on(client, first))
        await asyncio.wait([first], timeout=START_SECONDS)

    async def stop(self) -> None:
        """Fetch no more."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])

    async def current(self, client: RemoteClient) -> Known:
        """Return the card by which the agent is called, fetched now if there is none yet.

        Raises:
            CardUnusableError: there is none.
        """
        if self.known is None:
            await self.fetch(client)
        if self.known is None:
            raise CardUnusableError(self.why)
        return self.known

    async def fetch(self, client: RemoteClient) -> bool:
        """Fetch the card; tell whether that went well. What is wrong is logged when it comes to be, not each time."""
        async with self._fetching:
            try:
                found = await self._source.fetch(client)
            except CardUnusableError as error:
                if str(error) != self.why:
                    self.why = str(error)
                    kept = "the one that was seen last counts" if self.known else "there is none to go by"
                    _LOG.warning("the card of a remote agent %s; %s", error, kept, extra=self._facts)
                return False
            if self.why:
                _LOG.info("the card of a remote agent can be had again", extra=self._facts)
                self.why = ""
            self._take(found)
            return True

    def _take(self, found: Known) -> None:
        before = self.known
        members = drift(before.report.card, found.report.card) if before is not None else ()
        if before is not None and before.seen.card == found.seen.card:
            return
        self.known = found
        if members:
            _LOG.warning(
                "the card of a remote agent has changed since it was seen last: %s",
                ", ".join(members)[:500],
                extra=self._facts,
            )
        try:
            if self._file is not None:
                keep(self._file, found.seen)
        except OSError as error:
            _LOG.warning("the card of a remote agent cannot be kept: %s", error.strerror, extra=self._facts)
        if before is None or members:
            choice = found.choice
            _LOG.info(
                "a remote agent is called by A2A %s over %s",
                choice.version,
                choice.binding,
                extra=self._facts,
            )
            self._on_change(found)

    async def _go_on(self, client: RemoteClient, first: asyncio.Task[bool]) -> None:
        try:
            went_well, wait = await first, SOONEST
            while True:
                wait = self._refresh if went_well else min(wait * 2, LATEST, self._refresh)
                await asyncio.sleep(wait)
                went_well = await self.fetch(client)
        finally:
            first.cancel()
