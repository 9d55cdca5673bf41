"""Denials on their way into the audit: gathered, counted, bounded, and not lost while the store is away."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from dragoman.gateway.audit import AuditEntry
from dragoman.model.errors import Unavailable
from dragoman.telemetry import audit
from dragoman.telemetry.audit import OTHERS, AuditTrail


def denied(number: int = 0) -> AuditEntry:
    return AuditEntry(action="Access", target=f"agents/{number}", outcome="UNAUTHENTICATED")


class Pages:
    """What was written, a list for each time; `refusals` writes are refused first."""

    def __init__(self, refusals: int = 0) -> None:
        self.written: list[list[AuditEntry]] = []
        self.refusals = refusals
        self.gate: asyncio.Event | None = None

    async def write(self, entries: Sequence[AuditEntry]) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if self.refusals:
            self.refusals -= 1
            raise Unavailable("no")
        self.written.append(list(entries))

    def counts(self) -> dict[str, int]:
        """How often each target was denied, over all that was written."""
        found: dict[str, int] = {}
        for page in self.written:
            for entry in page:
                found[entry.target] = found.get(entry.target, 0) + entry.times
        return found


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gather for a moment only."""
    monkeypatch.setattr(audit, "GATHER_SECONDS", 0.02)


async def until(probe: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not probe():
            await asyncio.sleep(0.005)


def run(work: Awaitable[None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(work, 10)

    asyncio.run(bounded())


def test_the_same_denials_are_one_row_and_others_are_rows_of_their_own() -> None:
    async def work() -> None:
        pages = Pages()
        trail = AuditTrail(pages.write)
        for number in (1, 2, 1, 1):
            trail.note(denied(number))
        assert pages.written == []
        await until(lambda: bool(pages.written))
        (page,) = pages.written
        assert [(entry.target, entry.times) for entry in page] == [("agents/1", 3), ("agents/2", 1)]
        trail.note(denied(1))
        await until(lambda: len(pages.written) == 2)
        assert pages.counts() == {"agents/1": 4, "agents/2": 1}
        await trail.close()

    run(work())


def test_of_a_flood_of_different_denials_only_so_many_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MOST", 10)

    async def work() -> None:
        pages = Pages()
        trail = AuditTrail(pages.write)
        for number in range(500):
            trail.note(denied(number))
        trail.note(denied(3))
        await until(lambda: bool(pages.written))
        (page,) = pages.written
        assert len(page) == 11
        assert pages.counts()[OTHERS.target] == 490
        assert pages.counts()["agents/3"] == 2
        await trail.close()

    run(work())


def test_what_cannot_be_written_waits_and_is_counted_on() -> None:
    async def work() -> None:
        pages = Pages(refusals=3)
        trail = AuditTrail(pages.write)
        trail.note(denied(1))
        await until(lambda: pages.refusals < 3)
        trail.note(denied(1))
        await until(lambda: bool(pages.written))
        assert pages.counts() == {"agents/1": 2}
        await trail.close()
        assert len(pages.written) == 1

    run(work())


def test_what_waits_is_written_at_the_end() -> None:
    async def work() -> None:
        pages = Pages()
        trail = AuditTrail(pages.write)
        trail.note(denied(1))
        await trail.close()
        assert pages.counts() == {"agents/1": 1}
        await trail.close()
        assert len(pages.written) == 1

    run(work())


def test_what_is_being_written_at_the_end_is_written() -> None:
    async def work() -> None:
        pages = Pages()
        pages.gate = asyncio.Event()
        trail = AuditTrail(pages.write)
        trail.note(denied(1))
        await asyncio.sleep(0.1)
        closing = asyncio.ensure_future(trail.close())
        await asyncio.sleep(0.02)
        pages.gate.set()
        await closing
        assert pages.counts() == {"agents/1": 1}

    run(work())


def test_an_end_without_a_store_loses_denials_and_says_how_many(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        trail = AuditTrail(Pages(refusals=9).write)
        for _ in range(4):
            trail.note(denied(1))
        await trail.close()

    run(work())
    assert "4 denials are missing in the audit" in caplog.text
