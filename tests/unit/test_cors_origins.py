"""`server.cors_origins`: what a browser could send is taken, anything else is refused with what would be right."""

import re
from typing import Any

import pytest

from dragoman.config import read_config
from dragoman.tables import ConfigError


def origins(value: Any, environment: dict[str, str] | None = None) -> tuple[str, ...]:
    document = {} if value is None else {"server": {"cors_origins": value}}
    return read_config(document, environment or {}, "test").server.cors_origins


def test_nobody_is_allowed_unless_somebody_is_named() -> None:
    assert origins(None) == ()


@pytest.mark.parametrize(
    "origin",
    [
        "https://app.example.com",
        "http://localhost:3000",
        "http://127.0.0.1:8080",
        "http://[::1]:3000",
        "https://xn--bcher-kva.example",
        "capacitor://localhost",
        "chrome-extension://abcdefghijklmnop",
        "*",
    ],
)
def test_what_a_browser_sends_is_an_origin(origin: str) -> None:
    assert origins([origin]) == (origin,)


@pytest.mark.parametrize(
    "origin",
    [
        "app.example.com",
        "https://app.example.com/",
        "https://app.example.com/path",
        "https://App.example.com",
        "HTTPS://app.example.com",
        "https://app.example.com:443",
        "http://app.example.com:80",
        "https://app.example.com:0",
        "https://*.example.com",
        "https://user@app.example.com",
        "https://bücher.example",
        "null",
        "",
    ],
)
def test_what_no_browser_sends_is_refused_by_name(origin: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f'server.cors_origins: "{origin}" is no origin')):
        origins(["https://good.example", origin])


def test_everybody_and_somebody_is_a_contradiction() -> None:
    with pytest.raises(ConfigError, match="everybody"):
        origins(["*", "https://app.example.com"])


@pytest.mark.parametrize("value", ["https://app.example.com", [1], True])
def test_it_is_a_list_of_texts(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"server\.cors_origins"):
        origins(value)


def test_a_variable_of_the_environment_holds_them_with_commas_between() -> None:
    environment = {"DRAGOMAN_SERVER_CORS_ORIGINS": "https://a.example, http://localhost:3000,"}
    assert origins(["https://b.example"], environment) == ("https://a.example", "http://localhost:3000")
