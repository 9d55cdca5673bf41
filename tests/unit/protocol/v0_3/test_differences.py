"""The table of differences: each has a name of its own and says what is done.

That each one is shown by a test is checked with the manifest of the interaction tests, and that losses are allowed by
name with the properties of the wire.
"""

import re

import pytest

from dragoman.protocol.v0_3.differences import DIFFERENCES, Difference, Way


def test_names_are_words_and_each_is_given_once() -> None:
    names = [one.name for one in DIFFERENCES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


@pytest.mark.parametrize("one", DIFFERENCES, ids=lambda one: one.name)
def test_each_says_what_it_is_about_and_what_is_done(one: Difference) -> None:
    assert len(one.about) > 20 and len(one.done) > 10
    assert one.lost != one.done
    # Sentences of a table: no full stop, no white space at the ends.
    for text in (one.about, one.lost, one.done):
        assert text == text.strip() and not text.endswith(".")


def test_both_directions_are_named() -> None:
    assert {one.way for one in DIFFERENCES} == set(Way)
