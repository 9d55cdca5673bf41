"""The servers that share a store: each has a number, an advisory lock that its death gives back, and a heartbeat.

What a server runs is its own as long as it lives. One that was killed shows by its lock within a few heartbeats, one
that is frozen by its heartbeat when the time of its lease is over. Whoever takes a run over raises its epoch: a server
that was passed over can write nothing to it any more.

The connection that holds the lock listens too: to what other servers have committed.

Behind a pooler by transaction there are neither locks of a session nor notifications. A server there beats ahead: by
so much that its heartbeat is over when its lease is, lock or no lock; and it looks with each heartbeat for what it was
not told.
"""

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

from dragoman.stores.postgres.connection import FAILURES, Database, cause_of, connect, one_session
from dragoman.stores.target import Target

BEAT_SECONDS = 1.0
SILENCE_MS = 1500
"""Without its lock, a server that was heard of so lately is taken for living: it may just have lost its connection."""

RETRY_SECONDS = 0.5
PATIENCE_SECONDS = 3.0
"""How long a heartbeat may take at least before its connection is given up; a third of the lease, if that is more."""

LEAVE_SECONDS = 3.0
TELL_SECONDS = 30.0

CHANNEL = "dragoman"
"""Where servers tell each other what they have committed: their number, one of these letters, and what it is about."""

EVENTS, HOOKS, IDENTITIES, RUNS, ORPHANS, JOINED, SPENT = "t", "h", "i", "r", "o", "j", "s"
"""`t TASK:FIRST-LAST …`: events; `h TASK …`: webhooks of tasks, which others tell of; `i`: what is kept of tenants;
`r`: runs are there for whoever executes some; `o`: a server has left, and what it ran is anybody's; `j`: one has come,
and wants to be told from now on; `s WHO:NUMBER …`: requests that count against rates."""

OPERATOR = 0
"""The number of a command beside the servers."""

_LOCKS = 1_146_241_869
"""The first key of the advisory locks of servers; the second is the server's number."""

AWAY_MS = 4000
"""How long others are waited for after the database was away: each of them has to come back to it."""

_LOCKED = (
    f"SELECT l.objid::bigint FROM pg_locks l WHERE l.locktype = 'advisory' AND l.classid = {_LOCKS} AND l.objsubid = 2"
    " AND l.granted AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())"
)


def _lives(at: str, otherwise: str = "false") -> str:
    """Return the condition that the server of a row `r` of `replica` lives at some time."""
    return (
        f"r.beat_at + r.lease_ms >= {at}"
        f" AND (r.beat_at + {SILENCE_MS} >= {at} OR r.id::bigint IN ({_LOCKED}) OR {otherwise})"
    )


# While nobody can beat, nobody falls silent: time goes by the last heartbeat of any server, and not by the clock. And
# where no server has its lock, all of them have lost their connections, and not their lives.
# Both times are values of their own, and not joined: planners think that the clock has thousands of rows.
_NOW = "(SELECT now_ms FROM store_clock)"
_HEARD = f"least({_NOW}, (SELECT max(beat_at) FROM replica))"
LIVING = f"SELECT r.id FROM replica r WHERE {_lives(_HEARD, f'NOT EXISTS ({_LOCKED})')}"
"""The numbers of the servers that live, in the eyes of one of them."""

IS_HELD = f"t.owner IN ({LIVING})"
"""The condition that the run of a row `t` of `task` is in the hands of a living server."""

ARE_SERVED = f"SELECT count(*) FROM replica r WHERE {_lives(_NOW)}"
"""How many servers use a store just now."""


def _as_if_heard(which: str) -> str:
    """Return the statement that takes some other servers for living for a while; one whose row is locked is beating."""
    return (
        f"UPDATE replica SET beat_at = {_NOW} + {AWAY_MS} WHERE id IN (SELECT r.id FROM replica r"
        f" WHERE r.id <> $1 AND r.beat_at < {_NOW} AND {which} FOR UPDATE OF r SKIP LOCKED)"
    )


# Whoever was away from the database takes it that others were, and may be yet, who lived when it was there last.
_MINE = "(SELECT beat_at FROM replica WHERE id = $1)"
_WAIT_FOR_OTHERS = _as_if_heard(f"r.beat_at + r.lease_ms >= {_MINE} AND {_MINE} + {SILENCE_MS} < {_NOW}")
_WAIT_AT_FIRST = _as_if_heard(
    f"r.beat_at + r.lease_ms >= {_NOW} AND clock_timestamp() - pg_postmaster_start_time() < interval '{AWAY_MS} ms'"
)
_BEAT = (
    f"WITH others AS ({_WAIT_FOR_OTHERS})"
    " INSERT INTO replica (id, beat_at, lease_ms, process, schema) SELECT $1, now_ms + $4, $2, $3, $5 FROM store_clock"
    " ON CONFLICT (id) DO UPDATE SET beat_at = excluded.beat_at"
)
_JOIN = (
    f"WITH others AS ({_WAIT_AT_FIRST})"
    " INSERT INTO replica (beat_at, lease_ms, process, schema) SELECT now_ms, $2, $3, $4 FROM store_clock RETURNING id"
)

_LOG = logging.getLogger("dragoman.store")


class Replica:
    """This server among those that share the store. Lives on the store's loop.

    Attributes:
        number: its number in the store.
        has_peers: whether there were others at the last heartbeat, or have come since.
        era: another number each time after others may have taken this server for dead.
    """

    def __init__(
        self,
        target: Target,
        lease_ms: int,
        schema: int,
        *,
        heard: Callable[[str], None],
        missed: Callable[[], None],
        orphaned: Callable[[], None],
        reconnected: Callable[[], Awaitable[None]],
    ) -> None:
        """Prepare to join.

        Args:
            target: the database.
            lease_ms: how long others wait for a heartbeat before they take over what runs here.
            schema: the one that this server was made for.
            heard: called with what another server tells, without its number.
            missed: called when something may have been told that was not heard.
            orphaned: called when another server has died, whose runs are anybody's now.
            reconnected: called when the database was lost and is found again.
        """
        self.number = 0
        self.has_peers = False
        self.era = 0
        self._target = target
        self._lease_ms = lease_ms
        self._schema = schema
        self._process = f"process {os.getpid()} on {socket.gethostname()}"
        self._beat_seconds = min(BEAT_SECONDS, lease_ms / 3000)
        self._patience = max(PATIENCE_SECONDS, lease_ms / 3000)
        self._ahead_ms = max(0, lease_ms - SILENCE_MS) if target.by_transaction else 0
        self._heard = heard
        self._missed = missed
        self._orphaned = orphaned
        self._reconnected = reconnected
        self._connection: Any = None
        self._locked = False
        self._beaten_at = float("-inf")
        self._task: asyncio.Task[None] | None = None

    async def join(self, admit: Callable[[Database], Awaitable[None]]) -> None:
        """Take a number, and begin to beat and to listen; `admit` is asked first, in the same transaction.

        Raises:
            FAILURES: the database cannot be reached.
        """
        self._connection = connection = await connect(self._target)
        async with connection.transaction():
            await admit(connection)
            self.number = await connection.fetchval(_JOIN, 0, self._lease_ms, self._process, self._schema)
        await self._listen()
        async with one_session(self._connection, self._target):
            await self._connection.execute("SELECT pg_notify($1, $2)", CHANNEL, f"{self.number} {JOINED}")
        await self._beat()
        self._task = asyncio.create_task(self._live())

    def lives(self) -> bool:
        """Tell whether others must take this server for living: what it has is its own. For any thread."""
        connection = self._connection
        is_there = connection is not None and not connection.is_closed()
        is_known = self._locked or self._target.by_transaction
        return is_there and is_known and time.monotonic() - self._beaten_at < self._lease_ms / 1000

    async def leave(self) -> None:
        """Give the number back: what runs here is anybody's now."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._connection is not None:
            if self.number:
                await self._take_leave()
            with contextlib.suppress(*FAILURES):
                await self._connection.close(timeout=1)

    async def _take_leave(self) -> None:
        with contextlib.suppress(*FAILURES):
            async with asyncio.timeout(LEAVE_SECONDS), one_session(self._connection, self._target):
                await self._connection.execute("DELETE FROM replica WHERE id = $1", self.number)
                await self._connection.execute(
                    "SELECT pg_notify($1, $2)", CHANNEL, f"{self.number} {ORPHANS}"
                )

    async def _live(self) -> None:
        told_at = -TELL_SECONDS
        loop = asyncio.get_running_loop()
        while True:
            try:
                if self._connection is None:
                    await self._come_back()
                await asyncio.sleep(self._beat_seconds)
                async with asyncio.timeout(self._patience):
                    await self._beat()
                if self._target.by_transaction:
                    self._missed()
            except FAILURES as error:
                if loop.time() - told_at >= TELL_SECONDS:
                    told_at = loop.time()
                    words = cause_of(error) or "does not answer"
                    _LOG.error("the store %s %s: %s", self._target, words, type(error).__name__)
                if self._connection is None:
                    await asyncio.sleep(RETRY_SECONDS)
                await self._drop()

    async def _come_back(self) -> None:
        connection = await connect(self._target)
        try:
            async with asyncio.timeout(self._patience):
                self._connection = connection
                await self._listen()
                await self._beat()
        except BaseException:
            self._connection = None
            connection.terminate()
            raise
        _LOG.info("the store is listened to again")
        await self._reconnected()
        self._missed()

    async def _drop(self) -> None:
        self.era += 1
        connection, self._connection, self._locked = self._connection, None, False
        if connection is not None:
            connection.terminate()

    async def _listen(self) -> None:
        if not self._target.by_transaction:
            await self._connection.add_listener(CHANNEL, self._take)

    def _take(self, connection: object, process: int, channel: str, payload: object) -> None:
        number, _, told = str(payload).partition(" ")
        if number != str(self.number):
            self.has_peers = self.has_peers or number != str(OPERATOR)
            self._heard(told)

    async def _beat(self) -> None:
        asked_at = time.monotonic()
        async with one_session(self._connection, self._target):
            await self._connection.execute(
                _BEAT, self.number, self._lease_ms, self._process, self._ahead_ms, self._schema
            )
        if time.monotonic() - self._beaten_at >= self._lease_ms / 1000:
            # It came after the one before was over: whoever looked between them has seen nobody.
            self.era += 1
        if not self._locked and not self._target.by_transaction:
            # Only now that others are waited for. Another session of ours, that broke, may hold it for a moment yet.
            self._locked = await self._connection.fetchval(
                "SELECT pg_try_advisory_lock($1::integer, $2::integer)", _LOCKS, self.number
            )
        async with one_session(self._connection, self._target):
            dead = await self._connection.fetch(
                f"DELETE FROM replica WHERE id <> $1 AND id NOT IN ({LIVING}) RETURNING process", self.number
            )
            self._beaten_at = asked_at
            self.has_peers = await self._connection.fetchval(
                "SELECT EXISTS (SELECT 1 FROM replica WHERE id <> $1)", self.number
            )
        if dead:
            _LOG.warning("servers that shared the store are gone: %s", ", ".join(one[0] for one in dead))
            self._orphaned()
