"""Agents without code, as the configuration describes them, and what is refused of them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman.agents import Agent
from dragoman.agents.command import Command
from dragoman.config import ConfigError, read_config
from dragoman.configured import configured_agent

MODEL = {"base_url": "http://127.0.0.1:9/v1", "model": "tiny"}


def agent_of(table: Mapping[str, Any], **environment: str) -> Agent:
    config = read_config({"agents": {"mine": dict(table)}}, {}, "dragoman.toml")
    return configured_agent("mine", config.agents["mine"], {"PATH": "/usr/bin:/bin", **environment})


def refusal(table: Mapping[str, Any], **environment: str) -> str:
    with pytest.raises(ConfigError) as caught:
        agent_of(table, **environment)
    return str(caught.value)


@pytest.mark.parametrize("table", [{"command": ["cat"]}, {"openai": MODEL}])
def test_the_card_says_what_the_table_says(table: dict[str, Any]) -> None:
    told = {"name": "Mine", "description": "Does it.", "version": "2.1", "output_modes": ["text/markdown"]}
    card = agent_of({**table, **told, "input_modes": ["text/plain"]}).card(())
    assert (card.name, card.description, card.version) == ("Mine", "Does it.", "2.1")
    assert (card.input_modes, card.output_modes) == (("text/plain",), ("text/markdown",))
    assert [(skill.id, skill.name, skill.description) for skill in card.skills] == [
        ("mine", "Mine", "Does it.")
    ]


@pytest.mark.parametrize("table", [{"command": ["cat"]}, {"openai": MODEL}])
def test_the_card_of_a_table_that_says_nothing_is_good_too(table: dict[str, Any]) -> None:
    card = agent_of(table).card(())
    assert (card.name, card.description, card.version) == ("mine", "The agent mine.", "1.0.0")
    assert card.input_modes == ("text/plain", "text/markdown", "application/json")
    assert card.output_modes == ("text/plain",)
    assert card.capabilities.streaming


@pytest.mark.parametrize("table", [{"command": ["cat"]}, {"openai": MODEL}])
def test_the_other_settings_are_those_of_any_agent(table: dict[str, Any]) -> None:
    settings = agent_of({**table, "on_lost_worker": "fail", "deadline": "5m", "max_runs": 3}).settings
    assert (settings.on_lost_worker, settings.deadline, settings.max_runs) == ("fail", 300.0, 3)
    assert agent_of({**table, "public": True}).settings.idempotency == "requested"


def test_where_an_agent_comes_from_is_told() -> None:
    assert re.fullmatch(r"the command /(usr/)?bin/cat", agent_of({"command": ["cat"]}).place)
    assert agent_of({"openai": MODEL}).place == "the model tiny at http://127.0.0.1:9/v1"


def test_a_command_is_given_a_few_variables_and_those_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Mapping[str, str]] = []
    began = Command.__init__

    def noted(self: Command, command: Any, environment: Mapping[str, str], **settings: Any) -> None:
        given.append(environment)
        began(self, command, environment, **settings)

    monkeypatch.setattr(Command, "__init__", noted)
    environment = {"HOME": "/h", "LANG": "C", "DRAGOMAN_SERVER_DRAIN": "1s", "TOKEN": "t", "OTHER": "o"}
    agent_of({"command": ["cat"], "command_env": ["TOKEN"]}, **environment)
    assert given == [{"PATH": "/usr/bin:/bin", "HOME": "/h", "LANG": "C", "TOKEN": "t"}]


def test_a_program_that_cannot_be_run_is_refused_with_the_place_that_was_tried(tmp_path: Path) -> None:
    assert refusal({"command": [str(tmp_path / "none")]}) == (
        f"agents.mine.command: there is no program {tmp_path}/none"
    )
    (tmp_path / "plain").touch()
    assert refusal({"command": [str(tmp_path / "plain")]}) == (
        f"agents.mine.command: {tmp_path}/plain may not be executed; allow it with `chmod +x`"
    )
    assert refusal({"command": ["no-such-program"]}) == (
        "agents.mine.command: there is no program 'no-such-program' that may be executed in /usr/bin:/bin"
    )


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"command": ["cat", "a\0"]}, "agents.mine.command: no word of a command can hold U+0000"),
        ({"command": ["cat"], "command_env": ["NONE"]}, "agents.mine.command_env: there is no environment variable"),
        ({"command": ["cat"], "command_env": ["DRAGOMAN_X"]}, "agents.mine.command_env: DRAGOMAN_X is the server's"),
        ({"command": ["cat"], "max_output": 0}, "agents.mine.max_output must be at least 1 byte"),
        ({"openai": MODEL, "command_env": ["A"]}, "agents.mine.command_env is for an agent that is a command"),
        ({"python": "dragoman.agents.demo:demo", "name": "x"}, "agents.mine.name: an agent in Python says this"),
        ({"python": "dragoman.agents.demo:demo", "max_output": 5}, "agents.mine.max_output: an agent in Python"),
        ({"openai": {"model": "m"}}, "agents.mine.openai.base_url is missing"),
        ({"openai": {"base_url": "http://a.example"}}, "agents.mine.openai.model is missing"),
        ({"openai": {**MODEL, "idle": "0s"}}, 'agents.mine.openai.idle must be longer than "0s"'),
        ({"openai": {**MODEL, "idle": "soon"}}, "agents.mine.openai.idle"),
        ({"openai": {**MODEL, "api_key_env": "NONE"}}, "agents.mine.openai.api_key_env: the environment variable NONE"),
        ({"openai": {**MODEL, "api_key_env": "BLANK"}}, "BLANK is not set, or empty"),
        ({"openai": {**MODEL, "api_key_env": "BROKEN"}}, "BROKEN holds something that no header can carry"),
        ({"openai": {**MODEL, "headers_env": {"X-A": "NONE"}}}, "agents.mine.openai.headers_env: the environment"),
        ({"openai": {**MODEL, "headers_env": {"Host": "TOKEN"}}}, "'Host' is no header that can be set here"),
        ({"openai": {**MODEL, "headers_env": {"X A": "TOKEN"}}}, "'X A' is no header"),
        (
            {"openai": {**MODEL, "api_key_env": "TOKEN", "headers_env": {"authorization": "TOKEN"}}},
            "api_key_env is the header Authorization already",
        ),
        *[
            ({"openai": {**MODEL, "base_url": url}}, "agents.mine.openai.base_url must be a URL such as")
            for url in (
                "models.example.com",
                "ftp://a.example",
                "http://",
                "http://u:hunter2@a.example",
                "http://a.example/?key=hunter2",
                "http://a.example/#x",
                "http://a.example/a b",
                "http://a.example:99999",
                "http://[::1",
            )
        ],
    ],
)  # fmt: skip
def test_what_cannot_be_right_is_refused_with_its_key_and_without_secrets(
    table: dict[str, Any], words: str
) -> None:
    told = refusal(table, TOKEN="hunter2", BLANK=" ", BROKEN="hunter2\nX: y")
    assert words in told
    assert "hunter2" not in told
