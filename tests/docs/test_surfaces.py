"""The table in `explanation/versions.md` of which version answers where, asked of a real server cell by cell."""

import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.harness.paths import CHECKOUT
from tests.harness.server import ServerProcess

PAGE = CHECKOUT / "docs" / "explanation" / "versions.md"
ELSE = ("2.0", "1", "v1.0", "0.3.x", "garbage")
"""What a caller may write who means none of the versions in the table."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A client of the demo agent, at its base."""
    with (
        ServerProcess(tmp_path_factory.mktemp("surfaces") / "data") as server,
        httpx2.Client(base_url=f"{server.url}/agents/demo", timeout=20, trust_env=False) as opened,
    ):
        yield opened


def cells() -> list[tuple[str, str, str]]:
    """Where something is asked, in which version, and what the page says of the answer."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    begin = next(number for number, row in enumerate(table) if row[0] == "asked at")
    head, rows = table[begin], table[begin + 2 :]
    return [(row[0], asked, said) for row in rows for asked, said in zip(head[1:], row[1:], strict=True)]


def test_the_table_has_every_place_and_every_version() -> None:
    assert len(cells()) == 6 * 5


@pytest.mark.parametrize(("place", "asked", "said"), cells())
def test_a_request_is_answered_in_the_version_of_the_table(
    client: httpx2.Client, place: str, asked: str, said: str
) -> None:
    assert {_answer(client, place, headers) for headers in _headers(asked)} == {said}


def _headers(asked: str) -> list[dict[str, str]]:
    if asked == "nothing, or empty":
        return [{}, {"A2A-Version": ""}]
    return [{"A2A-Version": one} for one in (ELSE if asked == "anything else" else [asked.strip("`")])]


def _answer(client: httpx2.Client, place: str, headers: dict[str, str]) -> str:
    path = "".join(re.findall(r"`(/[^`]+)`", place))
    if path == "/rpc":
        method = {"0.3": "tasks/get", "1.0": "GetTask"}[place[-3:]]
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": "none"}}
        reply = client.post(path, headers=headers, json=call)
        served = reply.headers.get("a2a-version", "")
        answer = {-32009: "refused", -32601: "no method", -32001: served}[reply.json()["error"]["code"]]
    elif path.endswith(".json"):
        reply = client.get(path, headers=headers)
        answer = _card_form(reply.json()) if reply.status_code == 200 else "refused"
    else:
        reply = client.get(f"{path}/tasks/none", headers=headers)
        answer = {404: reply.headers.get("a2a-version", ""), 400: "refused"}[reply.status_code]
    assert ("a2a-version" in reply.headers) == (answer != "refused")
    assert reply.headers["vary"] == "A2A-Version, Accept"
    return answer


def _card_form(card: dict[str, Any]) -> str:
    forms = {(True, True): "card for both", (True, False): "card of 1.0", (False, True): "card of 0.3"}
    return forms["supportedInterfaces" in card, "preferredTransport" in card]
