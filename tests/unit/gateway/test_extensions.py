"""Extensions that a request activates."""

import pytest

from dragoman.gateway.extensions import IDEMPOTENCY, activated
from dragoman.model.card import Extension

DECLARED = (Extension(uri="urn:a"), Extension(uri="urn:b", required=True))


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        ([], ()),
        (["urn:b"], ("urn:b",)),
        (["urn:b", "urn:a"], ("urn:b", "urn:a")),
        (["urn:a", "urn:a"], ("urn:a",)),
        (["urn:c", "URN:A", "urn:a ", ""], ()),
    ],
)
def test_what_is_asked_for_and_declared_is_active_in_the_order_of_the_request(
    requested: list[str], expected: tuple[str, ...]
) -> None:
    assert activated(requested, DECLARED) == expected


def test_nothing_is_active_that_the_agent_does_not_declare() -> None:
    assert activated([IDEMPOTENCY.uri], ()) == ()
    assert activated([IDEMPOTENCY.uri], (IDEMPOTENCY,)) == ("urn:dragoman:ext:idempotency:v1",)
