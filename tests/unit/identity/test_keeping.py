"""Who may call, put together from the configuration and what is kept."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.gateway.tenants import Book, Declared, Kept, Kind, TenantStore, Token
from dragoman.identity import Credential, Failures, Gate, Keeper, Registry, hash_token, keeping
from dragoman.model import Principal, Right
from dragoman.model.errors import Unauthenticated, Unavailable
from dragoman.model.principal import rights_of

CONFIGURED = "a-token-of-the-configuration"
KEPT = "a-token-that-was-kept-in-the-store"
SCOPES = ("ai:answer", "a2a:read")


class FakeStore(TenantStore):
    """Gives one picture after the other; a picture may be an error."""

    def __init__(self, *pictures: Kept | Exception) -> None:
        self.pictures = list(pictures)
        self.asked = 0

    async def kept(self, known: int) -> Kept | None:
        self.asked += 1
        await asyncio.sleep(0)
        picture = self.pictures.pop(0) if len(self.pictures) > 1 else self.pictures[0]
        if isinstance(picture, Exception):
            raise picture
        return None if picture.version == known else picture

    async def consult(self, work: Callable[[Book], Any]) -> Any:
        raise NotImplementedError

    async def administer(self, work: Callable[[Book], Any]) -> Any:
        raise NotImplementedError


def token(**more: Any) -> Token:
    values = {"id": "t1", "tenant": "acme", "principal": "bob", "scopes": SCOPES, "note": "", "created_at": 1}
    return Token(**{**values, **more})


def kept(version: int = 1, **more: Any) -> Kept:
    values: dict[str, Any] = {
        "version": version,
        "tenants": ["acme"],
        "features": {},
        "principals": [("acme", "bob")],
        "tokens": {hash_token(KEPT): token()},
        "resources": [],
        "grants": {},
        "limits": {},
    }
    return Kept(**{**values, **more})


DECLARED = Declared(
    features={"acme": frozenset({"agent_api"})},
    principals=frozenset({("acme", "alice")}),
    resources=frozenset({("acme", Kind.WORKSPACE, "lab")}),
)


def configured() -> Registry:
    credential = Credential("place", Principal("acme", "alice", rights_of(SCOPES), "place"))
    return Registry(
        {"acme": ["agent_api"]}, {hash_token(CONFIGURED): credential}, {("acme", "alice"): ["lab"]}
    )


def gate_of(registry: Registry) -> Gate:
    return Gate(registry, Failures(5, 1.0))


async def who(gate: Gate, text: str) -> Principal:
    return await gate.identify([f"Bearer {text}".encode()], "127.0.0.1")


class Changes:
    """Counts how often it was told."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def keeper_of(gate: Gate, store: TenantStore, declared: Declared = DECLARED) -> tuple[Keeper, Changes]:
    changes = Changes()
    return Keeper(gate, declared, store, changes), changes


async def settled(probe: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not probe():
            await asyncio.sleep(0.005)


def run(work: Any) -> None:
    asyncio.run(work)


def test_tokens_features_and_grants_of_both_count() -> None:
    async def work() -> None:
        gate = gate_of(configured())
        picture = kept(
            features={"acme": frozenset({"other"})},
            grants={
                ("acme", "bob"): frozenset({(Kind.WORKSPACE, "hall"), (Kind.SOURCE, "wiki")}),
                ("acme", "alice"): frozenset({(Kind.WORKSPACE, "hall")}),
            },
        )
        keeper, changes = keeper_of(gate, FakeStore(picture))
        await keeper.refresh()
        assert changes.count == 1
        alice, bob = await who(gate, CONFIGURED), await who(gate, KEPT)
        assert (bob.tenant, bob.name, bob.credential) == ("acme", "bob", "t1")
        assert bob.rights == {Right.ANSWER, Right.READ}
        assert gate.registry.tenants == {"acme": {"agent_api", "other"}}
        assert [gate.may_enter(alice, name) for name in ("lab", "hall", "wiki")] == [True, True, False]
        assert [gate.may_enter(bob, name) for name in ("lab", "hall", "wiki")] == [False, True, False]
        assert gate.registry.may_use(bob, "wiki")
        assert not gate.registry.may_use(alice, "wiki")
        keeper.close()

    run(work())


@pytest.mark.parametrize(
    ("picture", "declared"),
    [
        (kept(tenants=[]), Declared()),
        (kept(principals=[]), Declared()),
        (kept(tenants=[], principals=[("acme", "bob")]), Declared()),
        (kept(tokens={hash_token(KEPT): token(tenant="other")}), DECLARED),
        (kept(tokens={hash_token(KEPT): token(principal="carol")}), DECLARED),
    ],
)
def test_what_is_kept_of_nobody_counts_for_nothing(picture: Kept, declared: Declared) -> None:
    async def work() -> None:
        gate = gate_of(Registry({"umbrella": []}))
        keeper, _ = keeper_of(gate, FakeStore(picture), declared)
        await keeper.refresh()
        with pytest.raises(Unauthenticated):
            await who(gate, KEPT)
        keeper.close()

    run(work())


def test_a_kept_token_may_be_for_a_principal_of_the_configuration() -> None:
    async def work() -> None:
        gate = gate_of(configured())
        picture = kept(tenants=[], principals=[], tokens={hash_token(KEPT): token(principal="alice")})
        keeper, _ = keeper_of(gate, FakeStore(picture))
        await keeper.refresh()
        assert (await who(gate, KEPT)).name == "alice"
        keeper.close()

    run(work())


def test_a_change_is_taken_up_once_and_an_older_picture_never() -> None:
    async def work() -> None:
        gate = gate_of(configured())
        newer = kept(3, tokens={})
        store = FakeStore(kept(2), newer, newer, kept(1), newer)
        keeper, changes = keeper_of(gate, store)
        await keeper.refresh()
        assert (await who(gate, KEPT)).name == "bob"
        keeper.look_again()
        await settled(lambda: changes.count == 2)
        for _ in range(3):
            await keeper.refresh()
            with pytest.raises(Unauthenticated):
                await who(gate, KEPT)
        assert changes.count == 2
        keeper.close()

    run(work())


def test_a_change_during_a_refresh_is_not_missed() -> None:
    async def work() -> None:
        gate = gate_of(configured())
        store = FakeStore(kept(1), kept(1), kept(2, tokens={}))
        keeper, changes = keeper_of(gate, store)
        await keeper.refresh()
        keeper.look_again()
        await asyncio.sleep(0)
        keeper.look_again()
        await settled(lambda: changes.count == 2)
        assert store.asked == 3
        keeper.close()

    run(work())


def test_a_store_that_cannot_be_read_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "RETRY_SECONDS", 0.01)

    async def work() -> None:
        gate = gate_of(configured())
        store = FakeStore(kept(1), Unavailable("no"), Unavailable("no"), kept(2, tokens={}))
        keeper, changes = keeper_of(gate, store)
        await keeper.refresh()
        keeper.look_again()
        await settled(lambda: changes.count == 2)
        with pytest.raises(Unauthenticated):
            await who(gate, KEPT)
        keeper.close()

    run(work())


def test_a_token_that_expires_is_good_until_then_and_says_so() -> None:
    async def work() -> None:
        gate = gate_of(configured())
        soon = int((time.time() + 0.15) * 1000)
        keeper, changes = keeper_of(gate, FakeStore(kept(tokens={hash_token(KEPT): token(expires_at=soon)})))
        await keeper.refresh()
        bob = await who(gate, KEPT)
        assert bob.expires_at == soon / 1000
        gate.confirm(bob)
        await settled(lambda: time.time() > soon / 1000)
        with pytest.raises(Unauthenticated):
            gate.confirm(bob)
        with pytest.raises(Unauthenticated):
            await who(gate, KEPT)
        assert changes.count == 1
        keeper.close()

    run(work())


def test_an_open_gate_closes_with_the_first_tenant_and_stays_closed_without_the_last() -> None:
    async def work() -> None:
        gate = gate_of(Registry())
        store = FakeStore(
            kept(1, tenants=[], principals=[], tokens={}), kept(2), kept(3, tenants=[], principals=[])
        )
        keeper, _ = keeper_of(gate, store, Declared())
        await keeper.refresh()
        assert gate.is_open
        local = await gate.identify([], "127.0.0.1")
        gate.confirm(local)
        await keeper.refresh()
        assert not gate.is_open
        with pytest.raises(Unauthenticated):
            gate.confirm(local)
        bob = await who(gate, KEPT)
        gate.confirm(bob)
        await keeper.refresh()
        assert not gate.is_open
        for gone in (local, bob):
            with pytest.raises(Unauthenticated):
                gate.confirm(gone)
        with pytest.raises(Unauthenticated):
            await gate.identify([], "127.0.0.1")
        keeper.close()

    run(work())


@pytest.mark.parametrize(
    ("found", "good"),
    [
        (token(), True),
        (token(scopes=("ai:answer",)), False),
        (token(principal="carol"), False),
        (token(id="another"), False),
        (None, False),
    ],
)
def test_a_token_is_confirmed_only_as_it_was(found: Token | None, good: bool) -> None:
    async def work() -> None:
        gate = gate_of(configured())
        who_may = {"principals": [("acme", "bob"), ("acme", "carol")]}
        then = kept(2, tokens={} if found is None else {hash_token(KEPT): found}, **who_may)
        keeper, _ = keeper_of(gate, FakeStore(kept(1), then))
        await keeper.refresh()
        bob, alice = await who(gate, KEPT), await who(gate, CONFIGURED)
        await keeper.refresh()
        gate.confirm(alice)
        if good:
            gate.confirm(bob)
        else:
            with pytest.raises(Unauthenticated):
                gate.confirm(bob)
        keeper.close()

    run(work())


def test_callers_of_public_agents_are_always_confirmed() -> None:
    async def work() -> None:
        gate = gate_of(configured())
        anonymous = await gate.identify([], "127.0.0.1", tenant="acme", public=True)
        gate.change(Registry())
        gate.confirm(anonymous)

    run(work())
