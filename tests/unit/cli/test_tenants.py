"""`dragoman tenant` and `dragoman token` on a store that no server has: what is printed where, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dragoman.cli import app
from dragoman.gateway.tenants import Kept
from dragoman.identity import hash_token
from dragoman.stores.sqlite import consult

CONFIG = """
[tenants.toml]
features = ["agent_api"]
limits = { rate = { tenant = 600 } }
[tenants.toml.principals.tom]
workspaces = ["lab"]
tokens = [{ env = "TOM", scopes = ["ai:answer"] }]
"""


class Place:
    """A data folder and a configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.config = folder / "dragoman.toml"
        self.config.write_text(CONFIG, encoding="utf-8")

    def run(self, *words: str) -> Result:
        """Run a command on them."""
        arguments = [*words, "--data", str(self.data), "--config", str(self.config)]
        return CliRunner().invoke(app, arguments, catch_exceptions=False)

    def good(self, *words: str) -> str:
        """What a command that works prints."""
        done = self.run(*words)
        assert (done.exit_code, done.stderr) == (0, "")
        return done.stdout

    def refused(self, *words: str) -> tuple[int, str]:
        """How a command ends that prints nothing but what is wrong, on one line."""
        done = self.run(*words)
        assert done.stdout == ""
        assert done.stderr.startswith("dragoman: ")
        assert done.stderr.count("\n") == 1
        return done.exit_code, done.stderr.removeprefix("dragoman: ").rstrip()

    def kept(self) -> Kept:
        return consult(self.data / "dragoman.db", lambda book: book.read())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """With the tenant acme, alice in it, and its workspace lab."""
    place = Place(tmp_path)
    made = place.run("tenant", "create", "acme", "--feature", "agent_api")
    assert (made.exit_code, made.stdout) == (0, "tenant acme created\n")
    assert made.stderr == f"dragoman: makes the store {place.data / 'dragoman.db'}\n"
    place.good("tenant", "principal", "add", "acme", "alice")
    place.good("tenant", "workspace", "add", "acme", "lab")
    return place


def test_a_store_that_is_made_is_its_owners_alone(place: Place) -> None:
    assert place.data.stat().st_mode & 0o777 == 0o700
    assert (place.data / "dragoman.db").stat().st_mode & 0o777 == 0o600


def test_only_a_new_tenant_makes_a_store(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for words in (
        ("tenant", "list"),
        ("tenant", "show", "acme"),
        ("tenant", "principal", "add", "toml", "bob"),
        ("token", "create", "--tenant", "toml", "--principal", "tom", "--scope", "*"),
        ("token", "list"),
        ("token", "revoke", "x"),
    ):
        code, said = place.refused(*words)
        assert (code, f"there is no store at {place.data / 'dragoman.db'}" in said) == (1, True)
    assert not place.data.exists()


def test_lines_say_what_is_so_now_and_doing_it_twice_is_no_error(place: Place) -> None:
    twice: list[tuple[tuple[str, ...], str, str]] = [
        (("principal", "add", "acme", "bob"), "bob is a principal of acme", " already"),
        (("workspace", "add", "acme", "hall"), "acme has the workspace hall", " already"),
        (("source", "add", "acme", "wiki"), "acme has the source wiki", " already"),
        (("workspace", "grant", "acme", "lab", "alice"), "alice is granted lab", " already"),
        (("source", "grant", "acme", "wiki", "alice"), "alice is granted wiki", " already"),
        (("feature", "add", "acme", "agent_api"), "acme has agent_api already", ""),
    ]
    for words, line, again in twice:
        assert place.good("tenant", *words) == f"{line}\n"
        assert place.good("tenant", *words) == f"{line}{again}\n"
    taking: list[tuple[tuple[str, ...], str, str]] = [
        (
            ("workspace", "revoke", "acme", "lab", "alice"),
            "alice is granted lab no more",
            "alice was not granted lab",
        ),
        (
            ("source", "revoke", "acme", "wiki", "alice"),
            "alice is granted wiki no more",
            "alice was not granted wiki",
        ),
        (
            ("feature", "remove", "acme", "agent_api"),
            "acme has agent_api no more",
            "acme did not have agent_api",
        ),
    ]
    for words, line, again in taking:
        assert place.good("tenant", *words) == f"{line}\n"
        assert place.good("tenant", *words) == f"{again}\n"
    assert (
        place.good("tenant", "workspace", "remove", "acme", "hall") == "acme has the workspace hall no more\n"
    )
    assert place.good("tenant", "source", "remove", "acme", "wiki") == "acme has the source wiki no more\n"
    assert (
        place.good("tenant", "principal", "remove", "acme", "bob") == "bob is no principal of acme any more\n"
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("tenant", "create", "acme"), 1, "The tenant acme is there already"),
        (("tenant", "create", "Acme"), 2, "name: 'Acme' is no name for a tenant"),
        (
            ("tenant", "create", "new", "--feature", "x"),
            2,
            "features[0]: 'x' is no feature; there is agent_api",
        ),
        (("tenant", "show", "acmee"), 1, "There is no tenant acmee; did you mean acme?"),
        (("tenant", "remove", "acmee", "--yes"), 1, "There is no tenant acmee; did you mean acme?"),
        (("tenant", "remove", "toml", "--yes"), 1, "The tenant toml is in the configuration"),
        (("tenant", "principal", "add", "acmee", "bob"), 1, "There is no tenant acmee; did you mean acme?"),
        (("tenant", "principal", "remove", "toml", "tom"), 1, "tom is in the configuration"),
        (
            ("tenant", "workspace", "grant", "acme", "lap", "alice"),
            1,
            "no workspace lap in acme; did you mean lab?",
        ),
        (("tenant", "workspace", "grant", "acme", "lab", "alicia"), 1, "alicia in acme; did you mean alice?"),
        (("tenant", "limit", "set", "acme", "rate.principle", "9"), 2, "did you mean rate.principal?"),
        (("tenant", "limit", "set", "acme", "rate.tenant", "0"), 2, "most: must be 1 to 1000000000"),
        (("tenant", "limit", "set", "acmee", "rate.tenant", "9"), 1, "did you mean acme?"),
        (
            ("tenant", "limit", "set", "toml", "rate.tenant", "9"),
            1,
            "change it there, in tenants.toml.limits",
        ),
        (("tenant", "limit", "remove", "toml", "rate.tenant"), 1, "change it there, in tenants.toml.limits"),
        (("tenant", "source", "remove", "acme", "lab"), 1, "There is no source lab in acme"),
        (("token", "revoke", "nope"), 1, "There is no token with the id nope"),
        (("token", "revoke", "dgm_0123456789"), 2, "id: is a token itself; name the id"),
    ],
)
def test_refusals_say_what_is_wrong_and_end_with_their_code(
    place: Place, words: tuple[str, ...], code: int, said: str
) -> None:
    before = place.kept()
    found = place.refused(*words)
    assert found[0] == code
    assert said in found[1]
    assert place.kept() == before


def test_a_tenant_is_removed_only_by_somebody_who_means_it(place: Place) -> None:
    code, said = place.refused("tenant", "remove", "acme")
    assert (code, "Say --yes" in said) == (2, True)
    assert place.kept().tenants == ["acme"]
    assert place.good("tenant", "remove", "acme", "--yes") == "tenant acme removed\n"
    assert place.kept().tenants == []


def test_lists_are_lines_for_programs_and_json_on_demand(place: Place) -> None:
    assert place.good("tenant", "list") == (
        "tenant\tfeatures\tprincipals\torigin\nacme\tagent_api\t1\tstore\ntoml\tagent_api\t1\tconfiguration\n"
    )
    assert json.loads(place.good("tenant", "list", "--json")) == [
        {"name": "acme", "origin": "store", "features": ["agent_api"], "principals": 1, "limits": {}},
        {
            "name": "toml",
            "origin": "configuration",
            "features": ["agent_api"],
            "principals": 1,
            "limits": {"rate.tenant": 600},
        },
    ]
    place.good("tenant", "workspace", "grant", "acme", "lab", "alice")
    assert place.good("tenant", "show", "acme") == (
        "acme (in the store); features: agent_api\n\n"
        "principal\tworkspaces\tsources\ttokens\torigin\nalice\tlab\t\t0\tstore\n\n"
        "workspace\tgranted to\torigin\nlab\talice\tstore\n"
    )
    assert json.loads(place.good("tenant", "show", "toml", "--json")) == {
        "name": "toml",
        "origin": "configuration",
        "features": ["agent_api"],
        "principals": [
            {"name": "tom", "origin": "configuration", "workspaces": ["lab"], "sources": [], "tokens": 0}
        ],
        "workspaces": [{"name": "lab", "origin": "configuration", "granted": ["tom"]}],
        "sources": [],
        "limits": {"rate.tenant": 600},
    }


def test_limits_are_set_shown_and_removed(place: Place) -> None:
    setting = ("tenant", "limit", "set", "acme", "rate.principal", "60")
    assert place.good(*setting) == "rate.principal of acme is 60\n"
    assert place.good(*setting) == "rate.principal of acme is 60 already\n"
    assert place.good(*setting[:-1], "30") == "rate.principal of acme is 30\n"
    place.good("tenant", "limit", "set", "acme", "stored.tenant", "1000")
    assert place.kept().limits == {"acme": {"rate.principal": 30, "stored.tenant": 1000}}
    head = "acme (in the store); features: agent_api\nlimits: rate.principal 30, stored.tenant 1000\n\n"
    assert place.good("tenant", "show", "acme").startswith(head)
    removing = ("tenant", "limit", "remove", "acme", "rate.principal")
    assert place.good(*removing) == "acme has no limit rate.principal of its own any more\n"
    assert place.good(*removing) == "acme has no limit rate.principal of its own\n"
    assert place.kept().limits == {"acme": {"stored.tenant": 1000}}


def token(place: Place, *words: str) -> Result:
    return place.run("token", "create", "--tenant", "acme", "--principal", "alice", *words)


def listed(place: Place, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(place.good("token", "list", "--json", *words))
    return found


def test_a_token_is_alone_on_standard_output(place: Place) -> None:
    made = token(place, "--scope", "ai:answer", "--scope", "a2a:*", "--note", "a laptop")
    assert made.exit_code == 0
    text = made.stdout.removesuffix("\n")
    assert text.startswith("dgm_")
    assert text.split() == [text]
    (kept,) = place.kept().tokens.items()
    assert kept[0] == hash_token(text)
    assert (kept[1].scopes, kept[1].note, kept[1].expires_at) == (("ai:answer", "a2a:*"), "a laptop", None)
    assert made.stderr == (
        f"dragoman: token {kept[1].id} for alice of acme; it does not expire; it is not shown again\n"
    )
    assert text not in place.good("token", "list", "--all")


def test_a_token_as_json_comes_with_what_is_known_of_it(place: Place) -> None:
    made = token(place, "--scope", "*", "--expires", "90d", "--json")
    told = json.loads(made.stdout)
    (kept,) = place.kept().tokens.values()
    assert kept.expires_at == kept.created_at + 90 * 86_400_000
    assert hash_token(told.pop("token")) in place.kept().tokens
    (row,) = listed(place, "--tenant", "acme")
    assert row == told
    assert (row["id"], row["state"], row["scopes"], row["revoked"]) == (kept.id, "good", ["*"], None)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ("--scope", "a2a:reed"),
            2,
            "scopes[0]: 'a2a:reed' is no scope; did you mean a2a:read? there are ai:answer,",
        ),
        (("--scope", "admin"), 2, "scopes[0]: 'admin' is no scope; did you mean admin:*?"),
        (("--scope", "*", "--expires", "0s"), 2, "expires: must lie ahead"),
        (("--scope", "*", "--expires", "soon"), 2, '--expires = "soon" is no duration'),
        (("--scope", "*", "--expires", "999999999d"), 2, "not further than ten years"),
        (("--scope", "*", "--expires", "9" * 400 + "d"), 2, "not further than ten years"),
        (
            ("--scope", "*", "--principal", "alise"),
            1,
            "There is no principal alise in acme; did you mean alice?",
        ),
        (("--scope", "*", "--tenant", "acne"), 1, "There is no tenant acne; did you mean acme?"),
    ],
)
def test_a_token_that_is_refused_is_not_made(
    place: Place, words: tuple[str, ...], code: int, said: str
) -> None:
    made = token(place, *words)
    assert (made.exit_code, made.stdout) == (code, "")
    assert said in made.stderr
    assert place.kept().tokens == {}


def test_a_token_without_a_scope_is_asked_wrongly(place: Place) -> None:
    made = token(place)
    assert (made.exit_code, made.stdout) == (2, "")
    assert "--scope" in made.stderr


def test_a_token_that_lets_nobody_in_is_told_of(place: Place) -> None:
    hint = "dragoman: without ai:answer it lets nobody call an agent\n"
    assert token(place, "--scope", "a2a:read").stderr.endswith(hint)
    for good in ("ai:answer", "ai:*", "*", "admin:*"):
        assert hint not in token(place, "--scope", good).stderr


def test_tokens_are_listed_with_their_state(place: Place) -> None:
    for words in (("--scope", "*"), ("--scope", "ai:answer", "--expires", "1ms"), ("--scope", "a2a:*")):
        assert token(place, *words).exit_code == 0
    ids = [row["id"] for row in listed(place, "--all", "--tenant", "acme")]
    assert len(ids) == 3
    assert place.good("token", "revoke", ids[2]) == f"token {ids[2]} is revoked\n"
    assert place.good("token", "revoke", ids[2]) == f"token {ids[2]} was revoked before\n"
    states = {row["id"]: row["state"] for row in listed(place, "--all", "--tenant", "acme")}
    assert states == dict(zip(ids, ("good", "expired", "revoked"), strict=True))
    assert [row["id"] for row in listed(place, "--tenant", "acme")] == ids[:1]
    assert listed(place, "--tenant", "acme", "--principal", "bob") == []
    lines = place.good("token", "list").splitlines()
    assert lines[0].split("\t") == ["id", "tenant", "principal", "scopes", "state", "expires", "note"]
    assert lines[1].split("\t") == [ids[0], "acme", "alice", "*", "good", "never", ""]
    assert lines[2].split("\t")[:5] == [
        "tenants.toml.principals.tom.tokens[0]", "toml", "tom", "ai:answer", "good"
    ]  # fmt: skip
    assert len(lines) == 3


AGENTS = """
[agents.one]
python = "dragoman.agents.demo:demo"
tenant = "acme"
[agents.two]
python = "dragoman.agents.demo:demo"
tenant = "toml"
"""


def test_a_check_refuses_agents_whose_tenant_is_nowhere(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOM", "a-token-of-tom-that-nobody-guesses")
    place.config.write_text(CONFIG + AGENTS, encoding="utf-8")
    assert place.run("check").stderr == ""
    place.good("tenant", "remove", "acme", "--yes")
    nowhere = "agents.one.tenant: there is no tenant acme, so nobody can call the agent;"
    code, said = place.refused("check")
    assert (code, said.startswith(nowhere)) == (2, True), "neither in the configuration nor in the store"
    (place.data / "dragoman.db").unlink()
    told = place.run("check")
    assert told.exit_code == 0, "a store that is not there yet may get it"
    assert told.stderr.startswith(f"dragoman: {nowhere}")
    assert told.stderr.count("\n") == 1


def test_a_check_finds_every_token_that_is_not_there_and_prints_none(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, short = "a-token-that-nobody-guesses", "short-and-secret"
    files = {"empty": "", "short": short, "good": good, "again": good, "open": "b" + good}
    for name, text in files.items():
        (place.folder / name).write_text(text, encoding="utf-8")
        (place.folder / name).chmod(0o644 if name == "open" else 0o640)
    references = ["missing", *files]
    tokens = ", ".join(f'{{ file = "{place.folder}/{name}", scopes = ["*"] }}' for name in references)
    tokens += ', { env = "UNSET", scopes = ["*"] }, { env = "BLANK", scopes = ["*"] }'
    monkeypatch.setenv("BLANK", " ")
    monkeypatch.delenv("UNSET", raising=False)
    place.config.write_text(f"[tenants.toml.principals.tom]\ntokens = [{tokens}]\n", encoding="utf-8")
    done = place.run("check")
    assert (done.exit_code, done.stdout) == (2, "")
    here = f"dragoman: tenants.toml.principals.tom.tokens[{{}}]: {place.folder}/"
    assert done.stderr.splitlines() == [
        f"{here.format(5)[: -len(str(place.folder)) - 1]}anybody on this machine can read {place.folder}/open; "
        f"take that away with `chmod o= {place.folder}/open`",
        f"{here.format(0)}missing cannot be read: No such file or directory",
        f"{here.format(1)}empty holds no token; a token has 24 characters or more",
        f"{here.format(2)}short holds a token that can be guessed; a token has 24 characters or more",
        "dragoman: tenants.toml.principals.tom.tokens[4]: this token is in the configuration already",
        "dragoman: tenants.toml.principals.tom.tokens[6]: the environment variable UNSET is not set; "
        "it should hold the token",
        "dragoman: tenants.toml.principals.tom.tokens[7]: the environment variable BLANK holds no token; "
        "a token has 24 characters or more",
    ]
    assert not any(secret in done.stderr for secret in (good, short))


def test_a_check_counts_the_tokens_that_are_there(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOM", "a-token-of-tom-that-nobody-guesses")
    assert "tokens: 1, each found where the configuration says\n" in place.good("check")
