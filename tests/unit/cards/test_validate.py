"""Cards are judged member by member: what is wrong is named by its path, with what is wanted and by which section."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from dragoman.cards.validate import CardReport, validate

NEW: Mapping[str, Any] = MappingProxyType(
    {
        "name": "Clerk",
        "description": "Files letters.",
        "version": "2.1",
        "supportedInterfaces": [
            {"url": "https://a.example/clerk", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": "https://a.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        ],
        "capabilities": {},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["application/vnd.geo+json", "*/*"],
        "skills": [{"id": "file", "name": "File", "description": "Files.", "tags": ["office"]}],
    }
)
OLD_MEMBERS: Mapping[str, Any] = MappingProxyType(
    {
        "url": "https://a.example/rpc",
        "preferredTransport": "JSONRPC",
        "protocolVersion": "0.3.0",
        "additionalInterfaces": [{"url": "https://a.example/clerk/v1", "transport": "HTTP+JSON"}],
    }
)
HYBRID: Mapping[str, Any] = MappingProxyType({**NEW, **OLD_MEMBERS})
OLD: Mapping[str, Any] = MappingProxyType(
    {name: value for name, value in HYBRID.items() if name != "supportedInterfaces"}
)
ABSENT = object()


def judged(card: Mapping[str, Any], *path: Any, to: Any = ABSENT) -> CardReport:
    """Judge a card in which the member at `path` is changed, or taken away."""
    changed = json.loads(json.dumps(dict(card)))
    if path:
        holder = changed
        for step in path[:-1]:
            holder = holder[step]
        if to is ABSENT:
            del holder[path[-1]]
        else:
            holder[path[-1]] = to
    return validate(json.dumps(changed).encode())


def found(report: CardReport) -> list[tuple[str, str]]:
    return [(finding.path, finding.problem) for finding in report.findings]


def only(report: CardReport) -> tuple[str, str, str]:
    (finding,) = report.findings
    return finding.path, finding.problem, finding.wanted


@pytest.mark.parametrize(
    ("card", "generations"), [(NEW, ("1.0",)), (HYBRID, ("1.0", "0.3")), (OLD, ("0.3",))]
)
def test_a_good_card_has_no_finding_in_any_generation(
    card: Mapping[str, Any], generations: tuple[str, ...]
) -> None:
    report = judged(card)
    assert report.findings == ()
    assert report.generations == generations


def test_members_that_the_standard_does_not_know_are_ignored() -> None:
    assert judged({**NEW, "x-colour": 7, "security": [{"google": ["openid"]}]}).findings == ()


STRING = "a string (A2A 1.0 §4.4.1)"
MODES = "an array with at least one item, each a media type such as text/plain (A2A 1.0 §4.4.1)"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("name", STRING),
        ("description", STRING),
        ("version", STRING),
        (
            "supportedInterfaces",
            "an array with at least one item, each an AgentInterface (A2A 1.0 §4.4.1)",
        ),
        ("capabilities", "AgentCapabilities (A2A 1.0 §4.4.1)"),
        ("defaultInputModes", MODES),
        ("defaultOutputModes", MODES),
        ("skills", "an array with at least one item, each an AgentSkill (A2A 1.0 §4.4.1)"),
    ],
)
def test_a_required_member_that_is_missing_null_or_empty_is_named(name: str, wanted: str) -> None:
    assert only(judged(NEW, name)) == (name, "is missing", wanted)
    assert only(judged(NEW, name, to=None)) == (name, "is null", wanted)
    if name != "capabilities":
        empty = "" if wanted is STRING else []
        assert only(judged(NEW, name, to=empty)) == (name, "is empty", wanted)
    assert only(judged(NEW, name, to=7)) == (name, "is a number", wanted)


@pytest.mark.parametrize("name", ["id", "name", "description", "tags"])
def test_what_a_skill_lacks_is_named_with_its_place(name: str) -> None:
    path, problem, wanted = only(judged(NEW, "skills", 0, name))
    assert (path, problem) == (f"skills[0].{name}", "is missing")
    assert wanted.endswith("(A2A 1.0 §4.4.5)")


@pytest.mark.parametrize("name", ["url", "protocolBinding", "protocolVersion"])
def test_what_an_interface_lacks_is_named_with_its_place(name: str) -> None:
    path, problem, wanted = only(judged(NEW, "supportedInterfaces", 1, name))
    assert (path, problem) == (f"supportedInterfaces[1].{name}", "is missing")
    assert wanted.endswith("(A2A 1.0 §4.4.6)")


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("skills", 0, "tags"), [], "is empty"),
        (("skills", 0, "tags", 0), 3, "is a number"),
        (("skills", 0), "file", "is a string"),
        (("skills", 0, "examples"), "x", "is a string"),
        (("skills", 0, "inputModes"), ["text"], None),
        (("capabilities",), [], "is an array"),
        (("capabilities", "streaming"), "yes", "is a string"),
        (("capabilities", "extensions"), [{"uri": 1}], None),
        (("defaultInputModes", 0), "text", 'is "text"'),
        (("defaultInputModes", 0), None, "is null"),
        (("provider",), {"organization": "O"}, None),
        (("documentationUrl",), "docs", 'is "docs"'),
        (("supportedInterfaces",), {}, "is an object"),
        (("signatures",), {}, "is an object"),
    ],
)
def test_a_wrong_value_is_named_by_its_path(path: tuple[Any, ...], value: Any, problem: str | None) -> None:
    report = judged({**NEW, "signatures": []}, *path, to=value)
    shown = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)[1:]
    (finding,) = report.findings
    assert finding.path.startswith(shown)
    assert problem is None or (finding.path, finding.problem) == (shown, problem)


@pytest.mark.parametrize("version", ["1", "1.0.0", "v1.0", "01.0", "1.0 ", ""])
def test_the_version_of_an_interface_is_major_minor(version: str) -> None:
    path, problem, wanted = only(judged(NEW, "supportedInterfaces", 0, "protocolVersion", to=version))
    assert path == "supportedInterfaces[0].protocolVersion"
    assert problem == (f'is "{version}"' if version else "is empty")
    assert wanted == 'a version as Major.Minor, such as "1.0" (A2A 1.0 §4.4.6)'


@pytest.mark.parametrize(
    "url",
    ["/clerk", "a.example/clerk", "ftp://a.example", "https://", "http:///x", "https://a b/", "//a.example"],
)
def test_the_url_of_an_interface_is_absolute(url: str) -> None:
    assert only(judged(NEW, "supportedInterfaces", 0, "url", to=url)) == (
        "supportedInterfaces[0].url",
        f'is "{url}"',
        "an absolute http or https URL (A2A 1.0 §4.4.6)",
    )


@pytest.mark.parametrize("url", ["https://a.example", "http://[::1]:8080/x", "a.example:443"])
def test_a_grpc_interface_is_a_url_or_a_host_and_port(url: str) -> None:
    entry = {"url": url, "protocolBinding": "GRPC", "protocolVersion": "1.0"}
    assert judged(NEW, "supportedInterfaces", 0, to=entry).findings == ()


def test_a_custom_binding_may_have_a_scheme_of_its_own() -> None:
    entry = {
        "url": "wss://a.example/x",
        "protocolBinding": "https://a.example/b/v1",
        "protocolVersion": "1.0",
    }
    assert judged(NEW, "supportedInterfaces", 0, to=entry).findings == ()
    bad = judged(NEW, "supportedInterfaces", 0, to={**entry, "url": "x"})
    assert found(bad) == [("supportedInterfaces[0].url", 'is "x"')]


@pytest.mark.parametrize(
    ("written", "right"),
    [
        ("jsonrpc", "JSONRPC"),
        ("JSON-RPC", "JSONRPC"),
        ("http+json", "HTTP+JSON"),
        ("REST", "HTTP+JSON"),
        ("grpc", "GRPC"),
    ],
)
def test_a_core_binding_is_written_exactly_as_clients_compare_it(written: str, right: str) -> None:
    report = judged(NEW, "supportedInterfaces", 0, "protocolBinding", to=written)
    assert only(report) == (
        "supportedInterfaces[0].protocolBinding",
        f'is "{written}"',
        f"{right}, written exactly so (A2A 1.0 §4.4.6)",
    )


def test_an_interface_or_a_skill_that_is_listed_twice_is_named() -> None:
    interfaces = [*NEW["supportedInterfaces"], NEW["supportedInterfaces"][0]]
    skills = [*NEW["skills"], {**NEW["skills"][0], "name": "Again"}]
    assert found(judged({**NEW, "supportedInterfaces": interfaces, "skills": skills})) == [
        ("skills[1].id", "repeats skills[0].id"),
        ("supportedInterfaces[2]", "repeats supportedInterfaces[0]"),
    ]


@pytest.mark.parametrize("wrong", ["supported_interfaces", "SupportedInterfaces", "supportedinterfaces"])
def test_a_member_in_another_spelling_is_named_once_with_the_right_one(wrong: str) -> None:
    card = {**NEW, wrong: NEW["supportedInterfaces"]}
    del card["supportedInterfaces"]
    assert only(judged(card)) == (
        wrong,
        "is not read",
        "the name supportedInterfaces, in camelCase (A2A 1.0 §5.5)",
    )


SCHEMES: Mapping[str, Any] = MappingProxyType(
    {
        "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
        "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}},
        "oauth": {
            "oauth2SecurityScheme": {
                "flows": {"clientCredentials": {"tokenUrl": "https://a.example/t", "scopes": {}}}
            }
        },
        "oidc": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://a.example/c"}},
        "mtls": {"mtlsSecurityScheme": {}},
    }
)
SECURE: Mapping[str, Any] = MappingProxyType(
    {
        **NEW,
        "securitySchemes": dict(SCHEMES),
        "securityRequirements": [{"schemes": {"oauth": {"list": ["read"]}}}, {"schemes": {"key": {}}}, {}],
    }
)


def test_every_kind_of_security_scheme_is_known() -> None:
    assert judged(SECURE).findings == ()


@pytest.mark.parametrize(
    ("path", "value", "place", "problem"),
    [
        (
            ("bearer", "httpAuthSecurityScheme", "scheme"),
            ABSENT,
            "bearer.httpAuthSecurityScheme.scheme",
            "is missing",
        ),
        (
            ("key", "apiKeySecurityScheme", "location"),
            "body",
            "key.apiKeySecurityScheme.location",
            'is "body"',
        ),
        (
            ("oidc", "openIdConnectSecurityScheme", "openIdConnectUrl"),
            "x",
            "oidc.openIdConnectSecurityScheme.openIdConnectUrl",
            'is "x"',
        ),
        (("mtls",), {}, "mtls", "has none of them"),
        (("mtls",), {"type": "http", "scheme": "bearer"}, "mtls", "has none of them"),
        (
            ("mtls", "httpAuthSecurityScheme"),
            {"scheme": "x"},
            "mtls",
            "has httpAuthSecurityScheme and mtlsSecurityScheme",
        ),
        (
            ("oauth", "oauth2SecurityScheme", "flows"),
            {},
            "oauth.oauth2SecurityScheme.flows",
            "has none of them",
        ),
        (
            ("oauth", "oauth2SecurityScheme", "flows", "implicit"),
            {},
            "oauth.oauth2SecurityScheme.flows",
            "has clientCredentials and implicit",
        ),
        (
            ("oauth", "oauth2SecurityScheme", "flows", "clientCredentials", "scopes"),
            ABSENT,
            "oauth.oauth2SecurityScheme.flows.clientCredentials.scopes",
            "is missing",
        ),
    ],
)
def test_a_wrong_security_scheme_is_named(
    path: tuple[str, ...], value: Any, place: str, problem: str
) -> None:
    report = judged(SECURE, "securitySchemes", *path, to=value)
    assert found(report) == [(f"securitySchemes.{place}", problem)]


def test_a_requirement_names_schemes_that_are_declared() -> None:
    report = judged(SECURE, "securityRequirements", 0, to={"schemes": {"nobody": {"list": []}}})
    assert only(report) == (
        "securityRequirements[0]",
        'names "nobody"',
        "a scheme that securitySchemes declares (A2A 1.0 §4.5)",
    )


def test_a_requirement_in_the_form_of_0_3_is_named() -> None:
    report = judged(SECURE, "securityRequirements", 0, to={"oauth": ["read"]})
    assert found(report) == [("securityRequirements[0]", "has no schemes")]


def test_requirements_of_skills_are_judged_too() -> None:
    report = judged(SECURE, "skills", 0, "securityRequirements", to=[{"schemes": {"nobody": {}}}])
    assert found(report) == [("skills[0].securityRequirements[0]", 'names "nobody"')]


@pytest.mark.parametrize("name", ["url", "preferredTransport", "protocolVersion"])
def test_a_hybrid_card_needs_what_0_3_clients_read(name: str) -> None:
    path, problem, wanted = only(judged(HYBRID, name))
    assert (path, problem) == (name, "is missing")
    assert wanted.endswith("(A2A 0.3 §5.5)")


@pytest.mark.parametrize(
    ("path", "value", "place", "problem"),
    [
        (("url",), "/rpc", "url", 'is "/rpc"'),
        (("protocolVersion",), "1.0", "protocolVersion", 'is "1.0"'),
        (("preferredTransport",), "jsonrpc", "preferredTransport", 'is "jsonrpc"'),
        (("additionalInterfaces",), {}, "additionalInterfaces", "is an object"),
        (("additionalInterfaces", 0, "url"), "x", "additionalInterfaces[0].url", 'is "x"'),
        (("additionalInterfaces", 0, "transport"), ABSENT, "additionalInterfaces[0].transport", "is missing"),
        (("additionalInterfaces", 0, "transport"), "REST", "additionalInterfaces[0].transport", 'is "REST"'),
    ],
)
def test_wrong_0_3_members_of_a_hybrid_card_are_named(
    path: tuple[Any, ...], value: Any, place: str, problem: str
) -> None:
    assert found(judged(HYBRID, *path, to=value)) == [(place, problem)]


def test_a_scheme_of_a_hybrid_card_has_both_forms() -> None:
    both = {"type": "http", "scheme": "bearer", "httpAuthSecurityScheme": {"scheme": "bearer"}}
    card = {**HYBRID, "securitySchemes": {"b": both}, "security": [{"b": []}]}
    assert judged(card).findings == ()
    assert found(judged(card, "securitySchemes", "b", "type")) == [("securitySchemes.b.type", "is missing")]
    assert found(judged(card, "securitySchemes", "b", "scheme")) == [
        ("securitySchemes.b.scheme", "is missing")
    ]
    assert found(judged(card, "securitySchemes", "b", "httpAuthSecurityScheme")) == [
        ("securitySchemes.b", "has none of them")
    ]
    assert found(judged(card, "security", 0, to={"c": []})) == [("security[0]", 'names "c"')]


SDK_SECURITY = """
{
"securitySchemes": {
  "b": {"httpAuthSecurityScheme": {"scheme": "bearer"}, "scheme": "bearer", "type": "http"},
  "i": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://a.example/c"},
        "openIdConnectUrl": "https://a.example/c", "type": "openIdConnect"},
  "k": {"apiKeySecurityScheme": {"location": "header", "name": "X"}, "in": "header", "name": "X", "type": "apiKey"},
  "m": {"mtlsSecurityScheme": {"description": "x"}, "description": "x", "type": "mutualTLS"},
  "o": {"oauth2SecurityScheme": {"flows": {"clientCredentials":
          {"tokenUrl": "https://a.example/t", "scopes": {"r": "read"}}}},
        "flows": {"clientCredentials": {"scopes": {"r": "read"}, "tokenUrl": "https://a.example/t"}},
        "type": "oauth2"}},
"securityRequirements": [{"schemes": {"b": {}}}, {"schemes": {"o": {"list": ["r"]}}}],
"security": [{"b": []}, {"o": ["r"]}],
"supportsAuthenticatedExtendedCard": true
}
"""
"""The security members of a hybrid card as a2a-sdk 1.3.0 wrote it."""


def test_a_hybrid_card_as_the_official_sdk_writes_it_is_good() -> None:
    card = {**HYBRID, **json.loads(SDK_SECURITY), "protocolVersion": "0.3"}
    assert judged(card).findings == ()


def test_what_both_generations_find_is_said_once() -> None:
    assert only(judged(HYBRID, "name")) == ("name", "is missing", STRING)


def test_a_0_3_card_alone_is_judged_by_0_3_alone() -> None:
    assert only(judged(OLD, "skills", 0, "id")) == ("skills[0].id", "is missing", "a string (A2A 0.3 §5.5.4)")
    assert judged(OLD, "skills", 0, "tags", to=[]).findings == ()
    assert found(judged(OLD, "skills", to=[])) == [("skills", "is empty")]


def test_an_old_oauth_scheme_may_have_several_flows_and_has_no_device_flow() -> None:
    token = {"tokenUrl": "https://a.example/t", "scopes": {}}
    flows = {"clientCredentials": token, "password": token, "deviceCode": 7}
    card = {**OLD, "securitySchemes": {"o": {"type": "oauth2", "flows": flows}}}
    assert judged(card).findings == ()
    assert found(judged(card, "securitySchemes", "o", "type", to="oauth")) == [
        ("securitySchemes.o.type", 'is "oauth"')
    ]


def test_interfaces_of_both_generations_are_shown_in_their_order() -> None:
    shown = [(one.version, one.binding, one.url, one.place) for one in judged(HYBRID).interfaces]
    assert shown == [
        ("1.0", "HTTP+JSON", "https://a.example/clerk", "supportedInterfaces[0]"),
        ("1.0", "JSONRPC", "https://a.example/rpc", "supportedInterfaces[1]"),
        ("0.3.0", "JSONRPC", "https://a.example/rpc", "url"),
        ("0.3.0", "HTTP+JSON", "https://a.example/clerk/v1", "additionalInterfaces[0]"),
    ]


def test_a_member_that_is_given_twice_is_named() -> None:
    text = json.dumps(dict(NEW)).replace(
        '"capabilities": {', '"name": "Other", "capabilities": {"a": 1, "a": 2'
    )
    problems = [
        finding for finding in validate(text.encode()).findings if finding.problem == "is given twice"
    ]
    assert [finding.path for finding in problems] == ["name", "capabilities.a"]
    assert problems[0].wanted == "JSON that every reader understands alike (RFC 7493)"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "is not JSON: Expecting value at line 1 column 1"),
        (b"<html>", "is not JSON: Expecting value at line 1 column 1"),
        (b"\xff{}", "is not UTF-8: byte 0 cannot be read"),
        (b"[" * 100 + b"]" * 100, "is nested more than 64 deep"),
        (b"[]", "is an array"),
        (b"null", "is null"),
        (b'"card"', "is a string"),
    ],
)
def test_what_is_no_card_at_all_is_one_finding(text: bytes, problem: str) -> None:
    report = validate(text)
    assert only(report) == ("", problem, "a JSON object (A2A 1.0 §4.4.1)")
    assert (report.card, report.interfaces, report.generations) == ({}, (), ())


def test_an_empty_object_is_judged_by_1_0() -> None:
    report = validate(b"{}")
    assert report.generations == ("1.0",)
    assert {problem for _, problem in found(report)} == {"is missing"}
    assert len(report.findings) == 8


def test_a_signature_is_seen_and_its_form_judged() -> None:
    signed = {**NEW, "signatures": [{"protected": "e30", "signature": "AA", "header": {}}]}
    assert judged(NEW).is_signed is False
    assert judged(signed).is_signed is True
    assert judged(signed).findings == ()
    assert found(judged(signed, "signatures", 0, "protected")) == [("signatures[0].protected", "is missing")]


JUNK = [None, 1, "", [], {}, "x", True, [1], [None], {"a": 1}, ["", {}]]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = [path] if path else []
    for step, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        found += places(inner, (*path, step))
    return found


@pytest.mark.parametrize("card", [SECURE, HYBRID, OLD], ids=["new", "hybrid", "old"])
def test_no_value_anywhere_breaks_the_judge(card: Mapping[str, Any]) -> None:
    for path in places(dict(card)):
        for junk in JUNK:
            report = judged(card, *path, to=junk)
            assert all(finding.problem and finding.wanted for finding in report.findings)
