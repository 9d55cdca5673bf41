"""`dragoman tasks show` and `purge` on a store that no server has."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dragoman.cli import app
from dragoman.gateway.ports import Lease
from dragoman.model import Reply, TaskState
from dragoman.model.speech import agent_message
from dragoman.stores.sqlite import SqliteStore
from tests.contract.samples import (
    ALICE,
    HOUR,
    OTHER_AGENT,
    TERMINAL,
    begun,
    brought_to,
    chunk,
    filters,
    message,
    one_page,
    status,
)
from tests.harness.paths import SOURCE

S = TaskState


class Place:
    """A data folder with a store, filled by `fill`; the clock of the store can be moved."""

    def __init__(self, data: Path) -> None:
        self.data = data

    def fill(self, work: Any) -> Any:
        """Do something with the store as a server would, and let it go again."""

        async def filled() -> Any:
            store = SqliteStore(self.data / "dragoman.db", lease=15.0, on_lost=lambda: None)
            try:
                return await work(store)
            finally:
                store.close()

        return asyncio.run(filled())

    def shift_clock(self, milliseconds: int) -> None:
        with closing(sqlite3.connect(self.data / "dragoman.db", isolation_level=None)) as connection:
            connection.execute("UPDATE clock SET offset_ms = offset_ms + ?", (milliseconds,))

    def left(self) -> set[str]:
        """The ids of all tasks, those that nobody can see too."""
        with closing(sqlite3.connect(self.data / "dragoman.db")) as connection:
            return {task_id for (task_id,) in connection.execute("SELECT id FROM task")}

    def tasks(self, *arguments: str) -> Result:
        """Run `dragoman tasks ARGUMENTS` on the folder."""
        return CliRunner().invoke(app, ["tasks", *arguments, "--data", str(self.data)])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A data folder with an empty store, in an empty current folder."""
    monkeypatch.chdir(tmp_path)
    made = Place(tmp_path / "data")
    made.fill(nothing)
    return made


async def nothing(store: SqliteStore) -> None:
    """Leave the store as it is."""


async def one_of_each(store: SqliteStore) -> dict[str, str]:
    """A task in each state, a bare message, and a completed task of another agent; their ids by name."""
    found = {state.name.lower(): (await brought_to(store, state)).task_id for state in TaskState}
    hidden = await begun(store, visible=False)
    await store.append(hidden, [Reply(agent_message("Hi", task_id="", context_id=""))])
    other = await brought_to(store, S.COMPLETED, scope=OTHER_AGENT)
    return found | {"hidden": hidden.task_id, "other": other.task_id}


FINAL = {state.name.lower() for state in TERMINAL}


async def interrupted(store: SqliteStore) -> str:
    """A run whose first attempt was lost and whose second one finished it."""
    lease = await begun(store, sent=message("a secret question", message_id="m-1", context_id="talk"))
    await store.append(lease, [status(S.WORKING, "a secret word"), chunk("a secret\nresult")])
    return lease.task_id


async def taken_up(store: SqliteStore) -> None:
    """What the next server does with it."""
    (run,) = await store.lost()
    await store.take_over(run)
    await store.append(Lease(run.task_id, 2), [chunk("again", append=True), status(S.COMPLETED)])


def test_show_tells_the_attempts_and_every_event_in_order_without_a_word_of_the_conversation(
    place: Place,
) -> None:
    task_id = place.fill(interrupted)
    place.shift_clock(60_000)
    place.fill(taken_up)
    result = place.tasks("show", task_id, "--json")
    shown = json.loads(result.stdout)
    assert result.exit_code == 0
    facts = {name: value for name, value in shown.items() if name not in ("since", "attempts", "events")}
    assert facts == {
        "id": task_id,
        "agent": "writer",
        "tenant": "acme",
        "principal": "alice",
        "context": "talk",
        "state": "COMPLETED",
        "messages": 1,
        "artifacts": 1,
    }
    assert [(row["seq"], row["attempt"], row["event"]) for row in shown["events"]] == [
        ("1", "1", "message m-1 received, now SUBMITTED"),
        ("2", "1", "WORKING with a message"),
        ("3", "1", "artifact result: 1 part"),
        ("4", "2", "taken over; events after 1 of the lost attempt do not count"),
        ("5", "2", "artifact result (more): 1 part"),
        ("6", "2", "COMPLETED"),
    ]
    assert [(row["attempt"], row["events"], row["outcome"]) for row in shown["attempts"]] == [
        ("1", "3", "lost, and taken over"),
        ("2", "3", "COMPLETED"),
    ]
    times = [row["time"] for row in shown["events"]]
    assert times == sorted(times)
    assert [(row["began"], row["last"]) for row in shown["attempts"]] == [
        (times[0], times[2]),
        (times[3], times[5]),
    ]
    assert times[3] > times[2]
    assert shown["since"] == times[5]
    printed = place.tasks("show", task_id).stdout
    assert "secret" not in result.stdout + printed
    assert "taken over" in printed


def test_show_tells_what_was_said_if_it_is_asked_to(place: Place) -> None:
    task_id = place.fill(interrupted)
    rows = json.loads(place.tasks("show", task_id, "--text", "--json").stdout)["events"]
    assert [row["text"] for row in rows] == ["a secret question", "a secret word", "a secret result"]
    printed = place.tasks("show", task_id, "--text").stdout
    assert "a secret result" in printed


def test_show_knows_runs_that_were_answered_with_a_bare_message(place: Place) -> None:
    ids = place.fill(one_of_each)
    shown = json.loads(place.tasks("show", ids["hidden"], "--json").stdout)
    assert shown["state"] == "answered with a bare message"
    assert shown["attempts"][0]["outcome"] == "a bare message"
    assert [row["event"] for row in shown["events"]][-1] == "a bare message was the answer"


def test_a_task_that_is_not_there_is_told_of(place: Place) -> None:
    for command in (("show",), ("cancel",), ("purge", "--yes")):
        result = place.tasks(command[0], "nope", *command[1:])
        assert (result.exit_code, result.stdout) == (1, "")
        assert "there is no task nope here" in result.stderr


def test_named_tasks_are_purged_whatever_their_age(place: Place) -> None:
    ids = place.fill(one_of_each)
    gone = [ids[name] for name in ("completed", "canceled", "hidden", "other")]
    result = place.tasks("purge", *gone, gone[0], "--yes")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "4 tasks purged\n", "")
    assert place.left() == set(ids.values()) - set(gone)
    assert place.tasks("show", gone[0]).exit_code == 1


@pytest.mark.parametrize("name", ["submitted", "working", "input_required", "auth_required"])
def test_a_task_that_is_not_finished_is_not_purged_and_those_named_with_it_neither(
    place: Place, name: str
) -> None:
    ids = place.fill(one_of_each)
    result = place.tasks("purge", ids["completed"], ids[name], "--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{ids[name]} is {name.upper()}; cancel it first. Nothing was purged" in result.stderr
    assert place.left() == set(ids.values())


CHOICES = [
    (("--older-than", "2h"), FINAL | {"hidden", "other"}),
    (("--older-than", "0s"), FINAL | {"hidden", "other", "young"}),
    (("--older-than", "2h", "--agent", "writer"), FINAL | {"hidden"}),
    (("--older-than", "2h", "--agent", "reader"), {"other"}),
    (("--older-than", "2h", "--agent", "nobody"), set()),
    (("--older-than", "2h", "--state", "failed"), {"failed"}),
    (("--older-than", "2h", "--state", "FAILED", "--state", "rejected"), {"failed", "rejected"}),
    (("--older-than", "2h", "--state", "completed"), {"completed", "hidden", "other"}),
    (("--older-than", "4h"), set()),
]


@pytest.mark.parametrize(("options", "names"), CHOICES)
def test_finished_tasks_are_purged_by_age_state_and_agent(
    place: Place, options: tuple[str, ...], names: set[str]
) -> None:
    ids = place.fill(one_of_each)
    place.shift_clock(3 * HOUR)
    ids["young"] = place.fill(lambda store: brought_to(store, S.COMPLETED)).task_id
    place.shift_clock(1)
    before = set(ids.values())
    tried = place.tasks("purge", *options, "--dry-run", "--json")
    assert json.loads(tried.stdout) == {"purged": 0, "would_purge": len(names)}
    assert place.left() == before
    done = place.tasks("purge", *options, "--yes", "--json")
    assert (tried.exit_code, done.exit_code) == (0, 0)
    assert json.loads(done.stdout) == {"purged": len(names)}
    assert place.left() == before - {ids[name] for name in names}


def test_a_dry_run_says_how_many_it_would_be(place: Place) -> None:
    ids = place.fill(one_of_each)
    assert place.tasks("purge", ids["failed"], "--dry-run").stdout == "1 task would be purged\n"
    place.shift_clock(1)
    assert place.tasks("purge", "--older-than", "0s", "--dry-run").stdout == "6 tasks would be purged\n"


REFUSED = [
    ((), "--older-than 30d"),
    (("--state", "failed"), "--older-than 30d"),
    (("--agent", "writer"), "--older-than 30d"),
    (("some-id", "--older-than", "1d"), "not both"),
    (("some-id", "--state", "failed"), "not both"),
    (("some-id", "--agent", "writer"), "not both"),
    (("--older-than", "soon"), '--older-than = "soon" is no duration'),
    (("--older-than", "30"), '--older-than = "30" is no duration'),
    (("--older-than", "1d", "--state", "working"), "only finished tasks are purged"),
    (("--older-than", "1d", "--state", "done"), "no such state"),
]


@pytest.mark.parametrize(("arguments", "said"), REFUSED)
def test_what_is_asked_wrongly_is_refused(place: Place, arguments: tuple[str, ...], said: str) -> None:
    ids = place.fill(one_of_each)
    result = place.tasks("purge", *arguments, "--yes")
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert place.left() == set(ids.values())


def test_without_a_terminal_nothing_is_purged_unasked(place: Place) -> None:
    ids = place.fill(one_of_each)
    place.shift_clock(1)
    result = place.tasks("purge", "--older-than", "0s")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "dragoman: 6 tasks would be purged for ever; say --yes if that is right\n"
    assert place.left() == set(ids.values())


def test_where_nothing_is_to_be_purged_nobody_is_asked(place: Place) -> None:
    place.fill(one_of_each)
    result = place.tasks("purge", "--older-than", "1d")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "0 tasks purged\n", "")


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_at_a_terminal_the_operator_is_asked(place: Place, answer: str, code: int) -> None:
    ids = place.fill(one_of_each)
    terminal, theirs = os.openpty()
    os.write(terminal, f"{answer}\n".encode())
    ended = subprocess.run(
        [sys.executable, "-m", "dragoman", "tasks", "purge", ids["failed"], "--data", str(place.data)],
        stdin=theirs,
        capture_output=True,
        text=True,
        timeout=30,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        check=False,
    )
    os.close(terminal)
    os.close(theirs)
    assert ended.returncode == code
    assert "Purge 1 task for ever?" in ended.stderr
    assert (ids["failed"] in place.left()) == bool(code)
    assert ended.stdout == ("" if code else "1 task purged\n")


def test_a_large_task_is_purged_whole(place: Place) -> None:
    async def large(store: SqliteStore) -> str:
        lease = await begun(store)
        for _ in range(20):
            await store.append(lease, [chunk("x" * 1000, append=True) for _ in range(100)])
        await store.append(lease, [status(S.COMPLETED)])
        return lease.task_id

    task_id = place.fill(large)
    assert place.tasks("purge", task_id, "--yes").exit_code == 0
    with closing(sqlite3.connect(place.data / "dragoman.db")) as connection:
        for table in ("task", "event", "identity", "journal"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)  # noqa: S608


def test_a_folder_without_a_store_is_named(place: Place, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["tasks", "purge", "x", "--yes", "--data", str(tmp_path / "elsewhere")])
    assert result.exit_code == 1
    assert "there is no store at" in result.stderr


def test_totals_are_right_after_a_purge(place: Place) -> None:
    ids = place.fill(one_of_each)
    place.tasks("purge", ids["completed"], ids["failed"], "--yes")

    async def totals(store: SqliteStore) -> dict[str, int]:
        return {state.name: (await one_page(store, filters(ALICE, state=state))).total for state in TaskState}

    found = place.fill(totals)
    assert found == {state.name: int(state not in (S.COMPLETED, S.FAILED)) for state in TaskState}
