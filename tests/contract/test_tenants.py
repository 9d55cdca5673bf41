"""What is kept of tenants: a book, open in one transaction, and one number that every change raises."""

from collections.abc import Callable

import pytest

from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.ports import TaskStore
from dragoman.gateway.tenants import Book, Kept, Kind, TenantStore, Token
from dragoman.model.errors import InvalidParams, Unavailable
from tests.contract.samples import acceptance, message

HASH = b"h" * 32


def token(name: str = "t1", **more: object) -> Token:
    values = {"tenant": "acme", "principal": "alice", "scopes": ("ai:answer", "a2a:read"), "note": "a note"}
    return Token(id=name, created_at=5, **{**values, **more})


@pytest.fixture
def tenants(store: TenantStore) -> TenantStore:
    """The same store, as the port of this suite."""
    return store


async def kept(tenants: TenantStore) -> Kept:
    found = await tenants.kept(-1)
    assert found is not None
    return found


def fill(book: Book) -> None:
    for tenant in ("acme", "umbrella"):
        book.add_tenant(tenant)
        book.add_feature(tenant, "agent_api")
        for principal in ("alice", "bob"):
            book.add_principal(tenant, principal)
            book.add_token(
                token(f"{tenant}-{principal}", tenant=tenant, principal=principal), _hash(tenant, principal)
            )
        for kind in Kind:
            book.add_resource(tenant, kind, "lab")
            book.grant(tenant, kind, "lab", "alice")
            book.grant(tenant, kind, "lab", "bob")
        book.set_limit(tenant, "rate.tenant", 600)
        book.set_limit(tenant, "running.principal", 5)


def _hash(*words: str) -> bytes:
    return "/".join(words).encode().ljust(32, b".")


async def test_a_new_store_keeps_nothing(tenants: TenantStore) -> None:
    found = await kept(tenants)
    assert (found.version, found.tenants, found.features, found.principals) == (0, [], {}, [])
    assert (found.tokens, found.resources, found.grants, found.limits) == ({}, [], {}, {})


async def test_what_was_written_is_read(tenants: TenantStore) -> None:
    await tenants.administer(fill)
    found = await kept(tenants)
    assert found.tenants == ["acme", "umbrella"]
    assert found.features == {name: frozenset({"agent_api"}) for name in ("acme", "umbrella")}
    assert found.principals == [(t, p) for t in ("acme", "umbrella") for p in ("alice", "bob")]
    assert found.tokens[_hash("acme", "bob")] == token("acme-bob", principal="bob")
    assert len(found.tokens) == 4
    assert found.resources == [
        (t, kind, "lab") for t in ("acme", "umbrella") for kind in (Kind.SOURCE, Kind.WORKSPACE)
    ]
    both = frozenset({(Kind.WORKSPACE, "lab"), (Kind.SOURCE, "lab")})
    assert found.grants == {(t, p): both for t in ("acme", "umbrella") for p in ("alice", "bob")}
    bounds = {"rate.tenant": 600, "running.principal": 5}
    assert found.limits == {"acme": bounds, "umbrella": bounds}


@pytest.mark.parametrize(
    "change",
    [
        lambda book: book.add_tenant("new"),
        lambda book: book.remove_tenant("acme"),
        lambda book: book.add_feature("acme", "new"),
        lambda book: book.remove_feature("acme", "agent_api"),
        lambda book: book.set_limit("acme", "stored.tenant", 7),
        lambda book: book.set_limit("acme", "rate.tenant", 60),
        lambda book: book.remove_limit("acme", "rate.tenant"),
        lambda book: book.add_principal("acme", "new"),
        lambda book: book.remove_principal("acme", "alice"),
        lambda book: book.add_resource("acme", Kind.SOURCE, "new"),
        lambda book: book.remove_resource("acme", Kind.SOURCE, "lab"),
        lambda book: book.grant("acme", Kind.SOURCE, "new", "alice"),
        lambda book: book.revoke("acme", Kind.SOURCE, "lab", "alice"),
        lambda book: book.revoke_token("acme-alice"),
    ],
    ids=(
        "tenant+ tenant- feature+ feature- limit+ limit limit- principal+ principal- resource+ resource- grant revoke "
        "token-"
    ).split(),
)
async def test_a_change_raises_the_version_and_happens_once(
    tenants: TenantStore, change: Callable[[Book], bool]
) -> None:
    await tenants.administer(fill)
    before = await kept(tenants)
    assert await tenants.kept(before.version) is None
    assert await tenants.administer(change) is True
    after = await tenants.kept(before.version)
    assert after is not None
    assert after.version > before.version
    assert after != before
    assert await tenants.administer(change) is False
    assert await tenants.kept(after.version) is None


async def test_a_removed_tenant_takes_everything_of_it_along_and_nothing_else(tenants: TenantStore) -> None:
    await tenants.administer(fill)
    before = await kept(tenants)
    await tenants.administer(lambda book: book.remove_tenant("acme"))
    found = await kept(tenants)
    assert found.tenants == ["umbrella"]
    assert set(found.features) == {"umbrella"}
    assert {tenant for tenant, _ in found.principals} == {"umbrella"}
    assert found.tokens == {h: t for h, t in before.tokens.items() if t.tenant == "umbrella"}
    assert {tenant for tenant, _, _ in found.resources} == {"umbrella"}
    assert {tenant for tenant, _ in found.grants} == {"umbrella"}
    assert set(found.limits) == {"umbrella"}
    assert await tenants.consult(lambda book: book.find_token("acme-alice")) is None


async def test_a_removed_principal_takes_its_tokens_and_grants_along(tenants: TenantStore) -> None:
    await tenants.administer(fill)
    await tenants.administer(lambda book: book.remove_principal("acme", "alice"))
    found = await kept(tenants)
    assert ("acme", "alice") not in found.principals
    assert ("acme", "bob") in found.principals
    assert {t.id for t in found.tokens.values()} == {"acme-bob", "umbrella-alice", "umbrella-bob"}
    assert set(found.grants) == {("acme", "bob"), ("umbrella", "alice"), ("umbrella", "bob")}


async def test_a_removed_resource_is_granted_to_nobody_also_if_it_comes_back(tenants: TenantStore) -> None:
    await tenants.administer(fill)
    await tenants.administer(lambda book: book.remove_resource("acme", Kind.WORKSPACE, "lab"))
    await tenants.administer(lambda book: book.add_resource("acme", Kind.WORKSPACE, "lab"))
    found = await kept(tenants)
    assert found.grants["acme", "alice"] == frozenset({(Kind.SOURCE, "lab")})
    assert (Kind.WORKSPACE, "lab") in found.grants["umbrella", "alice"]


async def test_a_revoked_token_counts_no_more_and_is_still_told_of(tenants: TenantStore) -> None:
    await tenants.administer(lambda book: book.add_token(token(expires_at=9), HASH))
    assert (await kept(tenants)).tokens == {HASH: token(expires_at=9)}
    await tenants.administer(lambda book: book.revoke_token("t1"))
    assert (await kept(tenants)).tokens == {}
    found = await tenants.consult(lambda book: book.find_token("t1"))
    assert found is not None
    assert found.revoked_at is not None
    assert found.revoked_at >= 5
    assert await tenants.administer(lambda book: book.revoke_token("unknown")) is False


async def test_tokens_come_in_pages_by_tenant_and_principal(tenants: TenantStore) -> None:
    await tenants.administer(fill)

    async def page(tenant: str, principal: str, after: str, limit: int) -> list[str]:
        found = await tenants.consult(lambda book: book.tokens(tenant, principal, after=after, limit=limit))
        return [one.id for one in found]

    everything = ["acme-alice", "acme-bob", "umbrella-alice", "umbrella-bob"]
    assert await page("", "", "", 10) == everything
    assert await page("", "", "", 3) == everything[:3]
    assert await page("", "", "umbrella-alice", 3) == everything[3:]
    assert await page("umbrella", "", "", 10) == everything[2:]
    assert await page("", "bob", "", 10) == ["acme-bob", "umbrella-bob"]
    assert await page("acme", "bob", "", 10) == ["acme-bob"]
    assert await page("nobody", "", "", 10) == []


async def test_work_that_raises_leaves_nothing_behind_and_disturbs_nobody_else(tenants: TenantStore) -> None:
    def fail(book: Book) -> None:
        fill(book)
        book.note(AuditEntry(action="tenant.create", target="tenants/acme"))
        raise InvalidParams.of("name", "is wrong after all")

    await tenants.administer(lambda book: book.add_tenant("before"))
    with pytest.raises(InvalidParams, match="after all"):
        await tenants.administer(fail)
    await tenants.administer(lambda book: book.add_tenant("later"))
    found = await kept(tenants)
    assert found.tenants == ["before", "later"]
    assert found.principals == []
    assert await tenants.consult(lambda book: list(book.audited(since=0, after=0, limit=9))) == []


async def test_whoever_only_reads_cannot_write(tenants: TenantStore) -> None:
    with pytest.raises(Unavailable):
        await tenants.consult(lambda book: book.add_tenant("acme"))
    assert (await kept(tenants)).tenants == []


async def test_a_scope_with_tasks_shows_in_its_tenant_and_principal(
    store: TaskStore, tenants: TenantStore
) -> None:
    def has(tenant: str, principal: str = "") -> Callable[[Book], bool]:
        return lambda book: book.has_tasks(tenant, principal)

    assert not await tenants.consult(has("acme"))
    accepted = acceptance(message("Hello"))
    await store.accept(accepted)
    scope = accepted.scope
    assert await tenants.consult(has(scope.tenant))
    assert await tenants.consult(has(scope.tenant, scope.principal))
    assert not await tenants.consult(has(scope.tenant, "somebody else"))
    assert not await tenants.consult(has("another"))


async def test_the_audit_is_read_in_order_in_pages_and_since_a_time(tenants: TenantStore) -> None:
    entries = [
        AuditEntry(
            action="token.create",
            target=f"tokens/{n}",
            tenant="t",
            principal="p",
            credential="c",
            address="127.0.0.1",
            outcome="ok",
            times=n,
        )
        for n in range(1, 6)
    ]
    for entry in entries:
        await tenants.administer(lambda book, entry=entry: book.note(entry))

    async def audited(since: int = 0, after: int = 0, limit: int = 10) -> list[AuditEntry]:
        rows = await tenants.consult(lambda book: book.audited(since=since, after=after, limit=limit))
        assert [row.id for row in rows] == sorted(row.id for row in rows)
        return [row.entry for row in rows]

    assert await audited() == entries
    assert await audited(limit=2) == entries[:2]
    rows = await tenants.consult(lambda book: book.audited(since=0, after=0, limit=3))
    assert await audited(after=rows[-1].id) == entries[3:]
    assert await audited(since=rows[-1].at + 100_000) == []
    assert await audited(since=rows[0].at) == entries
