"""How many waits and streams there may be at once, and that nothing else is kept waiting by them."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interaction.answers import Reply, refused
from tests.interaction.following import sent, state_of
from tests.interaction.hosted.callers import OBSERVER_LIMIT, Hosted, Watcher
from tests.interaction.hosted.conftest import HOSTED, PROBES, SHORT
from tests.interaction.hosted.requirements import covers
from tests.interaction.messages import send_params
from tests.interaction.rows import Rows

TENANTS, PRINCIPALS = 17, 5
PRINCIPAL, TENANT, EVERYBODY = 4, 16, 256


def secret(tenant: int, principal: int) -> str:
    """The token of a principal."""
    return f"token-of-t{tenant}-p{principal}-Zm9vYmFyLXNlY3JldA"


def configuration() -> str:
    """Tenants of five principals and one agent each, with the usual bounds."""
    pieces = [SHORT + HOSTED]
    for tenant in range(TENANTS):
        pieces.append(
            f'[agents.a{tenant}]\npython = "{PROBES}:probe"\ntenant = "t{tenant}"\nworkspace = "lab"\n'
            f'[tenants.t{tenant}]\nfeatures = ["agent_api"]\n'
        )
        pieces += [
            f'[tenants.t{tenant}.principals.p{principal}]\nworkspaces = ["lab"]\n'
            f'tokens = [{{ env = "T{tenant}P{principal}", scopes = ["*"] }}]\n'
            for principal in range(PRINCIPALS)
        ]
    return "".join(pieces)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of many tenants."""
    folder = tmp_path_factory.mktemp("crowd")
    file = folder / "dragoman.toml"
    file.write_text(configuration(), encoding="utf-8")
    tokens = {f"T{one}P{two}": secret(one, two) for one in range(TENANTS) for two in range(PRINCIPALS)}
    with ServerProcess(folder / "data", config=file, environment=tokens) as running:
        yield running


class Crowd:
    """Everybody who calls that server; each principal has one task that goes on."""

    def __init__(self, client: httpx2.Client, server: ServerProcess) -> None:
        self.server = server
        self.rows = Rows(server.data)
        self._client = client
        self._tasks: dict[tuple[int, int], str] = {}

    def caller(self, tenant: int, principal: int) -> Hosted:
        return Hosted(self._client, self.server.url, f"a{tenant}", secret(tenant, principal))

    def task(self, tenant: int, principal: int) -> str:
        if (tenant, principal) not in self._tasks:
            task = sent(self.caller(tenant, principal), "hold", wait=False)
            self._tasks[tenant, principal] = task["id"]
            until(
                lambda: state_of(self.caller(tenant, principal), task["id"]) == "TASK_STATE_WORKING",
                what="the task works",
            )
        return self._tasks[tenant, principal]

    def watch(self, tenant: int, principal: int) -> Watcher:
        """Begin to watch the principal's task; the server has let it in when this returns."""
        params = {"id": self.task(tenant, principal)}
        watcher = Watcher(self.server.url, self.caller(tenant, principal).request("SubscribeToTask", params))
        try:
            assert watcher.status() == 200
        except BaseException:
            watcher.close()
            raise
        return watcher

    def subscribe(self, tenant: int, principal: int) -> Reply:
        """Try to watch; what the server answers at once, if it refuses."""
        params = {"id": self.task(tenant, principal)}
        with self.caller(tenant, principal).open("SubscribeToTask", params) as stream:
            if stream.status != 200:
                return stream.reply()
            assert stream.next().kind == "task"
            return Reply("jsonrpc", 200, stream.headers, b"")

    def is_let_in(self, tenant: int, principal: int) -> bool:
        return self.subscribe(tenant, principal).status == 200

    def count(self) -> int:
        """How many observers the server says that there are."""
        text = self._client.get(f"{self.server.url}/metrics").text
        (line,) = [line for line in text.splitlines() if line.startswith("dragoman_observers ")]
        return int(float(line.split()[1]))

    def check_refused(self, tenant: int, principal: int) -> None:
        """Every kind of wait and stream is refused, nothing is stored, and all else works."""
        caller = self.caller(tenant, principal)
        task_id = self.task(tenant, principal)
        with self.rows.unchanged():
            for reply in (
                self.subscribe(tenant, principal),
                caller.call("SendMessage", send_params("hello")),
                caller.call("SendStreamingMessage", send_params("hello")),
            ):
                refused(reply, OBSERVER_LIMIT)
                assert int(reply.headers["retry-after"]) >= 1
        assert state_of(caller, task_id) == "TASK_STATE_WORKING"
        assert task_id in [task["id"] for task in caller.call("ListTasks").result["tasks"]]
        assert caller.card().status == 200
        at_once = sent(caller, "hold", wait=False)
        cancelled = caller.call("CancelTask", {"id": at_once["id"]}).result
        assert cancelled["status"]["state"] == "TASK_STATE_CANCELED"


@pytest.fixture
def everyone(client: httpx2.Client, crowd: ServerProcess) -> Iterator[Crowd]:
    """Everybody, nobody of whom watches; at the end nobody does either."""
    found = Crowd(client, crowd)
    yield found
    until(lambda: found.count() == 0, what="every place is free again")


@covers("observers.principal", "observers.stored", "observers.immediately", "observers.cancel")
def test_the_5th_observer_of_a_principal_is_refused(everyone: Crowd) -> None:
    with ExitStack() as stack:
        for _ in range(PRINCIPAL):
            stack.enter_context(everyone.watch(0, 0))
        everyone.check_refused(0, 0)
        assert everyone.is_let_in(0, 1), "others of the tenant are let in"


@covers("observers.principal", "observers.freed")
@pytest.mark.parametrize("kind", ["SubscribeToTask", "SendStreamingMessage", "SendMessage"])
def test_whoever_hangs_up_frees_the_place_within_a_second(everyone: Crowd, kind: str) -> None:
    caller = everyone.caller(1, 0)
    params: Any = {"id": everyone.task(1, 0)} if kind == "SubscribeToTask" else send_params("hold")
    with ExitStack() as stack:
        for _ in range(PRINCIPAL - 1):
            stack.enter_context(everyone.watch(1, 0))
        last = stack.enter_context(Watcher(everyone.server.url, caller.request(kind, params)))
        until(lambda: everyone.count() == PRINCIPAL, what="the last place is taken")
        assert not everyone.is_let_in(1, 0)
        last.close()
        until(lambda: everyone.is_let_in(1, 0), what="the place is free", seconds=1.0)
    if kind != "SubscribeToTask":
        for task in caller.call("ListTasks", {"status": "TASK_STATE_WORKING"}).result["tasks"]:
            if task["id"] != params.get("id") and task["id"] != everyone.task(1, 0):
                caller.call("CancelTask", {"id": task["id"]})


@covers("observers.freed")
def test_a_wait_that_is_over_frees_its_place(everyone: Crowd) -> None:
    caller = everyone.caller(2, 0)
    with ExitStack() as stack:
        for _ in range(PRINCIPAL - 1):
            stack.enter_context(everyone.watch(2, 0))
        for _ in range(3):
            assert caller.call("SendMessage", send_params("text 3")).task["artifacts"]
            with caller.open("SendStreamingMessage", send_params("text 3")) as stream:
                assert len(stream.rest()) == 3


@covers("observers.tenant", "observers.stored", "observers.immediately", "observers.cancel")
def test_the_17th_observer_of_a_tenant_is_refused(everyone: Crowd) -> None:
    with ExitStack() as stack:
        for number in range(TENANT):
            stack.enter_context(everyone.watch(3, number // PRINCIPAL))
        everyone.check_refused(3, 4)
        assert everyone.is_let_in(4, 0), "other tenants are let in"


@covers(
    "observers.everybody", "observers.stored", "observers.immediately", "observers.cancel", "observers.freed"
)
def test_the_257th_observer_of_all_is_refused(everyone: Crowd) -> None:
    with ExitStack() as stack:
        watchers = [
            stack.enter_context(everyone.watch(tenant, number // PRINCIPAL))
            for tenant in range(EVERYBODY // TENANT)
            for number in range(TENANT)
        ]
        assert everyone.count() == EVERYBODY
        everyone.check_refused(16, 0)
        watchers[77].close()
        until(lambda: everyone.is_let_in(16, 0), what="the place is free", seconds=1.0)


@covers("observers.principal")
def test_the_bounds_are_the_operators(client: httpx2.Client, tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    bounds = "observers = { global = 3, tenant = 2, principal = 1 }\n"
    file.write_text(configuration().replace(HOSTED, HOSTED + bounds), encoding="utf-8")
    tokens = {f"T{one}P{two}": secret(one, two) for one in range(TENANTS) for two in range(PRINCIPALS)}
    with ServerProcess(tmp_path / "data", config=file, environment=tokens) as server, ExitStack() as stack:
        few = Crowd(client, server)
        for tenant, principal in ((0, 0), (0, 1)):
            stack.enter_context(few.watch(tenant, principal))
        assert [few.is_let_in(*one) for one in ((0, 0), (0, 2), (1, 0))] == [False, False, True]
        until(lambda: few.count() == 2, what="whoever was let in has left")
        stack.enter_context(few.watch(1, 0))
        assert not few.is_let_in(2, 0)
