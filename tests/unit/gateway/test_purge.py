"""The purger: round after round, at rest for most of the time, and stopped by nothing but its end."""

import asyncio
import logging
from collections.abc import Mapping

import pytest

from dragoman.gateway import purge
from dragoman.gateway.ports import Purged
from dragoman.gateway.purge import LONGEST_REST, ROUND_REST, STEP_REST, THOROUGH_SECONDS, Purger
from dragoman.model import TaskState
from dragoman.model.errors import Unavailable
from tests.unit.gateway.memory_store import MemoryStore

AGES = {TaskState.COMPLETED: 1000}
EVERY = 5.0


class Enough(BaseException):
    """The script is over."""


class Stage(MemoryStore):
    """A store whose purges follow a script: each entry takes so many seconds and gives a result or an error.

    Attributes:
        now: the time of the script.
        asked: place and thoroughness of each call.
        rests: the seconds that were slept, in order.
    """

    def __init__(self, *script: tuple[float, Purged | Exception]) -> None:
        super().__init__()
        self.now = 1000.0
        self.asked: list[tuple[str, bool]] = []
        self.rests: list[float] = []
        self._script = list(script)

    async def purge(self, ages: Mapping[TaskState, int], place: str, *, thorough: bool = True) -> Purged:
        assert ages == AGES
        if not self._script:
            raise Enough
        self.asked.append((place, thorough))
        took, result = self._script.pop(0)
        self.now += took
        if isinstance(result, Exception):
            raise result
        return result

    async def sleep(self, seconds: float) -> None:
        self.rests.append(round(seconds, 6))
        self.now += seconds

    def play(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Run a purger to the end of the script, in time of its own."""
        monkeypatch.setattr(purge.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(purge.asyncio, "sleep", self.sleep)
        with pytest.raises(Enough):
            asyncio.run(Purger(self, AGES, every=EVERY).run())  # type: ignore[arg-type]


def test_a_round_goes_from_place_to_place_and_rests_after_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage((0.001, Purged(9, "a")), (0.01, Purged(9, "b")), (0.002, Purged(1, "")))
    stage.play(monkeypatch)
    assert stage.asked == [("", True), ("a", True), ("b", True)]
    assert stage.rests == pytest.approx([0.001 * STEP_REST, 0.01 * STEP_REST, EVERY])


def test_after_long_rounds_the_next_is_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage((0.2, Purged(0, "a")), (0.3, Purged(0, "")), (0.01, Purged(0, "")))
    stage.play(monkeypatch)
    assert stage.rests == pytest.approx([LONGEST_REST, 0.5 * ROUND_REST, EVERY])


def test_the_first_round_is_thorough_and_then_one_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    count = int(THOROUGH_SECONDS / EVERY) + 3
    stage = Stage(*[(0.0, Purged(0, ""))] * count)
    stage.play(monkeypatch)
    thorough = [number for number, (_, thorough) in enumerate(stage.asked) if thorough]
    assert thorough == [0, int(THOROUGH_SECONDS / EVERY)]


def test_a_round_that_fails_is_begun_again_and_is_still_as_thorough(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(
        (0.0, Purged(5, "a")),
        (0.0, Unavailable("no room left")),
        (0.0, ZeroDivisionError("a fault of ours")),
        (0.0, Purged(3, "")),
        (0.0, Purged(0, "")),
    )
    with caplog.at_level(logging.INFO, "dragoman.purge"):
        stage.play(monkeypatch)
    assert stage.asked == [("", True), ("a", True), ("", True), ("", True), ("", False)]
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert said == [
        ("WARNING", "a round of purging failed: Unavailable"),
        ("WARNING", "a round of purging failed: ZeroDivisionError"),
        ("INFO", "tasks purged because their time was over: 3"),
    ]


def test_a_purger_ends_when_it_is_cancelled() -> None:
    class Stuck(MemoryStore):
        async def purge(self, ages: Mapping[TaskState, int], place: str, *, thorough: bool = True) -> Purged:
            await asyncio.Event().wait()
            raise AssertionError

    async def scenario() -> None:
        running = asyncio.create_task(Purger(Stuck(), AGES, every=EVERY).run())  # type: ignore[arg-type]
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(scenario())
