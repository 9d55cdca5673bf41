"""Which token a command shows to which server."""

import pytest
import typer

from dragoman.cli.credentials import credential, hint

TOKEN = "a-token-that-nobody-else-may-see"
SHOWN = {"Authorization": f"Bearer {TOKEN}"}
HERE = ["http://127.0.0.1:8080/agents/demo", "http://localhost/", "http://[::1]:1/x", "https://a.localhost"]
ELSEWHERE = [
    "https://agents.example.com/",
    "http://10.0.0.7:8080",
    "https://localhost.evil.example",
    "http://[",
    "x",
]


@pytest.fixture(autouse=True)
def variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_API_KEY", f" {TOKEN}\n")


@pytest.mark.parametrize("url", HERE)
def test_the_usual_token_is_shown_to_this_machine(url: str) -> None:
    assert credential(None, url) == SHOWN


@pytest.mark.parametrize("url", ELSEWHERE)
def test_elsewhere_it_is_shown_only_if_it_is_named(url: str) -> None:
    assert credential(None, url) == {}
    assert credential("DRAGOMAN_API_KEY", url) == SHOWN
    assert credential(None, url, anywhere=True) == SHOWN


def test_where_others_can_read_it_on_the_way_that_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    credential("DRAGOMAN_API_KEY", "https://agents.example.com/")
    credential("DRAGOMAN_API_KEY", HERE[0])
    assert capsys.readouterr().err == ""
    credential("DRAGOMAN_API_KEY", "http://10.0.0.7:8080")
    told = capsys.readouterr().err
    assert told.startswith("dragoman: the token crosses the network unencrypted")
    assert TOKEN not in told


def test_without_the_usual_token_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAGOMAN_API_KEY")
    assert credential(None, HERE[0]) == {}
    with pytest.raises(typer.Exit):
        credential("DRAGOMAN_API_KEY", HERE[0])


def test_only_a_missing_credential_is_hinted_at() -> None:
    assert "--token-env" in hint(401, {})
    assert hint(401, SHOWN) == hint(403, {}) == hint(500, {}) == ""
