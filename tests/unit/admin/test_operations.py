"""Administering tenants: what is refused changes nothing, what is done leaves a row of the audit, and twice is once."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.admin import Administration, Overview
from dragoman.admin.operations import LONGEST_LIFE, LONGEST_NOTE, Actor
from dragoman.gateway.audit import AuditRow
from dragoman.gateway.tenants import Declared, Kept, Kind
from dragoman.identity import hash_token
from dragoman.model import Scope
from dragoman.model.errors import DragomanError, EntryConflict, EntryNotFound, InvalidParams
from dragoman.model.principal import SCOPES
from dragoman.stores.sqlite import SqliteStore, administer, consult
from tests.contract.samples import acceptance, message

DECLARED = Declared(
    features={"toml": frozenset({"agent_api"})},
    principals=frozenset({("toml", "tom")}),
    resources=frozenset(
        {
            ("toml", Kind.WORKSPACE, "lab"),
            ("toml", Kind.WORKSPACE, "hall"),
            ("toml", Kind.SOURCE, "mail"),
            ("acme", Kind.WORKSPACE, "office"),
        }
    ),
    grants={("toml", "tom"): frozenset({(Kind.WORKSPACE, "lab"), (Kind.SOURCE, "mail")})},
)
ACTOR = Actor(principal="root", address="command line")
LAB = (Kind.WORKSPACE, "lab")

Work = Callable[[Administration], Any]


class Place:
    """A store and the configuration beside it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "dragoman.db"

    def do(self, work: Work) -> Any:
        return administer(self.file, lambda book: work(Administration(book, DECLARED, ACTOR)))

    def kept(self) -> Kept:
        return consult(self.file, lambda book: book.read())

    def view(self) -> Overview:
        return Overview(self.kept(), DECLARED)

    def audit(self) -> list[AuditRow]:
        return list(consult(self.file, lambda book: book.audited(since=0, after=0, limit=1000)))

    def acts(self) -> list[str]:
        return [f"{row.entry.action} {row.entry.target}" for row in self.audit()]

    def task_of(self, tenant: str, principal: str) -> None:
        """Have a principal send a message, as long as the store is open."""

        async def sent() -> None:
            store = SqliteStore(self.file, lease=15.0, on_lost=lambda: None)
            await store.accept(acceptance(message("Hello"), scope=Scope(tenant, principal, "agent")))
            store.close()

        asyncio.run(sent())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """With the tenant acme, its principal alice, its workspace lab and its source wiki."""
    place = Place(tmp_path)

    def provide(desk: Administration) -> None:
        desk.create_tenant("acme", ["agent_api"])
        desk.add_principal("acme", "alice")
        desk.add_resource("acme", Kind.WORKSPACE, "lab")
        desk.add_resource("acme", Kind.SOURCE, "wiki")

    place.do(provide)
    return place


DOING: dict[str, tuple[Work, str]] = {
    "tenant.create": (lambda desk: desk.create_tenant("umbrella"), "tenants/umbrella"),
    "tenant.remove": (lambda desk: desk.remove_tenant("acme"), "tenants/acme"),
    "feature.add": (lambda desk: desk.add_feature("toml", "agent_api"), "tenants/toml/features/agent_api"),
    "feature.remove": (
        lambda desk: desk.remove_feature("acme", "agent_api"),
        "tenants/acme/features/agent_api",
    ),
    "limit.set": (
        lambda desk: desk.set_limit("acme", "running.tenant", 9),
        "tenants/acme/limits/running.tenant",
    ),
    "principal.add": (lambda desk: desk.add_principal("toml", "bob"), "tenants/toml/principals/bob"),
    "principal.remove": (
        lambda desk: desk.remove_principal("acme", "alice"),
        "tenants/acme/principals/alice",
    ),
    "workspace.add": (
        lambda desk: desk.add_resource("acme", Kind.WORKSPACE, "hall"),
        "tenants/acme/workspaces/hall",
    ),
    "workspace.remove": (lambda desk: desk.remove_resource("acme", *LAB), "tenants/acme/workspaces/lab"),
    "workspace.grant": (
        lambda desk: desk.grant("acme", Kind.WORKSPACE, "office", "alice"),
        "tenants/acme/workspaces/office/grants/alice",
    ),
    "source.add": (lambda desk: desk.add_resource("toml", Kind.SOURCE, "wiki"), "tenants/toml/sources/wiki"),
    "source.grant": (
        lambda desk: desk.grant("acme", Kind.SOURCE, "wiki", "alice"),
        "tenants/acme/sources/wiki/grants/alice",
    ),
    "source.remove": (
        lambda desk: desk.remove_resource("acme", Kind.SOURCE, "wiki"),
        "tenants/acme/sources/wiki",
    ),
}


@pytest.mark.parametrize("action", DOING)
def test_what_is_done_is_kept_and_leaves_one_row_of_the_audit(place: Place, action: str) -> None:
    work, target = DOING[action]
    before, acts = place.kept(), place.acts()
    place.do(work)
    assert place.kept() != before
    row = place.audit()[-1]
    assert place.acts() == [*acts, f"{action} {target}"]
    assert (row.entry.principal, row.entry.address, row.entry.tenant) == ("root", "command line", "")
    assert (row.entry.outcome, row.entry.times) == ("ok", 1)


def test_a_grant_is_taken_again(place: Place) -> None:
    assert place.do(lambda desk: desk.grant("acme", *LAB, "alice")) is True
    assert place.kept().grants["acme", "alice"] == {LAB}
    assert place.do(lambda desk: desk.revoke("acme", *LAB, "alice")) is True
    assert place.kept().grants == {}
    assert place.acts()[-1] == "workspace.revoke tenants/acme/workspaces/lab/grants/alice"


@pytest.mark.parametrize(
    "work",
    [
        lambda desk: desk.add_feature("acme", "agent_api"),
        lambda desk: desk.add_principal("acme", "alice"),
        lambda desk: desk.add_principal("toml", "tom"),
        lambda desk: desk.add_resource("acme", *LAB),
        lambda desk: desk.add_resource("toml", *LAB),
        lambda desk: desk.revoke("acme", *LAB, "alice"),
    ],
)
def test_what_is_so_already_is_no_error_and_no_act(place: Place, work: Work) -> None:
    before, acts = place.kept(), place.acts()
    assert place.do(work) is False
    assert place.kept() == before
    assert place.acts() == acts


REFUSED: list[tuple[Work, type[DragomanError], str]] = [
    (lambda desk: desk.create_tenant("Acme"), InvalidParams, "name: 'Acme' is no name for a tenant"),
    (lambda desk: desk.create_tenant(""), InvalidParams, "name: '' is no name"),
    (lambda desk: desk.create_tenant("a" * 129), InvalidParams, "is no name"),
    (lambda desk: desk.create_tenant("a\n"), InvalidParams, "is no name"),
    (lambda desk: desk.create_tenant("local"), InvalidParams, "neither local nor anonymous"),
    (
        lambda desk: desk.create_tenant("new", ["agent_api", "x"]),
        InvalidParams,
        r"features\[1\]: 'x' is no feature",
    ),
    (lambda desk: desk.create_tenant("acme"), EntryConflict, "is there already"),
    (lambda desk: desk.create_tenant("toml"), EntryConflict, "in the configuration"),
    (lambda desk: desk.remove_tenant("acmee"), EntryNotFound, "no tenant acmee; did you mean acme"),
    (lambda desk: desk.remove_tenant("zzzzzz"), EntryNotFound, "no tenant zzzzzz$"),
    (lambda desk: desk.remove_tenant("toml"), EntryConflict, r"take \[tenants.toml\] out"),
    (lambda desk: desk.add_feature("acmee", "agent_api"), EntryNotFound, "did you mean acme"),
    (lambda desk: desk.add_feature("acme", "x"), InvalidParams, "feature: 'x' is no feature"),
    (lambda desk: desk.remove_feature("toml", "agent_api"), EntryConflict, "tenants.toml.features"),
    (lambda desk: desk.remove_feature("acme", "x"), InvalidParams, "feature"),
    (lambda desk: desk.add_principal("nobody", "bob"), EntryNotFound, "no tenant nobody"),
    (lambda desk: desk.add_principal("acme", "anonymous"), InvalidParams, "name: 'anonymous'"),
    (lambda desk: desk.add_principal("acme", "a b"), InvalidParams, "name"),
    (
        lambda desk: desk.remove_principal("acme", "alicia"),
        EntryNotFound,
        "no principal alicia in acme; did you mean alice",
    ),
    (lambda desk: desk.remove_principal("toml", "tom"), EntryConflict, r"tenants.toml.principals.tom"),
    (
        lambda desk: desk.add_resource("acme", Kind.SOURCE, "A"),
        InvalidParams,
        "name: 'A' is no name for a source",
    ),
    (
        lambda desk: desk.remove_resource("acme", Kind.WORKSPACE, "wiki"),
        EntryNotFound,
        "no workspace wiki in acme",
    ),
    (
        lambda desk: desk.remove_resource("acme", Kind.WORKSPACE, "office"),
        EntryConflict,
        "in the configuration",
    ),
    (
        lambda desk: desk.grant("acme", Kind.WORKSPACE, "lap", "alice"),
        EntryNotFound,
        "no workspace lap in acme; did you mean lab",
    ),
    (lambda desk: desk.grant("acme", Kind.SOURCE, "lab", "alice"), EntryNotFound, "no source lab in acme"),
    (lambda desk: desk.grant("acme", *LAB, "tom"), EntryNotFound, "no principal tom in acme"),
    (lambda desk: desk.grant("toml", *LAB, "alice"), EntryNotFound, "no principal alice in toml"),
    (lambda desk: desk.revoke("toml", *LAB, "tom"), EntryConflict, "tenants.toml.principals.tom.workspaces"),
    (
        lambda desk: desk.revoke("toml", Kind.SOURCE, "mail", "tom"),
        EntryConflict,
        r"tenants.toml.principals.tom.sources",
    ),
    (lambda desk: desk.revoke("acme", *LAB, "bob"), EntryNotFound, "no principal bob"),
    (lambda desk: desk.create_token("acmee", "alice", ["ai:answer"]), EntryNotFound, "did you mean acme"),
    (lambda desk: desk.create_token("acme", "alise", ["ai:answer"]), EntryNotFound, "did you mean alice"),
    (
        lambda desk: desk.create_token("toml", "alice", ["ai:answer"]),
        EntryNotFound,
        "no principal alice in toml",
    ),
    (lambda desk: desk.create_token("acme", "alice", []), InvalidParams, "scopes: must name at least one"),
    (lambda desk: desk.create_token("acme", "alice", ["ai:answer", "ai:answer"]), InvalidParams, "twice"),
    (lambda desk: desk.create_token("acme", "alice", ["ai:answer"], lifetime=0), InvalidParams, "expires"),
    (
        lambda desk: desk.create_token("acme", "alice", ["ai:answer"], lifetime=LONGEST_LIFE + 1),
        InvalidParams,
        "expires",
    ),
    (
        lambda desk: desk.create_token("acme", "alice", ["ai:answer"], note="x" * (LONGEST_NOTE + 1)),
        InvalidParams,
        "note",
    ),
    (lambda desk: desk.create_token("acme", "alice", ["ai:answer"], note="a\nb"), InvalidParams, "note"),
    (lambda desk: desk.revoke_token("nope"), EntryNotFound, "no token with the id nope"),
    (lambda desk: desk.revoke_token("dgm_abcdef"), InvalidParams, "id: is a token itself"),
    (
        lambda desk: desk.revoke_token("tenants.toml.principals.tom.tokens[0]"),
        EntryConflict,
        "in the configuration",
    ),
]


@pytest.mark.parametrize(("work", "error", "said"), REFUSED)
def test_what_is_refused_says_why_and_changes_nothing(
    place: Place, work: Work, error: type[DragomanError], said: str
) -> None:
    before, acts = place.kept(), place.acts()
    with pytest.raises(error, match=said) as refusal:
        place.do(work)
    assert type(refusal.value) is error
    assert "abcdef" not in refusal.value.message
    assert place.kept() == before
    assert place.acts() == acts


@pytest.mark.parametrize(
    "scope",
    [
        "a2a:readx",
        "A2A:READ",
        "*:*",
        " a2a:read",
        "a2a:read ",
        "admin",
        "admin:",
        "admin:write",
        "ADMIN:*",
        "a2a",
        "",
        "ai:answer a2a:read",
    ],
)
def test_a_scope_that_only_looks_like_one_is_refused_with_the_known_ones(place: Place, scope: str) -> None:
    with pytest.raises(InvalidParams) as refusal:
        place.do(lambda desk: desk.create_token("acme", "alice", ["ai:answer", scope]))
    (violation,) = refusal.value.violations
    assert violation.field == "scopes[1]"
    assert violation.description.endswith(f"there are {', '.join(SCOPES)}")
    assert place.kept().tokens == {}


def test_a_token_is_kept_as_its_hash_alone(place: Place) -> None:
    scopes = ["ai:answer", "a2a:read"]
    token, text = place.do(
        lambda desk: desk.create_token("acme", "alice", scopes, lifetime=90_000, note="a laptop")
    )
    assert text.startswith("dgm_")
    assert len(text) > 40
    assert place.kept().tokens == {hash_token(text): token}
    assert token.expires_at == token.created_at + 90_000
    assert (token.tenant, token.principal, token.scopes, token.note) == (
        "acme",
        "alice",
        tuple(scopes),
        "a laptop",
    )
    row = place.audit()[-1].entry
    assert row.action == "token.create"
    assert row.target == f"tenants/acme/principals/alice/tokens/{token.id}"
    assert row.detail == "ai:answer a2a:read"
    contents = b"".join(file.read_bytes() for file in place.file.parent.iterdir())
    assert text.encode() not in contents
    assert text.removeprefix("dgm_").encode() not in contents


def test_two_tokens_are_never_alike(place: Place) -> None:
    texts = {place.do(lambda desk: desk.create_token("acme", "alice", ["*"]))[1] for _ in range(5)}
    assert len(texts) == 5


def test_the_right_to_administer_is_given_only_by_its_own_scope(place: Place) -> None:
    token, _ = place.do(lambda desk: desk.create_token("acme", "alice", ["admin:*"]))
    assert token.scopes == ("admin:*",)


def test_a_token_may_be_for_a_principal_of_the_configuration(place: Place) -> None:
    token, _ = place.do(lambda desk: desk.create_token("toml", "tom", ["ai:answer"]))
    assert (token.tenant, token.principal, token.expires_at) == ("toml", "tom", None)


def test_a_token_is_revoked_once(place: Place) -> None:
    token, text = place.do(lambda desk: desk.create_token("acme", "alice", ["ai:answer"]))
    assert place.do(lambda desk: desk.revoke_token(token.id)) is True
    assert hash_token(text) not in place.kept().tokens
    assert place.acts()[-1] == f"token.revoke tenants/acme/principals/alice/tokens/{token.id}"
    acts = place.acts()
    assert place.do(lambda desk: desk.revoke_token(token.id)) is False
    assert place.acts() == acts


def test_a_name_whose_tasks_are_left_is_not_given_to_somebody_else_by_accident(place: Place) -> None:
    place.task_of("acme", "alice")
    assert place.do(lambda desk: desk.remove_principal("acme", "alice")) is True
    with pytest.raises(EntryConflict, match="a principal alice of acme that was there before"):
        place.do(lambda desk: desk.add_principal("acme", "alice"))
    assert place.do(lambda desk: desk.add_principal("acme", "bob")) is True
    assert place.do(lambda desk: desk.add_principal("acme", "alice", adopt=True)) is True

    assert place.do(lambda desk: desk.remove_tenant("acme")) is True
    with pytest.raises(EntryConflict, match="a tenant acme that was there before"):
        place.do(lambda desk: desk.create_tenant("acme"))
    place.do(lambda desk: desk.create_tenant("acme", adopt=True))
    with pytest.raises(EntryConflict):
        place.do(lambda desk: desk.add_principal("acme", "alice"))


def test_nothing_is_said_of_tasks_where_none_are_left(place: Place) -> None:
    assert place.do(lambda desk: desk.remove_principal("acme", "alice")) is False
    assert place.do(lambda desk: desk.remove_tenant("acme")) is False
