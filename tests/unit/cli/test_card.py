"""`dragoman card` at a server that answers whatever a test wants: what is shown, what is refused, and how it ends."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import typer
from msgspec import structs

from dragoman.cards.keys import jwks, new_key
from dragoman.cards.sign import signatures
from dragoman.cli.card import card_url
from dragoman.protocol.registry import load_versions
from tests.harness.paths import SOURCE
from tests.harness.server import ServerProcess

CARD = {
    "name": "Clerk",
    "description": "Files letters.",
    "version": "2.1",
    "supportedInterfaces": [
        {"url": "https://a.example/clerk", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
    ],
    "capabilities": {"streaming": True, "pushNotifications": False},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "file", "name": "File", "description": "Files.", "tags": ["office"]}],
    "url": "https://a.example/rpc",
    "preferredTransport": "JSONRPC",
    "protocolVersion": "0.3.0",
}

Answer = Callable[[BaseHTTPRequestHandler], None]


class Place:
    """A server on 127.0.0.1; `answer` writes each reply, `asked` holds the requests."""

    def __init__(self) -> None:
        self.answer: Answer = reply(json.dumps(CARD).encode())
        self.asked: list[tuple[str, dict[str, str]]] = []
        place = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                place.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                place.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


def reply(body: bytes, status: int = 200, **headers: str) -> Answer:
    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return write


@pytest.fixture
def place() -> Iterator[Place]:
    """A server that serves a good card until a test says otherwise."""
    made = Place()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()


def card(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    return subprocess.run(
        [sys.executable, "-m", "dragoman", "card", *arguments],
        env=kept | {"PYTHONPATH": str(SOURCE)} | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def test_a_good_card_is_shown_in_plain_lines_with_both_generations(place: Place) -> None:
    place.answer = reply(json.dumps(CARD).encode(), ETag='"abc"', Cache_Control="max-age=60")
    result = card(f"{place.url}/agents/clerk/")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[:3] == [
        f"card\t{place.url}/agents/clerk/.well-known/agent-card.json",
        "name\tClerk 2.1",
        "description\tFiles letters.",
    ]
    assert {
        "speaks\tA2A 1.0, A2A 0.3.0",
        "capabilities\tstreaming",
        'etag\t"abc"',
        "cache-control\tmax-age=60",
    } <= set(lines)
    assert lines[-5:] == [
        "a2a\tbinding\turl\tlisted in",
        "1.0\tHTTP+JSON\thttps://a.example/clerk\tsupportedInterfaces[0]",
        "0.3.0\tJSONRPC\thttps://a.example/rpc\turl",
        "",
        "valid by A2A 1.0 and 0.3",
    ]
    assert "signature" not in result.stdout


def test_a_card_is_asked_for_without_version_compression_or_credentials(place: Place) -> None:
    assert card(place.url, HTTP_PROXY="http://127.0.0.1:1", http_proxy="http://127.0.0.1:1").returncode == 0
    ((path, headers),) = place.asked
    assert path == "/.well-known/agent-card.json"
    assert "a2a-version" not in headers
    assert headers["accept-encoding"] == "identity"
    assert "authorization" not in headers


@pytest.mark.parametrize(("version", "sent"), [("0.3", "0.3"), ("1.0", "1.0"), ("", None)])
def test_the_form_of_a_version_can_be_asked_for(place: Place, version: str, sent: str | None) -> None:
    assert card(place.url, "--a2a-version", version).returncode == 0
    assert place.asked[0][1].get("a2a-version") == sent


def test_findings_are_named_and_end_in_1(place: Place) -> None:
    wrong = {name: value for name, value in CARD.items() if name != "skills"} | {"version": 7}
    place.answer = reply(json.dumps(wrong).encode())
    result = card(place.url)
    assert result.returncode == 1
    assert result.stdout.splitlines()[-5:] == [
        "where\twrong\twanted",
        "version\tis a number\ta string (A2A 1.0 §4.4.1)",
        "skills\tis missing\tan array with at least one item, each an AgentSkill (A2A 1.0 §4.4.1)",
        "",
        "not valid: 2 findings",
    ]


def test_programs_get_all_of_it_as_json(place: Place) -> None:
    wrong = {**CARD, "version": ""}
    place.answer = reply(json.dumps(wrong).encode(), ETag='"abc"', Cache_Control="max-age=60")
    result = card(place.url, "--json")
    assert result.returncode == 1
    document = json.loads(result.stdout)
    assert document["headers"] == {"etag": '"abc"', "cache-control": "max-age=60"}
    assert {name: value for name, value in document.items() if name != "headers"} == {
        "url": f"{place.url}/.well-known/agent-card.json",
        "valid": False,
        "generations": ["1.0", "0.3"],
        "name": "Clerk",
        "version": "",
        "interfaces": [
            {
                "version": "1.0",
                "binding": "HTTP+JSON",
                "url": "https://a.example/clerk",
                "tenant": "",
                "place": "supportedInterfaces[0]",
            },
            {
                "version": "0.3.0",
                "binding": "JSONRPC",
                "url": "https://a.example/rpc",
                "tenant": "",
                "place": "url",
            },
        ],
        "findings": [{"path": "version", "problem": "is empty", "wanted": "a string (A2A 1.0 §4.4.1)"}],
        "signature": "absent",
    }


def test_a_signature_that_nobody_asks_about_is_said_to_be_unverified(place: Place) -> None:
    place.answer = reply(
        json.dumps({**CARD, "signatures": [{"protected": "e30", "signature": "AA"}]}).encode()
    )
    result = card(place.url)
    told = [line for line in result.stdout.splitlines() if "signature" in line]
    assert (result.returncode, told) == (0, ["signature\tpresent, not verified; --verify does that"])
    assert json.loads(card(place.url, "--json").stdout)["signature"] == "unverified"


def test_nothing_in_a_card_reaches_the_terminal_as_an_order(place: Place) -> None:
    nasty = {
        **CARD,
        "name": "a\x1b[2J\x07b\tc\nd",
        "description": "\u202egnihton \ud800",
        "skills": [{**CARD["skills"][0], "id": "x" * 5000}],  # type: ignore[index]
        "evil\x1b[31m": 1,
        "defaultInputModes": ["\x9b31m"],
    }
    place.answer = reply(json.dumps(nasty).encode(), ETag='"\x9b"')
    for arguments in ([place.url], [place.url, "--json"]):
        result = card(*arguments)
        assert result.returncode == 1
        assert "Traceback" not in result.stderr
        assert not [one for one in result.stdout if not one.isprintable() and one not in "\n\t"]
    plain = card(place.url).stdout.splitlines()
    assert plain[1] == "name\ta\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}b c d 2.1"
    assert max(map(len, plain)) < 1000


def test_many_findings_are_counted_and_not_all_shown(place: Place) -> None:
    skills = [{"id": str(number)} for number in range(100)]
    place.answer = reply(json.dumps({**CARD, "skills": skills}).encode())
    result = card(place.url)
    assert result.stdout.splitlines()[-1] == "not valid: 300 findings, 200 of them not shown"
    assert len(json.loads(card(place.url, "--json").stdout)["findings"]) == 300


def drip(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(60):
        try:
            handler.wfile.write(b" ")
            handler.wfile.flush()
        except OSError:
            return
        time.sleep(0.5)


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(2000):
            handler.wfile.write(b" " * 65_536)
    except OSError:
        return


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            reply(b"", 302, Location="https://b.example/card"),
            "answers 302 and points to https://b.example/card",
        ),
        (reply(b"", 301), "answers 301 and points to nowhere; redirects are not followed"),
        (reply(b"no", 404), "answers 404 and no card: no"),
        (reply(b'{"error": {"message": "gone away"}}', 410), "answers 410 and no card: gone away"),
        (reply(b'{"error": []}', 500), 'answers 500 and no card: {"error": []}'),
        (reply(b"", 503), "answers 503 and no card: no reason given"),
        (reply(b"", 401), "answers 401: this card is not public"),
        (reply(b"", 403), "answers 403: this card is not public"),
        (reply(b"\x1f\x8b", Content_Encoding="gzip"), "came compressed (gzip)"),
        (reply(b" " * (1024 * 1024 + 1)), "the answer is larger than 1 MiB"),
        (endless, "the answer is larger than 1 MiB"),
    ],
    ids=["302", "301", "404", "410", "500", "503", "401", "403", "gzip", "large", "endless"],
)
def test_what_is_no_card_ends_in_1_with_the_reason(place: Place, answer: Answer, words: str) -> None:
    place.answer = answer
    result = card(place.url, "--json")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"dragoman: {place.url}/.well-known/agent-card.json: {words}")
    assert len(result.stderr.splitlines()) == 1
    assert len(place.asked) == 1


def test_a_card_of_one_mebibyte_is_read(place: Place) -> None:
    text = json.dumps(CARD).encode()
    place.answer = reply(text + b" " * (1024 * 1024 - len(text)))
    assert card(place.url).returncode == 0


def test_a_server_that_drips_is_left_after_ten_seconds(place: Place) -> None:
    place.answer = drip
    began = time.monotonic()
    result = card(place.url)
    assert result.returncode == 1
    assert result.stderr.endswith("no whole answer within 10 s\n")
    assert 10 <= time.monotonic() - began < 14


def test_a_server_that_is_not_there_ends_in_1(place: Place) -> None:
    place.server.server_close()
    result = card(place.url)
    assert result.returncode == 1
    assert "cannot be reached" in result.stderr


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("demo", "http://127.0.0.1:8080/agents/demo/.well-known/agent-card.json"),
        ("https://a.example", "https://a.example/.well-known/agent-card.json"),
        ("https://a.example/agents/x/", "https://a.example/agents/x/.well-known/agent-card.json"),
        ("https://a.example/x?tenant=1#top", "https://a.example/x/.well-known/agent-card.json?tenant=1"),
        ("https://a.example/.well-known/agent.json", "https://a.example/.well-known/agent.json"),
        ("https://a.example/.well-known/agent-card", "https://a.example/.well-known/agent-card"),
        ("https://a.example/cards/clerk.json", "https://a.example/cards/clerk.json"),
    ],
)
def test_the_url_of_the_card_follows_from_what_is_given(text: str, url: str) -> None:
    assert card_url(text) == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.example/x",
        "ftp://a.example",
        "https://",
        "https:///x",
        "https://u:p@a.example",
        "http://a:99999",
        "http://[",
    ],
)
def test_what_is_no_url_of_an_agent_is_refused_as_wrongly_asked(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as refusal:
        card_url(text)
    assert refusal.value.exit_code == 2
    told: Any = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("dragoman: ")
    assert "p@" not in told.err


def test_our_own_cards_are_valid(tmp_path: Any) -> None:
    with ServerProcess(tmp_path / "data") as server:
        for agent in ("demo", "digest"):
            result = card(f"{server.url}/agents/{agent}", "--json")
            document = json.loads(result.stdout)
            assert (result.returncode, document["findings"]) == (0, [])
            assert {(one["version"], one["binding"]) for one in document["interfaces"]} >= {
                ("1.0", "HTTP+JSON"),
                ("1.0", "JSONRPC"),
            }
            assert document["headers"]["etag"]
            assert document["headers"]["cache-control"] == "public, max-age=300"


# ---------------------------------------------------------------------------------------------------- signatures

KEYS = tuple(new_key(algorithm, 1_700_000_000) for algorithm in ("ES256", "EdDSA"))
WHOLE = {**CARD, "protocolVersion": "0.3"}
SIGNED = {
    **WHOLE,
    "signatures": [
        entry
        for version in ("1.0", "0.3")
        for entry in signatures(WHOLE, version, KEYS[:1], "https://elsewhere.example/jwks.json")
    ],
}


def serve(place: Place, documents: dict[str, bytes]) -> None:
    """Have documents stand at paths, and nothing anywhere else."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        body = documents.get(handler.path)
        reply(b"nothing", 404)(handler) if body is None else reply(body)(handler)

    place.answer = answer


def asked(place: Place) -> list[str]:
    return [path for path, _ in place.asked]


def verdict(*arguments: str) -> tuple[int, dict[str, Any]]:
    """How the command ends, and what programs get of it."""
    result = card(*arguments, "--json")
    assert result.stdout, result.stderr
    return result.returncode, json.loads(result.stdout)


BASE = "/agents/clerk/.well-known/"


@pytest.mark.parametrize("at", [BASE + "jwks.json", "/.well-known/jwks.json"])
def test_signatures_are_verified_by_the_keys_beside_the_card(place: Place, at: str) -> None:
    serve(place, {BASE + "agent-card.json": json.dumps(SIGNED).encode(), at: jwks(KEYS)})
    code, document = verdict(f"{place.url}/agents/clerk", "--verify")
    assert (code, document["signature"], document["covered"]) == (0, "good", ["1.0", "0.3"])
    assert document["keys"].startswith(
        f"{place.url}{at} (beside the card: they tell that it is whole, not whose"
    )
    assert [(row["key"], row["alg"], row["for"], row["signature"]) for row in document["signatures"]] == [
        (KEYS[0].kid, "ES256", "1.0", "good"),
        (KEYS[0].kid, "ES256", "0.3", "good"),
    ]


def test_only_pinned_keys_count_where_keys_are_pinned(place: Place, tmp_path: Any) -> None:
    serve(place, {BASE + "agent-card.json": json.dumps(SIGNED).encode(), BASE + "jwks.json": jwks(KEYS)})
    (tmp_path / "good.json").write_bytes(jwks(KEYS[:1]))
    (tmp_path / "other.json").write_bytes(jwks(KEYS[1:]))
    code, document = verdict(f"{place.url}/agents/clerk", "--jwks", str(tmp_path / "good.json"))
    assert (code, document["signature"], document["keys"]) == (0, "good", str(tmp_path / "good.json"))
    code, document = verdict(f"{place.url}/agents/clerk", "--jwks", str(tmp_path / "other.json"))
    assert (code, document["signature"], document["covered"]) == (1, "bad", [])
    assert document["signatures"][0]["signature"] == (
        "is by a key that is not among the trusted ones; its jku https://elsewhere.example/jwks.json was not asked"
    )
    assert asked(place) == [BASE + "agent-card.json"] * 2


def test_keys_may_be_pinned_by_their_url(place: Place) -> None:
    serve(place, {"/card.json": json.dumps(SIGNED).encode(), "/keys": jwks(KEYS)})
    code, document = verdict(f"{place.url}/card.json", "--jwks", f"{place.url}/keys")
    assert (code, document["keys"], asked(place)) == (0, f"{place.url}/keys", ["/card.json", "/keys"])


def test_what_a_generation_reads_must_be_signed_for_it(place: Place) -> None:
    """An address for 0.3 callers that somebody put in later is not what the signature of 1.0 is over."""
    changed = {**SIGNED, "url": "https://evil.example/rpc"}
    serve(place, {"/card.json": json.dumps(changed).encode(), "/.well-known/jwks.json": jwks(KEYS)})
    code, document = verdict(f"{place.url}/card.json", "--verify")
    assert (code, document["signature"], document["covered"]) == (1, "bad", ["1.0"])
    told = [
        line
        for line in card(f"{place.url}/card.json", "--verify").stdout.splitlines()
        if "signature\t" in line
    ]
    assert told[0] == (
        "signature\tnot good: nothing trusted vouches for what A2A 0.3 reads of the card; for A2A 1.0 alone it is good "
        "(--a2a-version 1.0)"
    )
    code, document = verdict(f"{place.url}/card.json", "--verify", "--a2a-version", "1.0")
    assert (code, document["signature"]) == (0, "good")


def test_a_card_that_is_not_signed_is_not_good_where_that_is_asked(place: Place) -> None:
    serve(place, {"/card.json": json.dumps(CARD).encode(), "/.well-known/jwks.json": jwks(KEYS)})
    code, document = verdict(f"{place.url}/card.json", "--verify")
    assert (code, document["signature"], document["signatures"]) == (1, "bad", [])
    assert (
        "signature\tabsent, so nothing vouches for the card"
        in card(f"{place.url}/card.json", "--verify").stdout
    )


def test_a_card_that_gives_a_member_twice_is_not_good(place: Place) -> None:
    text = json.dumps(SIGNED).replace('"name": "Clerk"', '"name": "Evil", "name": "Clerk"')
    assert text != json.dumps(SIGNED)
    serve(place, {"/card.json": text.encode(), "/.well-known/jwks.json": jwks(KEYS)})
    code, document = verdict(f"{place.url}/card.json", "--verify")
    assert (code, document["signature"], document["valid"]) == (1, "bad", False)


def test_a_key_whose_time_is_over_vouches_for_nothing(place: Place) -> None:
    over = jwks([structs.replace(KEYS[0], until=1_700_000_100)])
    serve(place, {"/card.json": json.dumps(SIGNED).encode(), "/.well-known/jwks.json": over})
    code, document = verdict(f"{place.url}/card.json", "--verify")
    assert (code, document["signature"]) == (1, "bad")
    assert document["signatures"][0]["signature"].startswith("is by a key whose time is over")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (b"[]", "is no JWK Set"),
        (b"\xff", "is no JWK Set"),
        (None, "there are no keys beside the card; name some"),
    ],
)
def test_keys_that_cannot_be_had_end_in_1(place: Place, keys: bytes | None, words: str) -> None:
    documents = {"/card.json": json.dumps(SIGNED).encode()}
    serve(place, documents if keys is None else {**documents, "/.well-known/jwks.json": keys})
    result = card(f"{place.url}/card.json", "--verify")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("dragoman: ") and words in result.stderr


def test_a_pinned_file_that_is_not_there_ends_in_1(place: Place, tmp_path: Any) -> None:
    serve(place, {"/card.json": json.dumps(SIGNED).encode()})
    result = card(f"{place.url}/card.json", "--jwks", str(tmp_path / "none.json"))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"dragoman: --jwks {tmp_path}/none.json: No such file or directory\n"


def test_our_own_cards_are_signed_well(tmp_path: Any) -> None:
    with ServerProcess(tmp_path / "data") as server:
        versions = list(load_versions())
        for version in ("", *versions):
            code, document = verdict(f"{server.url}/agents/demo", "--verify", "--a2a-version", version)
            assert (code, document["signature"]) == (0, "good")
            assert document["covered"] == ([version] if version else versions)
        root = f"{server.url}/.well-known/jwks.json"
        code, document = verdict(f"{server.url}/agents/demo", "--jwks", root)
        assert (code, document["keys"]) == (0, root)
