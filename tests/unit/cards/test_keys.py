"""Signing keys: their names, when they count, and what of a key file is refused."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import ECKey, OKPKey

from dragoman.cards.keyfile import KeyFile
from dragoman.cards.keys import KeysError, jwks, live, new_key, read_keys, rotated, write_keys
from dragoman.cards.settings import ALGORITHMS

NOW = 1_800_000_000.5


def text(*members: Any) -> bytes:
    """The text of a key file."""
    return json.dumps({"keys": list(members)}).encode()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_key_is_named_by_its_thumbprint_and_comes_back_from_its_file(algorithm: str) -> None:
    key = new_key(algorithm, NOW)
    (again,) = read_keys(write_keys([key]))
    assert again.kid == key.kid == key.private.thumbprint()
    assert (again.algorithm, again.since, again.until) == (algorithm, 1_800_000_000, None)
    assert again.secret() == key.secret()
    assert {"EC": "P-256", "OKP": "Ed25519"}[key.secret()["kty"]] == key.secret()["crv"]


def test_a_thumbprint_is_that_of_rfc_8037_appendix_a_3() -> None:
    members = {
        "kty": "OKP",
        "crv": "Ed25519",
        "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    }
    (key,) = read_keys(text(members))
    assert key.kid == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    assert (key.algorithm, key.since) == ("EdDSA", 0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nothing_secret_is_in_the_public_set(algorithm: str) -> None:
    key = new_key(algorithm, NOW)
    (member,) = json.loads(jwks([key]))["keys"]
    assert "d" not in member and key.secret()["d"] not in jwks([key]).decode()
    assert {name: member[name] for name in ("kid", "alg", "use", "key_ops", "iat")} == {
        "kid": key.kid,
        "alg": algorithm,
        "use": "sig",
        "key_ops": ["verify"],
        "iat": 1_800_000_000,
    }


def test_no_new_key_has_a_name_that_a_command_would_take_for_an_option() -> None:
    """One thumbprint in 64 begins with a hyphen."""
    assert not [key.kid for key in (new_key("EdDSA", NOW) for _ in range(2000)) if key.kid[0] == "-"]


def test_a_new_key_takes_the_place_of_the_others_which_go_after_the_overlap() -> None:
    first, second, third = (new_key("ES256", NOW + hours * 3600) for hours in (0, 1, 2))
    keys = rotated([first], second, NOW + 3600, 86400)
    assert [(key.kid, key.until) for key in keys] == [
        (second.kid, None),
        (first.kid, int(NOW + 3600 + 86400)),
    ]
    # A second rotation lets nobody stay longer than the first one said.
    keys = rotated(keys, third, NOW + 7200, 86400)
    assert [key.kid for key in keys] == [third.kid, second.kid, first.kid]
    assert [key.until for key in keys] == [None, int(NOW + 7200 + 86400), int(NOW + 3600 + 86400)]
    assert [key.kid for key in live(keys, NOW + 3600 + 86399)] == [third.kid, second.kid, first.kid]
    assert [key.kid for key in live(keys, NOW + 3600 + 86400)] == [third.kid, second.kid]
    assert [key.kid for key in live(keys, NOW + 7200 + 86400)] == [third.kid]
    assert json.loads(jwks(keys))["keys"][1]["exp"] == int(NOW + 7200 + 86400)


KEY = new_key("ES256", NOW).secret()
OTHER = new_key("ES256", NOW).secret()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "is not a JWK Set with private keys"),
        (b"[]", "is not a JWK Set with private keys"),
        (b'{"keys": []}', "is not a JWK Set with private keys"),
        (b'{"keys": [], "keys": [1]}', "is not a JWK Set with private keys"),
        (text(1), "keys[0] is no object"),
        (text(KEY, {**OTHER, "d": None}), "keys[1] holds no private key (d)"),
        (text({name: KEY[name] for name in KEY if name != "d"}), "keys[0] holds no private key (d)"),
        (text({**KEY, "crv": "P-384"}), "keys[0] is for no algorithm that cards are signed with"),
        (text({**KEY, "alg": "HS256"}), "keys[0] is for no algorithm that cards are signed with"),
        (text({"kty": "oct", "k": "AAAA"}), "keys[0] is for no algorithm that cards are signed with"),
        (text({**KEY, "x": "!"}), "keys[0] cannot be read as a key"),
        (text({**KEY, "kid": ""}), "keys[0].kid must be a name"),
        (text({**KEY, "exp": "soon"}), "iat and exp must be whole seconds"),
        (text({**KEY, "iat": True}), "iat and exp must be whole seconds"),
        (text(KEY, {**OTHER, "kid": KEY["kid"]}), "holds two keys of one name"),
        (text({**KEY, "d": OTHER["d"]}), "keys[0]"),
    ],
)
def test_what_is_no_key_file_is_refused_by_what_is_wrong(body: bytes, words: str) -> None:
    with pytest.raises(KeysError) as refusal:
        read_keys(body)
    assert words in str(refusal.value)
    assert KEY["d"] not in str(refusal.value)


def test_two_halves_of_two_keys_are_refused() -> None:
    one, two = (OKPKey.generate_key("Ed25519", private=True).as_dict(private=True) for _ in range(2))
    with pytest.raises(KeysError, match=r"of two keys|cannot be read as a key"):
        read_keys(text({**one, "x": two["x"]}))


def test_a_key_of_somebody_elses_keeps_its_name() -> None:
    members = ECKey.generate_key("P-256", private=True).as_dict(private=True)
    (key,) = read_keys(text({**members, "kid": "2026-q4"}))
    assert (key.kid, key.algorithm) == ("2026-q4", "ES256")


# ----------------------------------------------------------------------------------------------------------- the file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_key_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "data" / "signing-keys.json")
    (key,) = file.ensure("ES256")
    assert (mode(file.path), mode(file.path.parent)) == (0o600, 0o700)
    assert file.ensure("EdDSA") == file.read()
    assert [one.kid for one in file.read()] == [key.kid]


def test_a_change_replaces_the_file_as_a_whole_and_keeps_it_closed(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "keys.json")
    (first,) = file.ensure("ES256")
    before = file.path.stat().st_ino
    second = new_key("EdDSA", first.since + 1)
    file.change(lambda keys: [second, *keys])
    assert [one.kid for one in file.read()] == [second.kid, first.kid]
    assert (mode(file.path), file.path.stat().st_ino != before) == (0o600, True)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["keys.json"]


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "keys.json")
    file.ensure("ES256")
    before = file.path.read_bytes()

    def refuse(keys: object) -> list[Any]:
        raise KeysError("no")

    with pytest.raises(KeysError, match=r"^no$"):
        file.change(refuse)
    assert file.path.read_bytes() == before


def test_what_a_killed_change_left_is_no_harm(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "keys.json")
    file.ensure("ES256")
    (tmp_path / "keys.json.new").write_text("half")
    file.change(lambda keys: keys)
    assert len(file.read()) == 1


def test_a_link_to_a_key_file_stays_a_link(tmp_path: Path) -> None:
    real = KeyFile(tmp_path / "real" / "keys.json")
    real.ensure("ES256")
    (tmp_path / "link.json").symlink_to(real.path)
    KeyFile(tmp_path / "link.json").change(lambda keys: [new_key("ES256", NOW), *keys])
    assert (tmp_path / "link.json").is_symlink()
    assert len(real.read()) == 2


@pytest.mark.parametrize("open_to", [0o604, 0o644, 0o660, 0o601])
def test_a_key_file_that_others_can_open_is_refused(tmp_path: Path, open_to: int) -> None:
    file = KeyFile(tmp_path / "keys.json")
    file.ensure("ES256")
    file.path.chmod(open_to)
    with pytest.raises(KeysError, match=f"run: chmod 600 {file.path}"):
        file.read()
    file.path.chmod(0o440)
    assert len(file.read()) == 1


def test_a_missing_file_is_refused_with_the_command_that_makes_it(tmp_path: Path) -> None:
    with pytest.raises(KeysError, match="is not there; make it with `dragoman keys create`"):
        KeyFile(tmp_path / "none.json").read()
    with pytest.raises(KeysError, match="is not there"):
        KeyFile(tmp_path / "none.json").read_again(None)


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KeysError, match="cannot be written"):
        KeyFile(tmp_path / "file" / "keys.json").change(lambda keys: keys)


def test_what_was_read_before_is_not_read_again(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "keys.json")
    file.ensure("ES256")
    found = file.read_again(None)
    assert found is not None
    assert file.read_again(found[1]) is None
    file.change(lambda keys: [new_key("ES256", NOW), *keys])
    again = file.read_again(found[1])
    assert again is not None and len(again[0]) == 2


def test_a_text_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(b" " * (256 * 1024 + 1))
    os.chmod(path, 0o600)
    with pytest.raises(KeysError, match="larger than any key file"):
        KeyFile(path).read()
