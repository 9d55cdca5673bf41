"""`dragoman keys` on a key file that no server follows: what is printed where, and how it ends."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dragoman.cards.verify import trusted, verify
from dragoman.cli import app
from tests.unit.cards.test_canonical import CARD, OLD, with_params

NOW = 1_900_000_000.0


class Place:
    """A data folder and a configuration."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.file = self.data / "signing-keys.json"
        self.config = folder / "dragoman.toml"
        self.config.write_text('[signing]\noverlap = "2d"\n', encoding="utf-8")

    def run(self, *words: str, stdin: str | None = None) -> Result:
        """Run a command on them."""
        arguments = ["keys", *words, "--data", str(self.data), "--config", str(self.config)]
        return CliRunner().invoke(app, arguments, input=stdin, catch_exceptions=False)

    def good(self, *words: str, stdin: str | None = None) -> str:
        """What a command that works prints."""
        done = self.run(*words, stdin=stdin)
        assert (done.exit_code, done.stderr) == (0, "")
        return done.stdout

    def refused(self, *words: str, stdin: str | None = None) -> tuple[int, str]:
        """How a command ends that prints nothing but what is wrong."""
        done = self.run(*words, stdin=stdin)
        assert done.stdout == "" and done.stderr.startswith("dragoman: ")
        return done.exit_code, done.stderr.removeprefix("dragoman: ").rstrip()

    def list(self) -> list[dict[str, Any]]:
        """The keys as programs get them."""
        rows: list[dict[str, Any]] = json.loads(self.good("list", "--json"))
        return rows


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """With one key."""
    made = Place(tmp_path)
    made.good("create")
    return made


def test_a_first_key_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    place = Place(tmp_path)
    told = place.good("create")
    (row,) = place.list()
    assert told == f"{place.file}: made, with the ES256 key {row['kid']}\n"
    assert (row["alg"], row["state"], row["until"]) == ("ES256", "signs", None)
    assert stat.S_IMODE(place.file.stat().st_mode) == 0o600
    code, words = place.refused("create")
    assert (code, words) == (
        1,
        f"{place.file} is there already; `dragoman keys rotate` puts a new key into it",
    )
    assert place.list() == [row]


def test_the_configuration_and_the_flag_say_what_new_keys_are_for(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.config.write_text('[signing]\nalg = "EdDSA"\nkey_file = "' + str(tmp_path / "shared.json") + '"\n')
    place.good("create")
    place.good("rotate", "--alg", "ES256")
    assert [row["alg"] for row in place.list()] == ["ES256", "EdDSA"]
    assert (tmp_path / "shared.json").exists() and not place.file.exists()


def test_a_rotation_says_until_when_the_older_keys_sign(place: Place) -> None:
    (old,) = place.list()
    told = place.good("rotate").splitlines()
    new, older = place.list()
    assert (older["kid"], new["until"], new["state"], older["state"]) == (old["kid"], None, "signs", "signs")
    assert told == [
        f"the ES256 key {new['kid']} signs from now on",
        f"{old['kid']} signs beside it until {older['until']}",
    ]
    assert place.good("list").splitlines()[0] == "kid\talg\tstate\tsince\tuntil"
    assert place.good("list").splitlines()[1] == f"{new['kid']}\tES256\tsigns\t{new['since']}\t-"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("rotate", "--overlap", "1s"), 2, '--overlap must be "10m" or more'),
        (("rotate", "--overlap", "soon"), 2, '--overlap = "soon" is no duration'),
        (("rotate", "--alg", "HS256"), 2, '--alg = "HS256" is none of ES256, EdDSA'),
        (("retire", "nobody"), 1, "there is no key nobody in"),
        (("retire", "-1begins-as-an-option"), 1, "there is no key -1begins-as-an-option in"),
        (("retire", "--as-a-long-one"), 1, "there is no key --as-a-long-one in"),
        (("sign", "/no/such/card.json"), 1, "/no/such/card.json: No such file or directory"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    place: Place, words: tuple[str, ...], code: int, told: str
) -> None:
    before = place.file.read_bytes()
    ended, said = place.refused(*words)
    assert ended == code and said.startswith(told)
    assert place.file.read_bytes() == before


def test_a_key_is_retired_at_once_but_never_the_last_one(place: Place) -> None:
    (old,) = place.list()
    assert place.refused("retire", old["kid"])[1].startswith("it is the only key; make another one first")
    place.good("rotate")
    assert place.good("retire", old["kid"]) == f"{old['kid']} signs no more\n"
    assert old["kid"] not in place.file.read_text()
    assert len(place.list()) == 1


@pytest.mark.parametrize("words", [("list",), ("rotate",), ("public",), ("retire", "k")])
def test_without_a_file_the_command_that_makes_one_is_named(tmp_path: Path, words: tuple[str, ...]) -> None:
    place = Place(tmp_path)
    code, told = place.refused(*words)
    assert code == 1
    assert "dragoman keys" in told
    assert not place.file.exists()


def test_the_public_set_is_for_pinning(place: Place) -> None:
    place.good("rotate")
    text = place.good("public")
    members = json.loads(text)["keys"]
    assert [one["kid"] for one in members] == [row["kid"] for row in place.list()]
    assert not [one for one in members if "d" in one]


def test_no_command_says_a_key(place: Place) -> None:
    secret = json.loads(place.file.read_text())["keys"][0]["d"]
    for words in (("list",), ("list", "--json"), ("public",), ("rotate",)):
        assert secret not in place.good(*words)


# ---------------------------------------------------------------------------------------------------------- sign


def signed(place: Place, card: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(place.good("sign", "-", stdin=json.dumps(card)))
    return made


def covered(place: Place, card: dict[str, Any]) -> tuple[str, ...]:
    return verify(card, trusted(place.good("public").encode(), 0)).covered


@pytest.mark.parametrize(
    ("card", "versions"),
    [
        (CARD, ("1.0",)),
        ({**CARD, **OLD}, ("1.0", "0.3")),
        ({**{name: CARD[name] for name in CARD if name != "supportedInterfaces"}, **OLD}, ("0.3",)),
        ({**CARD, "name": "Café 😀"}, ("1.0",)),
    ],
)
def test_a_card_is_signed_for_every_generation_that_reads_it(
    place: Place, card: dict[str, Any], versions: tuple[str, ...]
) -> None:
    made = signed(place, card)
    assert {name: value for name, value in made.items() if name != "signatures"} == card
    assert covered(place, made) == versions
    assert len(made["signatures"]) == len(versions)


def test_signatures_of_others_stay_and_ours_are_made_anew(place: Place) -> None:
    theirs = {"protected": "eyJraWQiOiJ0aGVpcnMifQ", "signature": "AA"}
    once = signed(place, {**CARD, "signatures": [theirs]})
    place.good("rotate")
    twice = signed(place, once)
    assert len(once["signatures"]) == 2 and len(twice["signatures"]) == 3
    assert twice["signatures"][-1] == theirs
    assert covered(place, twice) == ("1.0",)


def test_where_the_keys_will_be_is_signed_too(place: Place) -> None:
    url = "https://a.example/keys.json"
    made = json.loads(place.good("sign", "-", "--jku", url, stdin=json.dumps(CARD)))
    assert verify(made, trusted(place.good("public").encode(), 0)).signatures[0].jku == url


@pytest.mark.parametrize(
    ("card", "words"),
    [
        ({**CARD, "version": ""}, "version is empty, wanted: a string (A2A 1.0 §4.4.1)"),
        ({"name": "x"}, "supportedInterfaces is missing"),
        (
            {**CARD, "securityRequirements": [{"schemes": {}}]},
            "securityRequirements[0] is empty; leave it out or fill it",
        ),
        (
            with_params('{"n":9007199254740993}'),
            "capabilities.extensions[0].params.n is a number that few readers",
        ),
    ],
)
def test_a_card_that_readers_differ_about_is_not_signed(
    place: Place, card: dict[str, Any], words: str
) -> None:
    code, told = place.refused("sign", "-", stdin=json.dumps(card))
    assert code == 1
    assert told.splitlines()[0] == "- is not signed:"
    assert words in told


def test_a_card_that_gives_a_member_twice_is_not_signed(place: Place) -> None:
    text = json.dumps(CARD).replace('"version"', '"name": "Other", "version"')
    code, told = place.refused("sign", "-", stdin=text)
    assert code == 1 and "name" in told
