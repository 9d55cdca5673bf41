"""The admin surface on a real store: what each path does and answers, and what it refuses, naming the field."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.admin.asking import BODY_LIMIT, LARGEST_PAGE, PAGE
from dragoman.admin.surface import PREFIX, AdminSurface
from dragoman.bindings.exchange import Exchange, RawRequest
from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.tenants import Declared, Kind
from dragoman.identity import Credential, Failures, Gate, Keeper, Registry, hash_token
from dragoman.model import Principal, Scope, TaskState
from dragoman.model.errors import (
    BodyTooLarge,
    DragomanError,
    EntryConflict,
    EntryNotFound,
    InvalidParams,
    MethodNotAllowed,
    MethodNotFound,
    TaskNotCancelable,
    TaskNotFound,
    UnsupportedMediaType,
)
from dragoman.model.principal import rights_of
from dragoman.protocol.headers import Headers
from dragoman.stores.sqlite import SqliteStore
from tests.contract.samples import acceptance, brought_to, message

ROOT = "a-token-of-the-operator"
AGENTS = [{"id": f"agent-{number}"} for number in range(5)]
DECLARED = Declared(
    features={"ops": frozenset()},
    principals=frozenset({("ops", "root")}),
    resources=frozenset({("acme", Kind.WORKSPACE, "lab")}),
)


class World:
    """A surface, its store and its gate, on a loop of their own."""

    def __init__(self, folder: Path) -> None:
        self._runner = asyncio.Runner()
        self.applied = 0
        self._runner.run(self._open(folder))

    async def _open(self, folder: Path) -> None:
        root = Credential("place", Principal("ops", "root", rights_of(["admin:*"]), "place"))
        self.gate = Gate(Registry({"ops": []}, {hash_token(ROOT): root}), Failures(5, 1.0))
        self.store = SqliteStore(folder / "dragoman.db", lease=15.0, on_lost=lambda: None)
        self.keeper = Keeper(self.gate, DECLARED, self.store, lambda: None)
        self.surface = AdminSurface(
            self.gate, self.store, DECLARED, agents=lambda: AGENTS, cancel=self._cancel, apply=self._apply
        )

    async def _apply(self) -> None:
        self.applied += 1
        await self.keeper.refresh()

    async def _cancel(self, scope: Scope, task_id: str, entry: AuditEntry) -> None:
        await self.store.cancel(scope, task_id, audit=entry)

    def close(self) -> None:
        self.store.close()
        self._runner.close()

    def run(self, work: Awaitable[Any]) -> Any:
        async def awaited() -> Any:
            return await work

        return self._runner.run(awaited())

    def ask(
        self, method: str, path: str, document: Any = None, *, content_type: str | None = "application/json"
    ) -> tuple[int, Any]:
        """The status and the document that a request is answered with; raises what it is refused with."""
        path, _, query = path.partition("?")
        body = (
            document
            if isinstance(document, bytes)
            else b""
            if document is None
            else json.dumps(document).encode()
        )
        headers = [(b"authorization", f"Bearer {ROOT}".encode())]
        if body and content_type:
            headers.append((b"content-type", content_type.encode()))

        async def read(length: bytes | None, limit: int | None) -> bytes:
            if limit is not None and len(body) > limit:
                raise BodyTooLarge("too large")
            return body

        request = RawRequest(method, PREFIX + path, query.encode(), Headers(headers), "r", read, "10.0.0.1")
        exchange = Exchange(request, None)
        self.exchange = exchange
        reply = self.run(self.surface.serve(exchange))
        assert reply is not None
        assert (b"cache-control", b"no-store") in reply.headers
        return reply.status, json.loads(reply.body)

    def good(self, method: str, path: str, document: Any = None) -> Any:
        status, answer = self.ask(method, path, document)
        assert status in (200, 201), answer
        return answer

    def refused(self, method: str, path: str, document: Any = None, **how: Any) -> DragomanError:
        with pytest.raises(DragomanError) as refusal:
            self.ask(method, path, document, **how)
        return refusal.value

    def fields(self, method: str, path: str, document: Any = None) -> list[str]:
        """The fields that are named as wrong."""
        error = self.refused(method, path, document)
        assert isinstance(error, InvalidParams), error
        return [violation.field for violation in error.violations]

    def acts(self) -> list[str]:
        return [f"{row['action']} {row['target']}" for row in self.good("GET", "audit?limit=500")["audit"]]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """With the tenant acme, and alice in it."""
    made = World(tmp_path)
    made.good("POST", "tenants", {"name": "acme", "features": ["agent_api"]})
    made.good("PUT", "tenants/acme/principals/alice")
    yield made
    made.close()


def test_a_tenant_is_made_shown_and_removed(world: World) -> None:
    status, made = world.ask("POST", "tenants", {"name": "umbrella", "features": ["agent_api"]})
    shown = {"name": "umbrella", "origin": "store", "features": ["agent_api"], "principals": 0, "limits": {}}
    assert (status, made) == (201, shown)
    assert world.exchange.route == "/v1/admin/tenants"
    assert world.good("GET", "tenants/umbrella") == shown
    assert world.exchange.route == "/v1/admin/tenants/{tenant}"
    listed = world.good("GET", "tenants")
    assert [one["name"] for one in listed["tenants"]] == ["acme", "ops", "umbrella"]
    assert listed["after"] == ""
    assert world.good("DELETE", "tenants/umbrella") == {"changed": True, "tasksLeft": False}
    assert isinstance(world.refused("GET", "tenants/umbrella"), EntryNotFound)


@pytest.mark.parametrize(
    ("put", "there"),
    [
        ("tenants/ops/features/agent_api", lambda w: "agent_api" in w.good("GET", "tenants/ops")["features"]),
        ("tenants/acme/principals/bob", lambda w: "bob" in names(w, "tenants/acme/principals")),
        ("tenants/acme/workspaces/hall", lambda w: "hall" in names(w, "tenants/acme/workspaces")),
        ("tenants/acme/sources/wiki", lambda w: "wiki" in names(w, "tenants/acme/sources")),
        ("tenants/acme/workspaces/lab/grants/alice", lambda w: granted(w, "workspaces", "lab") == ["alice"]),
    ],
)
def test_what_is_put_is_there_until_it_is_deleted_and_twice_is_once(
    world: World, put: str, there: Callable[[World], bool]
) -> None:
    assert not there(world)
    applied = world.applied
    assert world.good("PUT", put) == {"changed": True}
    assert there(world)
    assert world.good("PUT", put) == {"changed": False}
    assert world.good("DELETE", put)["changed"] is True
    assert not there(world)
    assert world.applied == applied + 3


def test_a_limit_is_put_changed_and_deleted(world: World) -> None:
    put = "tenants/acme/limits/rate.principal"
    assert world.good("PUT", put, {"most": 60}) == {"changed": True}
    assert world.exchange.route == "/v1/admin/tenants/{tenant}/limits/{limit}"
    assert world.good("PUT", put, {"most": 60}) == {"changed": False}
    assert world.good("PUT", put, {"most": 30}) == {"changed": True}
    assert world.good("GET", "tenants/acme")["limits"] == {"rate.principal": 30}
    alice = Principal("acme", "alice")
    allowance = world.gate.allowance(alice)
    assert allowance is not None
    assert allowance.limits() == {"rate.principal": 30}
    assert world.good("DELETE", put) == {"changed": True}
    assert world.good("DELETE", put) == {"changed": False}
    assert world.gate.allowance(alice) is None


def names(world: World, path: str) -> list[str]:
    (found,) = (value for name, value in world.good("GET", path).items() if name != "after")
    return [one["name"] for one in found]


def granted(world: World, kind: str, name: str) -> list[str]:
    found = {one["name"]: one["granted"] for one in world.good("GET", f"tenants/acme/{kind}")[kind]}
    return list(found[name])


def test_principals_are_shown_with_what_they_have(world: World) -> None:
    world.good("PUT", "tenants/acme/workspaces/lab/grants/alice")
    world.good("POST", "tokens", {"tenant": "acme", "principal": "alice", "scopes": ["*"]})
    (alice,) = world.good("GET", "tenants/acme/principals")["principals"]
    assert alice == {"name": "alice", "origin": "store", "workspaces": ["lab"], "sources": [], "tokens": 1}


def test_a_token_is_shown_once_and_good_at_once(world: World) -> None:
    asked = {
        "tenant": "acme",
        "principal": "alice",
        "scopes": ["ai:answer"],
        "note": "a laptop",
        "expiresIn": 60,
    }
    status, made = world.ask("POST", "tokens", asked)
    assert status == 201
    text = made.pop("token")
    assert text.startswith("dgm_")
    assert {name: made[name] for name in ("tenant", "principal", "scopes", "note", "state")} == {
        "tenant": "acme", "principal": "alice", "scopes": ["ai:answer"], "note": "a laptop", "state": "good"
    }  # fmt: skip
    assert made["expiresAt"] > made["createdAt"]
    assert world.good("GET", f"tokens/{made['id']}") == made
    assert world.good("GET", "tokens")["tokens"] == [made]
    assert text not in json.dumps(world.good("GET", "audit"))
    alice = world.run(world.gate.identify([f"Bearer {text}".encode()], "127.0.0.1"))
    assert (alice.name, alice.credential) == ("alice", made["id"])

    assert world.good("DELETE", f"tokens/{made['id']}") == {"changed": True}
    with pytest.raises(DragomanError):
        world.gate.confirm(alice)
    assert world.good("DELETE", f"tokens/{made['id']}") == {"changed": False}
    shown = world.good("GET", f"tokens/{made['id']}")
    assert (shown["state"], "revokedAt" in shown) == ("revoked", True)


def test_what_is_done_is_noted_as_done_by_whoever_asked(world: World) -> None:
    world.good("PUT", "tenants/acme/sources/wiki")
    row = world.good("GET", "audit")["audit"][-1]
    assert {
        name: row[name] for name in ("tenant", "principal", "credential", "address", "action", "target")
    } == {
        "tenant": "ops",
        "principal": "root",
        "credential": "place",
        "address": "10.0.0.1",
        "action": "source.add",
        "target": "tenants/acme/sources/wiki",
    }


@pytest.mark.parametrize(
    ("method", "path", "document", "fields"),
    [
        ("POST", "tenants", {}, ["name"]),
        ("POST", "tenants", {"name": 1}, ["name"]),
        ("POST", "tenants", {"name": "A"}, ["name"]),
        ("POST", "tenants", {"name": "a", "features": "x"}, ["features"]),
        ("POST", "tenants", {"name": "a", "features": ["agent_api", "x"]}, ["features[1]"]),
        ("POST", "tenants", {"name": "a", "adopt": "yes"}, ["adopt"]),
        ("POST", "tenants", {"name": "a", "feature": []}, ["feature"]),
        ("POST", "tenants", [], ["body"]),
        ("POST", "tenants?dry=1", {"name": "a"}, ["dry"]),
        ("PUT", "tenants/acme/principals/Bob", None, ["name"]),
        ("PUT", "tenants/acme/principals/bob", {"adopt": 1}, ["adopt"]),
        ("PUT", "tenants/acme/principals/bob?adopt=true", None, ["adopt"]),
        ("PUT", "tenants/acme/workspaces/%2e%2e", None, ["name"]),
        ("PUT", "tenants/acme/features/x", None, ["feature"]),
        ("PUT", "tenants/acme/limits/x", {"most": 1}, ["limit"]),
        ("PUT", "tenants/acme/limits/rate.tenant", None, ["most"]),
        ("PUT", "tenants/acme/limits/rate.tenant", {"most": 0}, ["most"]),
        ("PUT", "tenants/acme/limits/rate.tenant", {"most": 1e10}, ["most"]),
        ("PUT", "tenants/acme/limits/rate.tenant", {"most": "many"}, ["most"]),
        ("DELETE", "tenants/acme/limits/x", None, ["limit"]),
        ("DELETE", "tenants/acme?recursive=1", None, ["recursive"]),
        ("POST", "tokens", {}, ["tenant"]),
        ("POST", "tokens", {"tenant": "acme", "principal": "alice"}, ["scopes"]),
        ("POST", "tokens", {"tenant": "acme", "principal": "alice", "scopes": ["*", "x"]}, ["scopes[1]"]),
        ("POST", "tokens", {"tenant": "acme", "principal": "alice", "scopes": [1]}, ["scopes[0]"]),
        ("POST", "tokens", {"tenant": "acme", "principal": "alice", "scopes": ["*"], "expiresIn": 0}, ["expiresIn"]),
        ("POST", "tokens", {"tenant": "acme", "principal": "alice", "scopes": ["*"], "expiresIn": 1e9}, ["expiresIn"]),
        ("POST", "tokens", {"tenant": "acme", "principal": "alice", "scopes": ["*"], "note": "a\nb"}, ["note"]),
        ("POST", "tokens", {"tenant": "acme", "principal": "alice", "scopes": ["*"], "scope": "*"}, ["scope"]),
        ("DELETE", "tokens/dgm_abc", None, ["id"]),
        ("GET", "tokens?limit=0", None, ["limit"]),
        ("GET", f"tokens?limit={LARGEST_PAGE + 1}", None, ["limit"]),
        ("GET", "tokens?tenat=acme", None, ["tenat"]),
        ("GET", "tokens?tenant=a&tenant=b", None, ["tenant"]),
        ("GET", "tenants?limit=x", None, ["limit"]),
        ("GET", "tenants/acme?x=1", None, ["x"]),
        ("GET", "runs?state=done", None, ["state"]),
        ("GET", "audit?since=yesterday", None, ["since"]),
        ("GET", "audit?after=-1", None, ["after"]),
        ("GET", "audit?after=" + "9" * 30, None, ["after"]),
        ("POST", "runs/x:cancel", {"why": 1}, ["why"]),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_and_nothing_is_changed(
    world: World, method: str, path: str, document: Any, fields: list[str]
) -> None:
    before = world.acts()
    assert world.fields(method, path, document) == fields
    assert world.acts() == before


@pytest.mark.parametrize(
    ("method", "path", "document", "error"),
    [
        ("GET", "tenants/acmee", None, EntryNotFound),
        ("DELETE", "tenants/acmee", None, EntryNotFound),
        ("DELETE", "tenants/ops", None, EntryConflict),
        ("POST", "tenants", {"name": "acme"}, EntryConflict),
        ("GET", "tenants/none/principals", None, EntryNotFound),
        ("PUT", "tenants/none/principals/bob", None, EntryNotFound),
        ("DELETE", "tenants/acme/principals/bob", None, EntryNotFound),
        ("PUT", "tenants/acme/sources/wiki/grants/alice", None, EntryNotFound),
        ("PUT", "tenants/acme/workspaces/lab/grants/bob", None, EntryNotFound),
        ("DELETE", "tenants/acme/workspaces/lab", None, EntryConflict),
        ("POST", "tokens", {"tenant": "acme", "principal": "bob", "scopes": ["*"]}, EntryNotFound),
        ("GET", "tokens/none", None, EntryNotFound),
        ("DELETE", "tokens/none", None, EntryNotFound),
        ("DELETE", "tokens/tenants.ops.principals.root.tokens%5B0%5D", None, EntryConflict),
        ("GET", "runs/none", None, TaskNotFound),
        ("POST", "runs/none:cancel", None, TaskNotFound),
        ("GET", "", None, MethodNotFound),
        ("GET", "tenant", None, MethodNotFound),
        ("GET", "tenants/", None, MethodNotFound),
        ("GET", "tenants/acme/principals/alice/tokens", None, MethodNotFound),
        ("GET", "tenants/acme/others", None, MethodNotFound),
    ],
)
def test_what_is_not_there_or_not_to_be_changed_here_is_told(
    world: World, method: str, path: str, document: Any, error: type[DragomanError]
) -> None:
    before = world.acts()
    assert type(world.refused(method, path, document)) is error
    assert world.acts() == before


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("tenants", ("GET", "POST", "HEAD")),
        ("tenants/acme", ("GET", "DELETE", "HEAD")),
        ("tenants/acme/principals", ("GET", "HEAD")),
        ("tenants/acme/principals/alice", ("PUT", "DELETE")),
        ("tenants/acme/sources/wiki/grants/alice", ("PUT", "DELETE")),
        ("tokens/x", ("GET", "DELETE", "HEAD")),
        ("runs/x", ("GET", "HEAD")),
        ("runs/x:cancel", ("POST",)),
        ("audit", ("GET", "HEAD")),
    ],
)
def test_a_path_has_its_methods_and_no_others(world: World, path: str, allowed: tuple[str, ...]) -> None:
    for method in {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} - set(allowed):
        error = world.refused(method, path)
        assert isinstance(error, MethodNotAllowed)
        assert error.allowed == allowed


def test_bodies_are_json_and_bounded(world: World) -> None:
    tenant = {"name": "new"}
    assert isinstance(
        world.refused("POST", "tenants", tenant, content_type="text/plain"), UnsupportedMediaType
    )
    assert isinstance(world.refused("POST", "tenants", tenant, content_type=None), UnsupportedMediaType)
    assert isinstance(
        world.refused("POST", "tenants", b'{"name":' + b" " * BODY_LIMIT + b'"a"}'), BodyTooLarge
    )
    assert world.refused("POST", "tenants", b'{"name": "a", "name": "b"}').reason in (
        "INVALID_PARAMS",
        "INVALID_REQUEST",
    )
    assert world.refused("POST", "tenants", b"{").reason == "INVALID_REQUEST"
    assert [one["name"] for one in world.good("GET", "tenants")["tenants"]] == ["acme", "ops"]
    assert world.ask("POST", "tenants", tenant, content_type="Application/JSON; charset=utf-8")[0] == 201


def pages(world: World, path: str, member: str, key: str = "name") -> list[list[Any]]:
    """All pages of a list, each as the keys of what is in it."""
    found, after = [], ""
    while True:
        joint = "&" if "?" in path else "?"
        page = world.good("GET", f"{path}{joint}after={after}")
        found.append([one[key] for one in page[member]])
        after = page["after"]
        if not after:
            return found


def test_lists_come_in_pages(world: World) -> None:
    for number in range(4):
        world.good("PUT", f"tenants/acme/principals/p{number}")
        world.good("POST", "tokens", {"tenant": "acme", "principal": f"p{number}", "scopes": ["*"]})
    people = ["alice", "p0", "p1", "p2", "p3"]
    assert pages(world, "tenants/acme/principals?limit=2", "principals") == [
        people[:2],
        people[2:4],
        people[4:],
    ]
    assert pages(world, "tenants/acme/principals?limit=5", "principals") == [people]
    assert [len(page) for page in pages(world, "tokens?limit=3", "tokens", "id")] == [3, 1]
    (mine,) = world.good("GET", "tokens?tenant=acme&principal=p2")["tokens"]
    assert mine["principal"] == "p2"
    assert pages(world, "agents?limit=2", "agents", "id") == [
        ["agent-0", "agent-1"], ["agent-2", "agent-3"], ["agent-4"]
    ]  # fmt: skip
    ids = [number for page in pages(world, "audit?limit=4", "audit", "id") for number in page]
    assert ids == sorted(set(ids))
    assert len(ids) == 10
    assert world.good("GET", "audit?since=2100-01-01T00:00:00Z")["audit"] == []


def test_a_list_without_a_limit_has_one(world: World) -> None:
    for number in range(PAGE + 1):
        world.good("PUT", f"tenants/acme/sources/s{number:03}")
    first = world.good("GET", "tenants/acme/sources")
    assert (len(first["sources"]), first["after"]) == (PAGE, f"s{PAGE - 1:03}")


def test_runs_of_all_callers_are_shown_without_what_was_said(world: World) -> None:
    async def fill() -> list[str]:
        done = await brought_to(world.store, TaskState.COMPLETED)
        asked = await brought_to(world.store, TaskState.INPUT_REQUIRED)
        other = acceptance(message("a secret text"), scope=Scope("umbrella", "bob", "writer:hosted"))
        await world.store.accept(other)
        return [done.task_id, asked.task_id, other.task_id]

    done, asked, other = world.run(fill())
    shown = world.good("GET", "runs")
    assert [one["taskId"] for one in shown["runs"]] == sorted([done, asked, other], reverse=True)
    assert "secret" not in json.dumps(shown)
    by_id = {one["taskId"]: one for one in shown["runs"]}
    assert (by_id[other]["tenant"], by_id[other]["principal"], by_id[other]["agent"]) == (
        "umbrella",
        "bob",
        "writer",
    )
    assert (by_id[other]["hosted"], by_id[done]["hosted"]) == (True, False)
    assert (by_id[done]["state"], by_id[asked]["state"]) == ("completed", "input_required")
    assert world.good("GET", f"runs/{asked}") == by_id[asked]

    def found(query: str) -> list[str]:
        return [one["taskId"] for one in world.good("GET", f"runs?{query}")["runs"]]

    assert found("tenant=umbrella") == [other]
    assert found("state=completed") == [done]
    assert found("principal=alice&agent=writer&state=input_required") == [asked]
    assert found("tenant=nobody") == []
    assert [len(page) for page in pages(world, "runs?limit=2", "runs", "taskId")] in ([2, 1], [2, 1, 0])


def test_a_page_of_runs_looks_at_a_bounded_number_and_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.stores.sqlite.runs.LOOKED_AT", 3)

    async def fill() -> str:
        first = acceptance(message("first"), scope=Scope("umbrella", "bob", "writer"))
        await world.store.accept(first)
        for number in range(7):
            await world.store.accept(acceptance(message(f"{number}")))
        return first.task_id

    wanted = world.run(fill())
    found = pages(world, "runs?tenant=umbrella", "runs", "taskId")
    assert [one for page in found for one in page] == [wanted]
    assert len(found) > 1


def test_a_run_is_cancelled_once(world: World) -> None:
    async def begin() -> str:
        accepted = acceptance(message("Hello"))
        await world.store.accept(accepted)
        return accepted.task_id

    task_id = world.run(begin())
    assert world.good("POST", f"runs/{task_id}:cancel")["state"] == "canceled"
    assert world.acts()[-1] == f"CancelTask agents/writer/tasks/{task_id}"
    assert isinstance(world.refused("POST", f"runs/{task_id}:cancel"), TaskNotCancelable)


def test_other_paths_are_somebody_elses(world: World) -> None:
    async def read(length: bytes | None, limit: int | None) -> bytes:
        return b""

    for path in ("/v1/admin", "/v1/administrate", "/v1/a2a/approvals", "/"):
        exchange = Exchange(RawRequest("GET", path, b"", Headers([]), "r", read), None)
        assert world.run(world.surface.serve(exchange)) is None
