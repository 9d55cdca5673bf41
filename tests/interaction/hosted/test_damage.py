"""What is damaged in the store is an error for every way to read it, and never an empty success."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness import stores
from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interaction.answers import refused
from tests.interaction.events import Item
from tests.interaction.following import got, sent
from tests.interaction.hosted.callers import UNVERIFIED, Hosted
from tests.interaction.hosted.requirements import covers
from tests.interaction.messages import send_params

Change = Callable[[bytes], bytes | None]

DAMAGES: dict[str, Change] = {
    "another text": lambda row: row.replace(b"plum pie", b"Plum pie"),
    "a longer text": lambda row: row.replace(b"plum pie", b"plum pie "),
    "an empty text": lambda row: row.replace(b"plum pie", b""),
    "another checksum": lambda row: row.replace(b'"sha256":"', b'"sha256":"0'),
    "no checksum": lambda row: row.replace(b"sha256", b"sha255"),
    "another count": lambda row: row.replace(b'"byteCount":8', b'"byteCount":9'),
    "another kind": lambda row: row.replace(b'"c":"artifact"', b'"c":"artefact"'),
    "no JSON": lambda row: row[:40],
    "no UTF-8": lambda row: row.replace(b"plum pie", b"plum \xff pie"),
    "nothing": lambda row: b"",
}
MISSING: dict[str, Change] = {
    "the row": lambda row: None,
    "an artifact in the row": lambda row: b'{"c":"status","state":2}',
}


class Damage:
    """Changes rows of the store behind the server's back."""

    def __init__(self, data: Path) -> None:
        self._data = data

    def do(self, task_id: str, change: Change, kind: bytes = b"artifact") -> None:
        """Change the one event of a kind that a task has; `None` deletes it."""
        events = stores.query(self._data, "SELECT seq, payload FROM event WHERE task_id = ?", task_id)
        ((seq, payload),) = [event for event in events if event[1].startswith(b'{"c":"%s"' % kind)]
        changed = change(payload)
        assert changed != payload
        where = "WHERE task_id = ? AND seq = ?"
        if changed is None:
            stores.execute(self._data, f"DELETE FROM event {where}", task_id, seq)  # noqa: S608 - a fragment of ours
        else:
            stores.execute(self._data, f"UPDATE event SET payload = ? {where}", changed, task_id, seq)  # noqa: S608


@pytest.fixture
def alice(client: httpx2.Client, server: ServerProcess) -> Hosted:
    """Somebody whose listings are of no use to other tests afterwards."""
    return Hosted(client, server.url, who="FAYE")


@pytest.fixture
def damage(server: ServerProcess) -> Damage:
    """What damages the rows of the server."""
    return Damage(server.data)


def damaged(alice: Hosted, damage: Damage, change: Change) -> tuple[dict[str, Any], dict[str, Any]]:
    """A task whose result was damaged, as it was, and the parameters that it was sent with."""
    params = send_params("plum pie")
    task = alice.call("SendMessage", params).task
    assert task["artifacts"][0]["metadata"]["byteCount"] == 8
    damage.do(task["id"], change)
    return task, params


def check_unverified(alice: Hosted, task: dict[str, Any], params: dict[str, Any]) -> None:
    """Every way to read the result is the same error."""
    context = {"contextId": task["contextId"], "includeArtifacts": True}
    for reply in (
        alice.call("GetTask", {"id": task["id"]}),
        alice.call("GetTask", {"id": task["id"], "historyLength": 0}),
        alice.call("ListTasks", context),
        alice.call("ListTasks", {"includeArtifacts": True, "pageSize": 1}),
        alice.call("SendMessage", params),
        alice.call("SendMessage", {**params, "configuration": {"returnImmediately": True}}),
    ):
        metadata = refused(reply, UNVERIFIED, identifier=1)
        assert metadata["taskId"] == task["id"]
        assert b"plum pie" not in reply.body
    with alice.open("SendStreamingMessage", params) as stream:
        if stream.status == 200 and "event-stream" in stream.headers["content-type"]:
            items: list[Item] = stream.rest()
            assert [item.kind for item in items] == ["error"]
            assert items[0].value["data"][0]["reason"] == "ARTIFACT_UNVERIFIED"
        else:
            refused(stream.reply(), UNVERIFIED, identifier=1)


@covers("damage.read")
@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_result_is_an_error(alice: Hosted, damage: Damage, change: Change) -> None:
    check_unverified(alice, *damaged(alice, damage, change))


@covers("damage.missing")
@pytest.mark.parametrize("change", MISSING.values(), ids=MISSING)
def test_a_result_that_is_gone_is_an_error(alice: Hosted, damage: Damage, change: Change) -> None:
    check_unverified(alice, *damaged(alice, damage, change))


@covers("damage.read")
@pytest.mark.parametrize("change", [DAMAGES["another text"], DAMAGES["no JSON"]])
def test_what_does_not_show_the_result_goes_on(alice: Hosted, damage: Damage, change: Change) -> None:
    task, _ = damaged(alice, damage, change)
    listed = alice.call("ListTasks", {"contextId": task["contextId"]}).result
    assert [(one["id"], one["status"]) for one in listed["tasks"]] == [(task["id"], task["status"])]
    other = sent(alice, "another")
    assert got(alice, other["id"]) == other


@covers("damage.read")
def test_a_damaged_status_is_an_error_of_lists_too(alice: Hosted, damage: Damage) -> None:
    task = sent(alice, "plum pie")
    damage.do(task["id"], lambda row: row[1:], b"status")
    refused(alice.call("ListTasks", {"contextId": task["contextId"]}), UNVERIFIED, identifier=1)
    refused(alice.call("GetTask", {"id": task["id"]}), UNVERIFIED, identifier=1)


@covers("damage.read")
def test_a_subscription_shows_no_damaged_event(probe: Hosted, damage: Damage, held: str) -> None:
    damage.do(held, lambda row: row[1:], b"status")
    refused(probe.call("SubscribeToTask", {"id": held}), UNVERIFIED, identifier=1)


@covers("damage.logged")
@pytest.mark.parametrize("change", [DAMAGES["another text"], DAMAGES["no JSON"], MISSING["the row"]])
def test_the_log_names_the_task(alice: Hosted, server: ServerProcess, damage: Damage, change: Change) -> None:
    task, _ = damaged(alice, damage, change)
    reply = alice.call("GetTask", {"id": task["id"]})
    identifier = reply.headers["x-request-id"]

    def request() -> list[dict[str, Any]]:
        return [line for line in server.log_lines() if line.get("request_id") == identifier]

    (line,) = until(request, what="the request is in the log")
    assert line["outcome"] == "ARTIFACT_UNVERIFIED"
    named = [line for line in server.log_lines() if line.get("task_id") == task["id"]]
    assert [line["level"] for line in named if line["logger"] != "dragoman.request"] == ["error"]
    assert "plum pie" not in "".join(map(str, server.log_lines()))
