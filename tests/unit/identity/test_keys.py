"""An issuer's keys: which member of a set checks which signature, and when the set is fetched."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from dragoman.identity import keys
from dragoman.identity.issuer import Document, FetchError
from dragoman.identity.keys import KeyRing, PublicKeys
from dragoman.model.errors import Unavailable
from tests.harness.signing import Signer, encoded, jwks

ONE, TWO, THREE = (Signer("ES256", kid) for kid in ("one", "two", "three"))
RSA = Signer("RS256", "rsa")
ED = Signer("Ed25519", "ed")


# ------------------------------------------------------------------------------------------------------------ the set


def found(member: Any, algorithm: str, kid: str = "k") -> bool:
    """Whether a set with one member has a key for an algorithm."""
    return PublicKeys.read(jwks(member)).find(kid, algorithm) is not None


@pytest.mark.parametrize(
    ("made", "algorithms"),
    [
        ("ES256", {"ES256"}),
        ("ES384", {"ES384"}),
        ("ES512", {"ES512"}),
        ("RS256", {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
        ("Ed25519", {"EdDSA", "Ed25519"}),
    ],
)
def test_a_key_without_an_algorithm_is_for_those_of_its_kind_and_curve(
    made: str, algorithms: set[str]
) -> None:
    member = Signer(made, "k").public(alg=None)
    every = [
        "ES256",
        "ES384",
        "ES512",
        "RS256",
        "RS384",
        "RS512",
        "PS256",
        "PS384",
        "PS512",
        "EdDSA",
        "Ed25519",
    ]
    assert {algorithm for algorithm in [*every, "HS256", "none"] if found(member, algorithm)} == algorithms


def test_a_key_with_an_algorithm_is_for_that_one_alone() -> None:
    member = RSA.public(kid="k")
    assert found(member, "RS256")
    assert not any(found(member, other) for other in ("RS384", "RS512", "PS256"))
    for name in ("EdDSA", "Ed25519"):
        assert found(ED.public(kid="k", alg=name), "EdDSA")
        assert found(ED.public(kid="k", alg=name), "Ed25519")


@pytest.mark.parametrize(
    "changes",
    [
        {"kid": None},
        {"kid": ""},
        {"kid": 5},
        {"kid": ["k"]},
        {"use": "enc"},
        {"use": ["sig"]},
        {"key_ops": ["sign"]},
        {"key_ops": "verify"},
        {"key_ops": None, "use": None, "d": "AQ"},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "RSA"},
        {"kty": None},
        {"kty": ["EC"]},
        {"crv": "P-384"},
        {"crv": "secp256k1"},
        {"crv": None},
        {"alg": "HS256"},
        {"alg": 5},
        {"x": None},
        {"x": 5},
        {"x": ""},
        {"x": "not base64!"},
        {"x": "AQAB"},
        {"y": "A" * 43},
    ],
    ids=str,
)
def test_what_is_no_public_signing_key_is_passed_over(changes: dict[str, Any]) -> None:
    assert found(ONE.public(kid="k"), "ES256")
    assert not found(ONE.public(**{"kid": "k", **changes}), "ES256")
    both = PublicKeys.read(jwks(ONE.public(**{"kid": "k", **changes}), TWO.public(), "nonsense", 5, None))
    assert both.find("two", "ES256") is not None


@pytest.mark.parametrize("changes", [{"use": None}, {"use": None, "key_ops": ["verify"]}, {"x5c": ["x"]}])
def test_a_key_need_not_say_what_it_is_for(changes: dict[str, Any]) -> None:
    assert found(ONE.public(**{"kid": "k", **changes}), "ES256")


@pytest.mark.parametrize(("bits", "fits"), [(1024, False), (2040, False), (2048, True)])
def test_an_rsa_key_that_can_be_factored_checks_nothing(bits: int, fits: bool) -> None:
    modulus = rsa.generate_private_key(65537, bits).public_key().public_numbers().n
    member = {**RSA.public(kid="k"), "n": encoded(modulus.to_bytes(bits // 8))}
    assert found(member, "RS256") is fits


def test_an_rsa_key_that_takes_for_ever_checks_nothing() -> None:
    assert not found({**RSA.public(kid="k"), "n": "_" * 11_000 + "w"}, "RS256")


def test_keys_of_one_name_are_told_by_their_kind() -> None:
    both = PublicKeys.read(jwks(ONE.public(kid="k"), RSA.public(kid="k")))
    curved, factored = both.find("k", "ES256"), both.find("k", "RS256")
    assert curved is not None and curved.key_type == "EC"
    assert factored is not None and factored.key_type == "RSA"
    assert both.find("k", "EdDSA") is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"\xff\xfe",
        b"[]",
        b"5",
        b'"keys"',
        b"{}",
        b'{"keys": {}}',
        b'{"keys": "x"}',
        b"[" * 100_000,
    ],
    ids=lambda body: repr(body[:20]),
)
def test_a_document_that_is_no_set_is_refused(body: bytes) -> None:
    with pytest.raises(FetchError):
        PublicKeys.read(body)


def test_a_set_may_be_empty() -> None:
    assert len(PublicKeys.read(b'{"keys": []}')) == 0


# ----------------------------------------------------------------------------------------------------------- the ring


class World:
    """An issuer, a clock and a ring: `answers` are given in turn, the last one again and again."""

    def __init__(self, *answers: Document | Exception | bytes, **settings: float) -> None:
        self.now = 1000.0
        self.fetches = 0
        self.answers: list[Any] = list(answers)
        self.gate = asyncio.Event()
        self.gate.set()
        self.closed = False
        chosen = {"max_age": 600.0, "refetch": 10.0, "stale": 3600.0, **settings}
        self.ring = KeyRing(self, **chosen, clock=lambda: self.now)

    async def keys(self) -> Document:
        self.fetches += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        await self.gate.wait()
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Document) else Document(answer)

    async def close(self) -> None:
        self.closed = True

    async def landed(self) -> None:
        """Wait for the end of the fetch that goes on."""
        assert self.ring._flight is not None
        await self.ring._flight

    async def names(self) -> set[str]:
        """The names of the keys that count now."""
        current = await self.ring.current()
        return {one for one in ("one", "two", "three") if one in current}

    async def after(self, seconds: float) -> set[str]:
        """The same, later."""
        self.now += seconds
        return await self.names()


def run(story: Callable[[], Awaitable[None]]) -> None:
    """Live through a story; one that hangs fails."""

    async def bounded() -> None:
        async with asyncio.timeout(5):
            await story()

    asyncio.run(bounded())


SET_ONE, SET_TWO, SET_BOTH = jwks(ONE.public()), jwks(TWO.public()), jwks(ONE.public(), TWO.public())
DOWN = FetchError("it is down")


def test_keys_are_fetched_once_while_they_are_fresh() -> None:
    async def story() -> None:
        world = World(SET_ONE, SET_TWO)
        assert [await world.after(seconds) for seconds in (0, 1, 598.9)] == [{"one"}] * 3
        assert world.fetches == 1
        assert await world.after(0.2) == {"two"}, "and replaced as a whole"
        assert world.fetches == 2

    run(story)


@pytest.mark.parametrize(
    ("said", "fresh"), [(None, 600), (120, 120), (0, 60), (59, 60), (86_400, 600), (599, 599)]
)
def test_the_server_may_make_them_old_sooner_but_not_too_soon(said: float | None, fresh: float) -> None:
    async def story() -> None:
        world = World(Document(SET_ONE, said), SET_TWO)
        await world.names()
        assert await world.after(fresh - 0.5) == {"one"}
        assert await world.after(1) == {"two"}

    run(story)


def test_many_at_once_share_one_fetch() -> None:
    async def story() -> None:
        world = World(SET_ONE)
        world.gate.clear()
        asked = [asyncio.create_task(world.names()) for _ in range(50)]
        await asyncio.sleep(0)
        asked[0].cancel()
        await asyncio.sleep(0)
        world.gate.set()
        assert await asyncio.gather(*asked[1:]) == [{"one"}] * 49
        assert world.fetches == 1, "and one who goes away takes it from nobody else"

    run(story)


def test_the_fetch_at_the_start_is_the_one_that_the_first_request_waits_for() -> None:
    async def story() -> None:
        world = World(SET_ONE)
        world.ring.start()
        assert await world.names() == {"one"}
        assert world.fetches == 1

    run(story)


def test_an_unknown_name_has_the_keys_fetched_at_once_but_not_too_often() -> None:
    async def story() -> None:
        world = World(SET_ONE, SET_BOTH)
        await world.names()
        assert "two" not in await world.ring.looked_for("two"), "they were fetched a moment ago"
        world.now += 9.9
        assert "two" not in await world.ring.looked_for("two")
        assert world.fetches == 1
        world.now += 0.1
        assert "two" in await world.ring.looked_for("two")
        for number in range(1000):
            assert "two" in await world.ring.looked_for(f"unknown-{number}")
        assert world.fetches == 2
        world.now += 10
        storm = [world.ring.looked_for(f"unknown-{number}") for number in range(1000)]
        await asyncio.gather(*storm)
        assert world.fetches == 3

    run(story)


def test_a_name_that_is_known_has_nothing_fetched() -> None:
    async def story() -> None:
        world = World(SET_ONE, SET_TWO)
        await world.names()
        world.now += 100
        assert "one" in await world.ring.looked_for("one")
        assert world.fetches == 1

    run(story)


def test_an_outage_is_lived_through_with_older_keys_up_to_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        world = World(SET_ONE, DOWN)
        await world.names()
        assert await world.after(601) == {"one"}
        assert world.fetches == 2
        assert await world.after(9) == {"one"}
        assert world.fetches == 2, "not more often than it may"
        assert await world.after(3589) == {"one"}
        with pytest.raises(Unavailable) as caught:
            await world.after(2)
        assert 1 <= caught.value.retry_after <= 10
        world.answers = [SET_TWO]
        assert await world.after(10) == {"two"}
        assert await world.after(599) == {"two"}

    with caplog.at_level(logging.WARNING):
        run(story)
    assert "older ones count for 3599 s: it is down" in caplog.text


def test_an_issuer_that_is_down_from_the_start_is_asked_again_now_and_then() -> None:
    async def story() -> None:
        world = World(DOWN, DOWN, SET_ONE)
        for seconds, fetches in ((0, 1), (1, 1), (8.9, 1), (0.1, 2), (5, 2)):
            with pytest.raises(Unavailable):
                await world.after(seconds)
            assert world.fetches == fetches
        assert await world.after(5) == {"one"}

    run(story)


def test_what_cannot_be_told_is_not_called_wrong() -> None:
    async def story() -> None:
        world = World(SET_ONE, DOWN)
        await world.names()
        world.now += 10
        for _ in range(2):
            with pytest.raises(Unavailable):
                await world.ring.looked_for("two")
        assert "one" in await world.ring.looked_for("one")
        assert world.fetches == 2

    run(story)


def test_a_document_that_is_no_set_is_as_good_as_none() -> None:
    async def story() -> None:
        world = World(SET_ONE, b"<html>", SET_TWO)
        await world.names()
        assert await world.after(601) == {"one"}
        assert await world.after(10) == {"one"}, "nobody waits for the next try"
        await world.landed()
        assert await world.names() == {"two"}

    run(story)


def test_an_empty_set_takes_every_key_away() -> None:
    async def story() -> None:
        world = World(SET_ONE, jwks())
        await world.names()
        assert await world.after(601) == set()

    run(story)


def test_a_slow_issuer_holds_nobody_up_while_older_keys_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "PATIENCE", 0.05)

    async def story() -> None:
        world = World(SET_ONE, SET_TWO)
        await world.names()
        world.gate.clear()
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await world.after(601) == {"one"}
        assert loop.time() - began >= 0.05
        world.now += 1
        for _ in range(100):
            assert await world.names() == {"one"}
        world.gate.set()
        await world.landed()
        assert await world.names() == {"two"}
        assert world.fetches == 2

    run(story)


def test_nobody_waits_for_ever_for_keys_that_cannot_be_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "LONGEST_WAIT", 0.05)

    async def story() -> None:
        world = World(SET_ONE, SET_BOTH)
        world.gate.clear()
        with pytest.raises(Unavailable):
            await world.names()
        world.gate.set()
        await world.landed()
        world.gate.clear()
        world.now += 10
        for _ in range(2):
            with pytest.raises(Unavailable):
                await world.ring.looked_for("two")
        assert "one" in await world.ring.looked_for("one")
        world.gate.set()
        await world.landed()
        assert "two" in await world.ring.looked_for("two")
        assert world.fetches == 2

    run(story)


def test_nobody_waits_for_an_issuer_that_failed_the_last_time() -> None:
    async def story() -> None:
        world = World(SET_ONE, DOWN, SET_TWO)
        await world.names()
        await world.after(601)
        world.gate.clear()
        assert await world.after(10) == {"one"}
        world.gate.set()
        await world.landed()
        assert await world.names() == {"two"}

    run(story)


def test_an_unchanged_set_is_the_same_object_so_that_what_it_told_still_holds() -> None:
    async def story() -> None:
        world = World(SET_ONE, SET_ONE, SET_BOTH)
        first = await world.ring.current()
        world.now += 601
        assert await world.ring.current() is first
        world.now += 601
        assert await world.ring.current() is not first

    run(story)


def test_an_error_of_our_own_is_not_taken_for_an_outage() -> None:
    async def story() -> None:
        world = World(ZeroDivisionError())
        with pytest.raises(ZeroDivisionError):
            await world.ring.current()

    run(story)


def test_closing_ends_a_fetch_and_lets_the_source_go() -> None:
    async def story() -> None:
        world = World(SET_ONE)
        world.gate.clear()
        asked = asyncio.create_task(world.names())
        await asyncio.sleep(0)
        await world.ring.close()
        assert world.closed
        with pytest.raises(Unavailable):
            await asked

    run(story)
