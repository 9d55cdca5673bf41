"""Which store the configuration names, and what of it is shown."""

from pathlib import Path

import pytest

from dragoman.cards.settings import SigningTable
from dragoman.config import Config, Store, read_config
from dragoman.engines.settings import EngineTable
from dragoman.outbound.settings import VaultTable
from dragoman.storage import described, file_of, not_shared, place_of
from dragoman.stores.target import Target
from dragoman.tables import ConfigError

DATA = Path("data")
URL = "postgresql://dragoman@db.example:5433/tasks?sslmode=require"


def test_without_a_url_it_is_a_file_in_the_data_folder() -> None:
    assert place_of(Config(), DATA) == DATA / "dragoman.db"
    assert place_of(Config(store=Store(url="sqlite:////x/y.db")), DATA) == Path("/x/y.db")


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_the_url_of_a_database_names_a_database(scheme: str) -> None:
    config = read_config({"store": {"url": f"{scheme}://me@host/db"}}, {}, "test")
    assert place_of(config, DATA) == Target(f"{scheme}://me@host/db", None)


def test_the_password_is_read_from_where_it_is_and_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", "from the environment")
    (tmp_path / "password").write_text("from a file\n", encoding="utf-8")
    places = [
        place_of(Config(store=Store(url=URL, password_env="DB_PASSWORD")), DATA),
        place_of(Config(store=Store(url=URL, password_file=str(tmp_path / "password"))), DATA),
    ]
    assert places == [Target(URL, "from the environment"), Target(URL, "from a file")]
    for place in places:
        assert str(place) == "postgresql://db.example:5433/tasks"
        assert "from" not in described(place, EngineTable()) + repr(place)


def test_a_pooler_by_transaction_is_known_of_and_told() -> None:
    pooled = place_of(Config(store=Store(url=URL, pooling="transaction")), DATA)
    assert pooled == Target(URL, None, by_transaction=True)
    assert "behind a pooler by transaction" in described(pooled, EngineTable())
    assert "pooler" not in described(Target(URL), EngineTable())


@pytest.mark.parametrize(
    "store",
    [Store(url=URL, password_env="DRAGOMAN_NOT_SET"), Store(url=URL, password_file="/nowhere/at/all")],
    ids=["environment", "file"],
)
def test_a_password_that_is_not_there_is_told_by_its_key(store: Store) -> None:
    with pytest.raises(ConfigError, match=r"^store\.password_(env|file): .*(not set|cannot be read)"):
        place_of(Config(store=store), DATA)


def test_a_command_for_files_says_what_to_do_with_a_database() -> None:
    assert file_of(Config(), DATA, "use something else") == DATA / "dragoman.db"
    with pytest.raises(ConfigError, match="use something else"):
        file_of(Config(store=Store(url=URL)), DATA, "use something else")


def test_keys_that_other_servers_need_too_are_told_where_they_are_this_servers_own() -> None:
    shared = Store(url=URL)
    assert not_shared(Config()) == []
    both = not_shared(Config(store=shared))
    assert ["signing.key_file" in one or "vault.key_env" in one for one in both] == [True, True]
    vault = {"vault": VaultTable(key_env="KEY")}
    (one,) = not_shared(Config(store=shared, **vault))
    assert "signing.key_file" in one
    assert not_shared(Config(store=shared, signing=SigningTable(key_file="keys.json"), **vault)) == []
