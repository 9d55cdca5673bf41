"""The manifest and the tests say the same: every requirement is proved, every test says what it proves."""

import ast
from collections.abc import Iterator

from tests.interaction.manifest import (
    Proof,
    by_fixture,
    check_proofs,
    check_requirements,
    check_table,
    proofs,
)
from tests.interaction.requirements import REQUIREMENTS

BOTH = frozenset({"http", "jsonrpc"})
HTTP = frozenset({"http"})

BY_FIXTURE = {
    "caller": BOTH,
    "fragile_caller": BOTH,
    "narrow_caller": BOTH,
    "limited_caller": BOTH,
    "mutator": BOTH,
    "idle_streams": BOTH,
    "page": BOTH,
    "http": HTTP,
    "web": HTTP,
    "public": HTTP,
    "versions": HTTP,
    "rpc": frozenset({"jsonrpc"}),
}
"""Fixture → the bindings that a test with it goes over."""

USERS_VOICE = """
    1 6 8 10 12 13 14 15 16 17 18 19 21 22 23 24 28 30 34 36 37 38 40 42 43 48 49 50 51 52 54 69 70 72 77
""".split()
"""The rows of reports by users of other servers that concern 1.0 without push notifications and authentication."""


def over(node: ast.FunctionDef) -> Iterator[str]:
    """The bindings that a test goes over: by its fixtures, or by the callers that it makes itself."""
    yield from by_fixture(BY_FIXTURE)(node)
    if "fragile" in [argument.arg for argument in node.args.args]:
        yield from BOTH if "RpcCaller" in ast.dump(node) else HTTP
    if "serving" in ast.dump(node):
        yield from HTTP


def found() -> Iterator[Proof]:
    """The tests of this folder."""
    return proofs(__file__, over)


def test_every_test_names_requirements_that_the_manifest_has() -> None:
    check_proofs(found(), REQUIREMENTS)


def test_every_requirement_is_proved_over_each_of_its_bindings() -> None:
    check_requirements(found(), REQUIREMENTS)


def test_every_report_of_other_servers_users_that_concerns_this_build_is_a_requirement() -> None:
    rows = [one.source for one in REQUIREMENTS.values() if one.id.startswith("voice.")]
    assert rows == [f"voice {number}" for number in USERS_VOICE]


def test_every_requirement_has_a_source_and_a_sentence_of_its_own() -> None:
    check_table(REQUIREMENTS)
