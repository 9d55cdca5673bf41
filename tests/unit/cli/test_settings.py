"""What commands read before they do anything."""

from pathlib import Path

import pytest
import typer

from dragoman.cli.settings import load_config, refuse
from dragoman.config import Config
from dragoman.tables import ConfigError


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, without variables of ours."""
    monkeypatch.chdir(tmp_path)
    for section in ("SERVER", "STORE", "ENGINE", "LIMITS"):
        for key in (
            "LISTEN",
            "PUBLIC_URL",
            "BASE_PATH",
            "DRAIN",
            "URL",
            "KIND",
            "LEASE",
            "SWEEP",
            "BODY",
            "BODY_TIME",
        ):
            monkeypatch.delenv(f"DRAGOMAN_{section}_{key}", raising=False)


def test_without_a_file_the_environment_alone_configures(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_config(None) == Config()
    monkeypatch.setenv("DRAGOMAN_SERVER_LISTEN", "127.0.0.1:1")
    assert load_config(None).server.listen == "127.0.0.1:1"


def test_the_file_of_the_folder_is_read_unless_another_is_named(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text('[server]\nlisten = "127.0.0.1:1"\n')
    (tmp_path / "other.toml").write_text('[server]\nlisten = "127.0.0.1:2"\n')
    assert load_config(None).server.listen == "127.0.0.1:1"
    assert load_config(Path("other.toml")).server.listen == "127.0.0.1:2"


def test_the_environment_goes_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dragoman.toml").write_text('[server]\nlisten = "127.0.0.1:1"\ndrain = "9s"\n')
    monkeypatch.setenv("DRAGOMAN_SERVER_LISTEN", "127.0.0.1:3")
    config = load_config(None)
    assert (config.server.listen, config.server.drain) == ("127.0.0.1:3", "9s")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[server\n", "not TOML"),
        (b'[server]\nlisten = "a"\nlisten = "b"\n', "not TOML"),
        (b"\xff\xfe", "not UTF-8"),
        (b'[server]\nlisten = "8080"\n', "server.listen"),
        (b"[sever]\n", "did you mean server?"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_what_is_wrong(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as refusal:
        load_config(path)
    assert str(refusal.value).startswith(f"{path}: ")
    assert said in str(refusal.value)


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "missing.toml", "No such file"), (tmp_path, "directory")):
        with pytest.raises(ConfigError, match=said) as refusal:
            load_config(path)
        assert str(refusal.value).startswith(f"{path}: ")


@pytest.mark.parametrize("code", [1, 2])
def test_a_refusal_says_why_on_standard_error_and_exits(
    code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        refuse(ConfigError("server.listen is wrong"), code)
    assert ended.value.exit_code == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "dragoman: server.listen is wrong\n")


def test_a_refusal_is_a_wrong_call_unless_it_says_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        refuse("x")
    assert ended.value.exit_code == 2
    assert capsys.readouterr().err == "dragoman: x\n"
