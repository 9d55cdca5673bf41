"""One card for callers of two generations: each finds its members, and nothing of the newer one is changed."""

import pytest

from dragoman.cards.build import combined


@pytest.mark.parametrize(
    ("newer", "older", "both"),
    [
        ({"name": "new"}, {"name": "old"}, {"name": "new"}),
        ({"name": "new"}, {"url": "u"}, {"name": "new", "url": "u"}),
        ({"in": {"a": 1}}, {"in": {"a": 2, "b": 3}}, {"in": {"a": 1, "b": 3}}),
        ({"in": [{"a": 1}]}, {"in": [{"b": 2}]}, {"in": [{"a": 1, "b": 2}]}),
        ({"in": [{"a": 1}]}, {"in": [{"b": 2}, {"c": 3}]}, {"in": [{"a": 1}]}),
        ({"in": ["a", "b"]}, {"in": ["c", "d"]}, {"in": ["a", "b"]}),
        ({"in": False}, {"in": {"a": 1}}, {"in": False}),
        ({"in": None}, {"in": 1}, {"in": None}),
    ],
)
def test_what_only_the_older_form_has_is_added_and_nothing_is_replaced(
    newer: dict[str, object], older: dict[str, object], both: dict[str, object]
) -> None:
    before = repr(newer)
    assert combined(newer, older) == both
    assert repr(newer) == before


def test_the_newer_members_come_first() -> None:
    assert list(combined({"b": 1, "a": 1}, {"c": 1, "b": 2})) == ["b", "a", "c"]
