"""Remote agents as the configuration describes them, and what is refused of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman.agents import Agent
from dragoman.config import ConfigError, read_config
from dragoman.configured import configured_agent
from dragoman.egress.policy import Origin
from dragoman.mirroring import remote_settings

URL = "https://agents.example.com/agents/clerk"


def agent_of(table: Mapping[str, Any], **environment: str) -> Agent:
    config = read_config({"agents": {"mine": dict(table)}}, {}, "dragoman.toml")
    return configured_agent("mine", config.agents["mine"], environment)


def refusal(table: Mapping[str, Any], **environment: str) -> str:
    with pytest.raises(ConfigError) as caught:
        agent_of(table, **environment)
    return str(caught.value)


def test_a_url_is_enough() -> None:
    agent = agent_of({"a2a": URL})
    assert agent.place == f"the remote agent at {URL}"
    assert (agent.name, agent.settings.replies, agent.settings.strict_input_modes) == (
        "mine",
        "either",
        False,
    )
    assert agent.description == "An agent elsewhere, whose own card could not be had yet."


def test_the_table_says_the_rest() -> None:
    table = {
        "a2a": {
            "url": URL,
            "bearer_env": "TOKEN",
            "headers_env": {"X-Team": "TEAM"},
            "origins": ["https://b.example"],
        }
    }
    config = read_config({"agents": {"mine": {**table, "max_output": 5}}}, {}, "")
    found = remote_settings("mine", config.agents["mine"], {"TOKEN": "t0k3n", "TEAM": "red"}, Path("data"))
    assert dict(found.credentials) == {"Authorization": "Bearer t0k3n", "X-Team": "red"}
    assert set(found.secrets()) == {"Bearer t0k3n", "t0k3n", "red"}
    assert found.policy.trusted == (
        Origin("https", "agents.example.com", 443),
        Origin("https", "b.example", 443),
    )
    assert (found.terms.idle, found.terms.patience, found.terms.largest, found.refresh) == (30, 60, 5, 300)
    assert found.file == Path("data/remotes/mine.json")


def test_settings_of_any_agent_hold_here_too() -> None:
    agent = agent_of({"a2a": URL, "on_lost_worker": "fail", "deadline": "5m", "strict_input_modes": True})
    settings = agent.settings
    assert (settings.on_lost_worker, settings.deadline, settings.strict_input_modes) == ("fail", 300.0, True)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"a2a": URL, "command": ["cat"]}, "only one of them"),
        ({"a2a": ""}, "must be there"),
        ({"a2a": {}}, "agents.mine.a2a.url must be a URL such as"),
        ({"a2a": "agents.example.com"}, "agents.mine.a2a must be a URL such as"),
        ({"a2a": "https://user:word@agents.example.com"}, "secrets go into bearer_env"),
        ({"a2a": f"{URL}?key=1"}, "neither user, query nor fragment"),
        ({"a2a": "https://agents.example.com./x"}, "must not end with a dot"),
        ({"a2a": {"url": URL, "idel": "3s"}}, "did you mean idle"),
        ({"a2a": {"url": URL, "idle": "0s"}}, 'agents.mine.a2a.idle must be longer than "0s"'),
        ({"a2a": {"url": URL, "patience": "soon"}}, "agents.mine.a2a.patience"),
        ({"a2a": {"url": URL, "version": "0.2"}}, 'agents.mine.a2a.version: "0.2" is none of 1.0'),
        ({"a2a": {"url": URL, "binding": "GRPC"}}, 'binding: "GRPC" is none of JSONRPC, HTTP+JSON'),
        ({"a2a": {"url": URL, "bearer_env": "NONE"}}, "agents.mine.a2a.bearer_env: the environment variable NONE"),
        ({"a2a": {"url": URL, "headers_env": {"A2A-Version": "T"}}}, "no header that can be set here"),
        (
            {"a2a": {"url": URL, "bearer_env": "T", "headers_env": {"authorization": "T"}}},
            "bearer_env is the header Authorization already",
        ),
        ({"a2a": {"url": URL, "jwks_file": "/nowhere.json"}}, "agents.mine.a2a.jwks_file: /nowhere.json: No such file"),
        ({"a2a": {"url": URL, "origins": ["ftp://b.example"]}}, "must be an https URL"),
        ({"a2a": {"url": 3}}, "agents.mine"),
        ({"a2a": URL, "max_output": 0}, "agents.mine.max_output must be at least 1 byte"),
        ({"a2a": URL, "command_env": ["A"]}, "command_env is for an agent that is a command"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_its_key(table: dict[str, Any], words: str) -> None:
    assert words in refusal(table, T="t")


def test_no_secret_shows_in_a_refusal() -> None:
    assert "s3cr3t" not in refusal({"a2a": "https://s3cr3t@agents.example.com"})
    assert "s3c r3t" not in refusal({"a2a": {"url": URL, "bearer_env": "T"}}, T="s3c\x01r3t")
