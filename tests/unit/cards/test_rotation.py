"""The keys of a running server: in step with the file and with time, and never none."""

import asyncio
import json
import logging
from pathlib import Path

import pytest
from msgspec import structs

from dragoman.cards.keyfile import KeyFile
from dragoman.cards.keys import KeysError, SigningKey, new_key, rotated, write_keys
from dragoman.cards.rotation import KeyKeeper


class Clock:
    """Seconds since 1970 that a test sets."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def names(keeper: KeyKeeper) -> list[str]:
    """The keys that sign, which are those of the public set too."""
    kids = [key.kid for key in keeper.keys]
    assert [one["kid"] for one in json.loads(keeper.public().body)["keys"]] == kids
    return kids


@pytest.fixture
def file(tmp_path: Path) -> KeyFile:
    """A key file with one key."""
    made = KeyFile(tmp_path / "keys.json")
    made.ensure("ES256")
    return made


def test_a_first_key_is_made_where_there_is_no_file(tmp_path: Path) -> None:
    keeper = KeyKeeper(KeyFile(tmp_path / "keys.json"), "EdDSA")
    assert [key.algorithm for key in keeper.keys] == ["EdDSA"]


def test_a_rotation_is_followed_and_time_ends_the_overlap(file: KeyFile) -> None:
    (first,) = file.read()
    clock = Clock(first.since + 10.0)
    keeper = KeyKeeper(file, "ES256", clock=clock)
    told: list[list[str]] = []
    keeper.on_change(lambda: told.append(names(keeper)))
    second = new_key("ES256", first.since + 5)
    file.change(lambda keys: rotated(keys, second, first.since + 10, 3600))
    assert names(keeper) == [first.kid]
    asyncio.run(keeper.look())
    asyncio.run(keeper.look())
    assert names(keeper) == [second.kid, first.kid]
    clock.now += 3599
    asyncio.run(keeper.look())
    assert names(keeper) == [second.kid, first.kid]
    clock.now += 1
    asyncio.run(keeper.look())
    assert names(keeper) == [second.kid]
    assert told == [[second.kid, first.kid], [second.kid]]


def test_a_file_that_cannot_be_used_any_more_changes_nothing_and_is_told_once(
    file: KeyFile, caplog: pytest.LogCaptureFixture
) -> None:
    keeper = KeyKeeper(file, "ES256")
    before = names(keeper)
    good = file.path.read_bytes()
    with caplog.at_level(logging.ERROR, logger="dragoman.cards"):
        for body in (b"{}", b"{}", None):
            if body is None:
                file.path.unlink()
            else:
                file.path.write_bytes(body)
            asyncio.run(keeper.look())
            asyncio.run(keeper.look())
            assert names(keeper) == before
    assert len(caplog.records) == 2
    second = new_key("ES256", 2**31)
    file.path.write_bytes(good)
    file.path.chmod(0o600)
    file.change(lambda keys: [second, *keys])
    asyncio.run(keeper.look())
    assert names(keeper) == [second.kid, *before]


def test_the_last_key_goes_on_where_no_other_would_be_left(
    file: KeyFile, caplog: pytest.LogCaptureFixture
) -> None:
    (key,) = file.read()
    clock = Clock(key.since + 10.0)
    _write(file, structs.replace(key, until=key.since + 20))
    keeper = KeyKeeper(file, "ES256", clock=clock)
    clock.now += 60
    with caplog.at_level(logging.ERROR, logger="dragoman.cards"):
        asyncio.run(keeper.look())
        asyncio.run(keeper.look())
    assert names(keeper) == [key.kid]
    assert [record.message for record in caplog.records] == [
        f"cards are signed as they were: no key in {file.path} counts any more"
    ]


def test_a_server_does_not_start_with_keys_whose_time_is_over(file: KeyFile) -> None:
    (key,) = file.read()
    _write(file, structs.replace(key, until=key.since + 20))
    with pytest.raises(
        KeysError, match="holds no key whose time is not over; make one with `dragoman keys rotate`"
    ):
        KeyKeeper(file, "ES256", clock=Clock(key.since + 20.0))


def _write(file: KeyFile, key: SigningKey) -> None:
    file.path.write_bytes(write_keys([key]))
