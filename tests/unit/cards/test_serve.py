"""Cards in caches: whoever has a card already is told so."""

from email.utils import formatdate, parsedate_to_datetime

import pytest

from dragoman.cards import CardFile
from dragoman.cards.serve import MAX_AGE

MADE = 1_767_225_600.75
CARD = CardFile(b'{"name":"Demo"}', MADE)
OTHER = CardFile(b'{"name":"Demo 2"}', MADE)
TAG = CARD.etag.encode()


def date(offset: int) -> bytes:
    return formatdate(int(MADE) + offset, usegmt=True).encode()


def test_the_tag_belongs_to_the_bytes_and_to_nothing_else() -> None:
    assert CARD.etag == CardFile(CARD.body, MADE + 3600).etag
    assert CARD.etag != OTHER.etag
    assert CARD.etag.startswith('"') and CARD.etag.endswith('"') and len(CARD.etag) == 34


def test_a_card_says_when_it_was_made_and_how_long_it_may_be_kept() -> None:
    assert CARD.modified == "Thu, 01 Jan 2026 00:00:00 GMT"
    assert parsedate_to_datetime(CARD.modified).timestamp() == int(MADE)
    assert CARD.max_age == MAX_AGE == 300


@pytest.mark.parametrize(
    ("tags", "known"),
    [
        (TAG, True),
        (b"*", True),
        (b"W/" + TAG, True),
        (b'"other", ' + TAG, True),
        (b'"other",W/' + TAG + b' , "more"', True),
        (b"  " + TAG + b"  ", True),
        (OTHER.etag.encode(), False),
        (TAG.strip(b'"'), False),
        (b'"' + TAG + b'"', False),
        (b"", False),
        (b'""', False),
        (b"w/" + TAG, False),
        (b"\xff", False),
    ],
)
def test_a_tag_that_is_the_cards_is_known(tags: bytes, known: bool) -> None:
    assert CARD.is_known(tags, None) is known


@pytest.mark.parametrize("since", [date(0), date(3600), date(-3600), b"garbage", None])
def test_a_tag_decides_alone(since: bytes | None) -> None:
    assert CARD.is_known(TAG, since)
    assert not CARD.is_known(b'"other"', since)


@pytest.mark.parametrize(
    ("since", "known"), [(date(0), True), (date(1), True), (date(-1), False), (None, False)]
)
def test_without_a_tag_the_date_decides(since: bytes | None, known: bool) -> None:
    assert CARD.is_known(None, since) is known


@pytest.mark.parametrize(
    "since",
    [
        b"",
        b"garbage",
        b"2026-01-01T00:00:00Z",
        b"Thu, 99 Jan 2026 00:00:00 GMT",
        b"Thu, 01 Foo 2026 00:00:00 GMT",
        b"Mon, 01 Jan 99999 00:00:00 GMT",
        b"Mon, 01 Jan 99999999999999 00:00:00 GMT",
        b"Thu, 01 Jan 2026 99999999999999:00:00 GMT",
        b"Thu, 01 Jan 2026 00:00:00 +99999999999999",
        b"\xff\xfe",
        b"\0",
    ],
)
def test_what_is_no_date_is_no_reason_to_keep_a_card_from_anybody(since: bytes) -> None:
    assert CARD.is_known(None, since) is False
