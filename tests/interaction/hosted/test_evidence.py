"""What callers may not see any more: grants count as they are now, for reads, lists, approvals and live streams."""

import asyncio
import io
import os
import socket
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2
import pytest
import uvicorn

from dragoman.app import Service
from dragoman.config import read_config
from dragoman.identity import Registry
from dragoman.roster import load_agents
from dragoman.telemetry.logs import LogSink
from tests.harness.polling import until
from tests.interaction.answers import NO_AGENT, TASK_NOT_FOUND, refused
from tests.interaction.events import Stream
from tests.interaction.following import ended, got, sent, state_of, texts
from tests.interaction.hosted.callers import NO_APPROVAL, TOKENS, Hosted, refused_outside, without_ids
from tests.interaction.hosted.conftest import AGENTS, HOSTED, SHORT, TENANTS, prepared
from tests.interaction.hosted.requirements import covers
from tests.interaction.hosted.test_streams import kinds
from tests.interaction.messages import message, send_params

LAB = 'workspaces = ["lab", "vault"]'
SOURCES = 'sources = ["wiki", "crm"]'
MISSING = "01a22a12-e644-7000-8b74-5c03475aed23"


class Inside:
    """A server in this process, on a thread of its own, whose grants can be taken away while it works."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self) -> Self:
        os.environ.update(TOKENS)
        self._thread.start()
        assert self._ready.wait(20)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._service.asgi.edge.end_streams)
        self._server.should_exit = True
        self._thread.join(20)
        for name in TOKENS:
            del os.environ[name]

    def grant(self, workspaces: list[str], sources: list[str]) -> None:
        """Make these the grants of alice, from now on."""
        gate = self._service.gate
        everybody = gate.registry
        who = ("acme", "alice")
        gate.registry = Registry(everybody.tenants, everybody.tokens, {who: workspaces}, {who: sources})

    async def _serve(self) -> None:
        config = read_config(_document(), {}, "this test")
        self._loop = asyncio.get_running_loop()
        self._service = Service(
            config,
            load_agents(config, []),
            data=self._folder,
            base_url=self.url,
            log=LogSink(io.TextIOWrapper(io.BytesIO())),
        )
        await self._service.start()
        self._server = uvicorn.Server(
            uvicorn.Config(self._service.asgi, lifespan="off", ws="none", log_config=None)
        )
        serving = asyncio.create_task(self._server.serve([self._socket]))
        self._ready.set()
        await serving
        await self._service.stop()


def _document() -> dict[str, Any]:
    return tomllib.loads(SHORT + HOSTED + AGENTS + TENANTS)


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    """A server whose grants can be taken away."""
    with Inside(tmp_path_factory.mktemp("inside") / "data") as running:
        yield running


@pytest.fixture
def alice_inside(client: httpx2.Client, inside: Inside) -> Hosted:
    """A caller who has all her grants at first."""
    inside.grant(["lab", "vault"], ["wiki", "crm"])
    return Hosted(client, inside.url, "probe")


TAKEN = pytest.mark.parametrize(
    ("workspaces", "sources"),
    [(["vault"], ["wiki", "crm"]), (["lab"], ["crm"]), ([], [])],
    ids=["the workspace", "a source", "everything"],
)


def check_withheld(caller: Hosted, task: dict[str, Any]) -> None:
    """The task is not there for anybody who reads, just as one that never was."""
    for operation in ("GetTask", "SubscribeToTask"):
        there = caller.call(operation, {"id": task["id"]})
        missing = caller.call(operation, {"id": MISSING})
        assert without_ids(there, task["id"]) == without_ids(missing, MISSING)
        refused(there, TASK_NOT_FOUND, identifier=1)
    for params in ({}, {"contextId": task["contextId"]}, {"status": task["status"]["state"]}):
        page = caller.call("ListTasks", {**params, "pageSize": 100, "includeArtifacts": True}).result
        assert task["id"] not in [one["id"] for one in page["tasks"]]
        assert page["totalSize"] == len(page["tasks"])
    there, missing = caller.resume(task["id"], "go on"), caller.resume(MISSING, "go on")
    assert without_ids(there, task["id"]) == without_ids(missing, MISSING)


def receipt(task: dict[str, Any], state: str) -> dict[str, Any]:
    """All that may be told of a task."""
    status = {"state": state, "timestamp": task["status"]["timestamp"]}
    return {"id": task["id"], "contextId": task["contextId"], "status": status}


@covers("evidence.source")
def test_a_run_that_uses_sources_is_read_by_whoever_has_them_all(alice_inside: Hosted) -> None:
    task = sent(alice_inside, "uses wiki,crm")
    assert texts(task) == ["from wiki,crm"]
    assert got(alice_inside, task["id"]) == task


@covers("evidence.workspace", "evidence.source", "evidence.lists", "evidence.returned")
@TAKEN
def test_what_is_withheld_is_not_there_and_comes_back_with_the_grant(
    alice_inside: Hosted, inside: Inside, workspaces: list[str], sources: list[str]
) -> None:
    task = sent(alice_inside, "uses crm,wiki")
    inside.grant(workspaces, sources)
    check_withheld(alice_inside, task)
    inside.grant(["lab"], ["wiki", "crm"])
    assert got(alice_inside, task["id"]) == task
    assert task["id"] in [one["id"] for one in alice_inside.call("ListTasks").result["tasks"]]


@covers("evidence.source", "evidence.lists")
def test_only_what_comes_from_a_lost_source_is_withheld(alice_inside: Hosted, inside: Inside) -> None:
    before = alice_inside.call("ListTasks").result["totalSize"]
    plain, wiki, crm = (sent(alice_inside, text) for text in ("text 3", "uses wiki", "uses crm"))
    inside.grant(["lab"], ["crm"])
    listed = alice_inside.call("ListTasks", {"pageSize": 2}).result
    assert [one["id"] for one in listed["tasks"]] == [crm["id"], plain["id"]]
    assert listed["totalSize"] <= before + 2
    for task in (plain, crm):
        assert got(alice_inside, task["id"]) == task
    check_withheld(alice_inside, wiki)


@covers("evidence.source")
def test_a_source_that_nobody_was_ever_granted_withholds_from_everybody(alice_inside: Hosted) -> None:
    task = sent(alice_inside, "uses wiki,payroll")
    assert task == receipt(task, "TASK_STATE_COMPLETED")
    check_withheld(alice_inside, task)


@covers("evidence.workspace")
def test_without_the_workspace_there_is_no_card_and_nothing_is_sent(
    alice_inside: Hosted, inside: Inside
) -> None:
    inside.grant(["vault"], ["wiki", "crm"])
    refused(alice_inside.card(), NO_AGENT)
    refused(alice_inside.call("SendMessage", send_params("text 3")), NO_AGENT)
    assert alice_inside.to("vault").card().status == 200


@covers("evidence.cancel")
@TAKEN
def test_a_cancel_works_and_tells_only_the_state(
    alice_inside: Hosted, inside: Inside, workspaces: list[str], sources: list[str]
) -> None:
    task_id = sent(alice_inside, "reads wiki", wait=False)["id"]
    until(lambda: "message" in got(alice_inside, task_id)["status"], what="it has told of what it reads")
    inside.grant(workspaces, sources)
    cancelled = alice_inside.call("CancelTask", {"id": task_id}).result
    assert cancelled == receipt(cancelled, "TASK_STATE_CANCELED")
    refused(alice_inside.call("CancelTask", {"id": MISSING}), TASK_NOT_FOUND, identifier=1)
    again = alice_inside.call("CancelTask", {"id": task_id})
    assert again.reason == "TASK_NOT_CANCELABLE"
    assert "wiki" not in again.body.decode()


@covers("evidence.sends")
def test_a_message_that_is_sent_again_tells_only_the_state(alice_inside: Hosted, inside: Inside) -> None:
    params = {"message": message("uses wiki")}
    task = alice_inside.call("SendMessage", params).task
    inside.grant(["lab"], ["crm"])
    again = alice_inside.call("SendMessage", params)
    assert again.task == receipt(task, "TASK_STATE_COMPLETED")
    assert again.headers["idempotent-replayed"] == "true"
    with alice_inside.open("SendStreamingMessage", params) as stream:
        (item,) = stream.rest()
        assert (item.kind, item.value) == ("task", receipt(task, "TASK_STATE_COMPLETED"))


@covers("evidence.sends")
def test_a_wait_tells_only_the_state_of_what_was_withheld_meanwhile(
    alice_inside: Hosted, inside: Inside, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    answers: list[dict[str, Any]] = []

    def wait() -> None:
        with httpx2.Client(timeout=20, trust_env=False) as own:
            caller = Hosted(own, inside.url, "probe")
            answers.append(sent(caller, f"reads wiki {release}"))

    waiting = threading.Thread(target=wait)
    waiting.start()
    until(
        lambda: any("message" in one["status"] for one in alice_inside.call("ListTasks").result["tasks"][:1]),
        what="it reads",
    )
    inside.grant(["lab"], ["crm"])
    release.touch()
    waiting.join(20)
    assert answers == [receipt(answers[0], "TASK_STATE_COMPLETED")]


def following(caller: Hosted, operation: str) -> Any:
    """Follow a run that reads the wiki, and goes on."""
    if operation == "SendStreamingMessage":
        return caller.open(operation, send_params("reads wiki"))
    task_id = sent(caller, "reads wiki", wait=False)["id"]
    return caller.open(operation, {"id": task_id})


@covers("evidence.streams")
@pytest.mark.parametrize("operation", ["SendStreamingMessage", "SubscribeToTask"])
@TAKEN
def test_a_live_stream_ends_within_5_seconds(
    alice_inside: Hosted, inside: Inside, operation: str, workspaces: list[str], sources: list[str]
) -> None:
    stream: Stream
    with following(alice_inside, operation) as stream:
        first = stream.next()
        task_id = first.value["id"]
        until(lambda: "message" in got(alice_inside, task_id)["status"], what="it reads")
        inside.grant(workspaces, sources)
        began = time.monotonic()
        rest = stream.rest()
        assert time.monotonic() - began < 5
    assert set(kinds([first, *rest])) <= {"task SUBMITTED", "task WORKING", "statusUpdate WORKING"}
    inside.grant(["lab"], ["wiki", "crm"])
    assert state_of(alice_inside, task_id) == "TASK_STATE_WORKING", "the run itself goes on"
    alice_inside.call("CancelTask", {"id": task_id})


@covers("evidence.streams")
def test_a_stream_that_may_go_on_does(alice_inside: Hosted, inside: Inside) -> None:
    with following(alice_inside, "SubscribeToTask") as stream:
        task_id = stream.next().value["id"]
        inside.grant(["lab"], ["wiki"])
        quiet_until = time.monotonic() + 2.5
        until(lambda: time.monotonic() > quiet_until, what="it was looked at again, more than once")
        alice_inside.call("CancelTask", {"id": task_id})
        assert kinds(stream.rest())[-1] == "statusUpdate CANCELED"


@covers("approval.evidence", "evidence.source")
def test_who_may_not_see_a_run_does_not_see_its_approvals(alice: Hosted) -> None:
    """The server here is the usual one: carol has the wiki, bob has not, erin neither, and dora no workspace."""
    star = alice.by("ALICE_STAR").to("probe")
    plain, wiki = sent(star, "approved"), sent(star, "approved wiki")
    seen = {
        who: {one["taskId"] for one in star.by(who).approvals()} & {plain["id"], wiki["id"]}
        for who in ("ALICE_STAR", "CAROL", "BOB", "ERIN", "DORA")
    }
    assert seen == {
        "ALICE_STAR": {plain["id"], wiki["id"]},
        "CAROL": {plain["id"], wiki["id"]},
        "BOB": {plain["id"]},
        "ERIN": {plain["id"]},
        "DORA": set(),
    }
    for who, task in (("BOB", wiki), ("DORA", wiki), ("DORA", plain)):
        approval_id = star.approval_of(task)["id"]
        there, missing = star.by(who).decide(approval_id, "approve"), star.by(who).decide(MISSING, "approve")
        assert without_ids(there, approval_id) == without_ids(missing, MISSING)
        refused_outside(there, NO_APPROVAL)
    for task in (plain, wiki):
        assert star.by("CAROL").decide(star.approval_of(task)["id"], "deny", note="no").status == 200
        ended(star, task["id"])


@covers("evidence.workspace", "evidence.source", "evidence.cancel")
def test_grants_of_the_configuration_count_as_they_are_when_it_is_read(
    client: httpx2.Client, tmp_path: Path
) -> None:
    server = prepared(tmp_path, SHORT + HOSTED + AGENTS + TENANTS)
    with server:
        probe = Hosted(client, server.url, "probe")
        tasks = [sent(probe, "uses wiki"), sent(probe, "text 3")]
        asking = sent(probe, "twice")

        def restart(tenants: str) -> Hosted:
            server.terminate()
            config = SHORT + HOSTED + AGENTS + tenants
            (tmp_path / "dragoman.toml").write_text(config, encoding="utf-8")
            server.start()
            return Hosted(client, server.url, "probe")

        probe = restart(TENANTS.replace(SOURCES, 'sources = ["crm"]'))
        check_withheld(probe, tasks[0])
        assert got(probe, tasks[1]["id"]) == tasks[1]
        probe = restart(TENANTS.replace(LAB, 'workspaces = ["vault"]'))
        for task in (*tasks, asking):
            check_withheld(probe, task)
        cancelled = probe.call("CancelTask", {"id": asking["id"]}).result
        assert cancelled == receipt(cancelled, "TASK_STATE_CANCELED")
        probe = restart(TENANTS)
        assert [got(probe, task["id"]) for task in tasks] == tasks
