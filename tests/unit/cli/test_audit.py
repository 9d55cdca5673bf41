"""`dragoman audit export`, and the acts of an operator at the machine that are in it."""

import asyncio
import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dragoman.cli import app, audit
from dragoman.cli.administering import HERE
from dragoman.gateway.audit import AuditEntry
from dragoman.stores.sqlite import SqliteStore, administer
from tests.contract.samples import begun

ENTRY = AuditEntry(
    action="SendMessage",
    target="agents/demo/tasks/t",
    tenant="acme",
    principal="alice",
    credential="t1",
    address="10.0.0.1",
    detail="größer",
    times=2,
)


class Place:
    """A data folder whose store holds an audit."""

    def __init__(self, data: Path) -> None:
        self.data = data

    def note(self, *entries: AuditEntry) -> None:
        for entry in entries:
            administer(self.data / "dragoman.db", lambda book, entry=entry: book.note(entry))

    def shift_clock(self, seconds: float) -> None:
        with closing(sqlite3.connect(self.data / "dragoman.db", isolation_level=None)) as connection:
            connection.execute("UPDATE clock SET offset_ms = offset_ms + ?", (int(seconds * 1000),))

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(app, [*words, "--data", str(self.data)], catch_exceptions=False)

    def exported(self, *words: str) -> list[dict[str, Any]]:
        done = self.run("audit", "export", "--json", *words)
        assert (done.exit_code, done.stderr) == (0, "")
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path / "data")
    place.note()
    return place


def test_each_row_is_one_line(place: Place) -> None:
    place.note(ENTRY, AuditEntry(action="Access", outcome="UNAUTHENTICATED"))
    first, second = place.exported()
    told = {name: first[name] for name in ENTRY.__struct_fields__}
    assert AuditEntry(**told) == ENTRY
    assert first["id"] < second["id"]
    assert first["time"] <= second["time"]
    assert first["time"].endswith("Z")
    lines = place.run("audit", "export").stdout.splitlines()
    assert lines[0].split("\t") == list(first)
    assert lines[1].split("\t") == [str(value) for value in first.values()]
    assert len(lines) == 3


def test_an_empty_audit_is_no_line_of_json_and_only_names_otherwise(place: Place) -> None:
    place.note(ENTRY)
    assert place.exported("--since", "2100-01-01") == []
    assert len(place.run("audit", "export", "--since", "2100-01-01").stdout.splitlines()) == 1


def test_a_long_audit_comes_whole_and_in_order(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "PAGE", 3)
    place.note(*(AuditEntry(action="Access", target=f"{n}") for n in range(10)))
    assert [row["target"] for row in place.exported()] == [str(n) for n in range(10)]


def test_only_what_happened_since_a_time(place: Place) -> None:
    place.note()
    place.note(AuditEntry(action="now"))
    place.shift_clock(-86_400)
    place.note(AuditEntry(action="yesterday"))
    place.shift_clock(-9 * 86_400)
    place.note(AuditEntry(action="long ago"))

    def since(text: str) -> list[str]:
        return [row["action"] for row in place.exported("--since", text)]

    assert since("1h") == ["now"]
    assert since("2d") == ["now", "yesterday"]
    assert since("9" * 400 + "d") == since("30d") == ["now", "yesterday", "long ago"]
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - 2 * 86_400))
    for text in (stamp, f"{stamp}Z", f"{stamp}+00:00"):
        assert since(text) == ["now", "yesterday"]
    assert since(time.strftime("%Y-%m-%d", time.gmtime(time.time() - 3 * 86_400))) == ["now", "yesterday"]


@pytest.mark.parametrize("text", ["yesterday", "12", "2026-13-01", "-1h"])
def test_a_time_that_is_none_is_asked_wrongly(place: Place, text: str) -> None:
    done = place.run("audit", "export", "--since", text)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--since" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_tenants_part_is_what_it_did_and_what_was_done_to_it(place: Place) -> None:
    place.note(
        AuditEntry(action="a", tenant="acme"),
        AuditEntry(action="b", target="tenants/acme"),
        AuditEntry(action="c", target="tenants/acme/principals/alice"),
        AuditEntry(action="d", target="tenants/acme2"),
        AuditEntry(action="e", tenant="umbrella", target="agents/acme"),
    )
    assert [row["action"] for row in place.exported("--tenant", "acme")] == ["a", "b", "c"]


def test_without_a_store_there_is_none(tmp_path: Path) -> None:
    done = Place(tmp_path / "none").run("audit", "export", "--json")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "there is no store at" in done.stderr


def test_what_an_operator_does_to_tasks_is_in_it(place: Place) -> None:
    async def begin() -> str:
        store = SqliteStore(place.data / "dragoman.db", lease=15.0, on_lost=lambda: None)
        lease = await begun(store)
        store.close()
        return lease.task_id

    task_id = asyncio.run(begin())
    assert place.run("tasks", "cancel", task_id).exit_code == 0
    assert place.run("tasks", "cancel", task_id).exit_code == 1
    assert place.run("tasks", "purge", "--dry-run", "--older-than", "0s").exit_code == 0
    assert place.run("tasks", "purge", task_id, "--yes").exit_code == 0
    cancel, purge = place.exported()
    assert (cancel["action"], cancel["target"]) == ("CancelTask", f"agents/writer/tasks/{task_id}")
    assert (purge["action"], purge["target"], purge["detail"]) == ("tasks.purge", "tasks", "1 task")
    assert {row["address"] for row in (cancel, purge)} == {HERE}
    assert all(row["principal"] for row in (cancel, purge))
