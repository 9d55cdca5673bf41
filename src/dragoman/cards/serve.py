"""The bytes of a card and the headers that let them be cached (RFC 9110, RFC 9111; A2A 1.0 §8.6)."""

import hashlib
from email.utils import formatdate, parsedate_to_datetime

MAX_AGE = 300
"""Seconds that a card may be kept by whoever fetched it."""


class CardFile:
    """One form of a card, ready to be sent.

    Attributes:
        body: the JSON text.
        etag: its entity tag, quoted.
        modified: when it was made, as an HTTP date.
        max_age: seconds that it may be kept.
    """

    def __init__(self, body: bytes, made_at: float, *, tagged: bytes = b"") -> None:
        """Keep a form.

        Args:
            body: the JSON text.
            made_at: when it was made, in seconds since 1970 UTC.
            tagged: what tells this form from others, if not the text itself: signatures differ each time.
        """
        self.body = body
        self.max_age = MAX_AGE
        self.etag = f'"{hashlib.sha256(tagged or body).hexdigest()[:32]}"'
        self._made_at = int(made_at)
        self.modified = formatdate(self._made_at, usegmt=True)

    def is_known(self, if_none_match: bytes | None, if_modified_since: bytes | None) -> bool:
        """Tell whether the asker has this form already. An entity tag decides alone where one is sent."""
        if if_none_match is not None:
            tags = [tag.strip().removeprefix("W/") for tag in if_none_match.decode("latin-1").split(",")]
            return "*" in tags or self.etag in tags
        if if_modified_since is None:
            return False
        try:
            since = parsedate_to_datetime(if_modified_since.decode("latin-1")).timestamp()
        except (ValueError, TypeError, OverflowError):
            return False
        return self._made_at <= since
