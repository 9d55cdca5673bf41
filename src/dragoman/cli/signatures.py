"""What `dragoman card` says of a card's signatures: by whose keys they are good, for which version of A2A.

Only keys that somebody named count, or else those that stand beside the card; where a signature itself says that keys
are (`jku`) is shown and never asked.
"""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from dragoman.cli.fetching import NothingThereError, fetch
from dragoman.cli.output import tame
from dragoman.cli.settings import refuse

JWKS_PATH = "/.well-known/jwks.json"


class Signed(Struct, frozen=True, kw_only=True):
    """What is to be said of a card's signatures. `is_good` unless they were to be verified and are not good.

    `state` is absent, unverified, good or bad; `words` says it to people; `keys` is where the keys came from.
    """

    state: str
    words: str = ""
    keys: str = ""
    covered: tuple[str, ...] = ()
    rows: tuple[dict[str, str], ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong with them, as far as that was looked at."""
        return self.state != "bad"

    def facts(self) -> dict[str, str]:
        """Return what to print, by name."""
        return {name: value for name, value in (("signature", self.words), ("keys", self.keys)) if value}

    def document(self) -> dict[str, Any]:
        """Return what programs get."""
        if self.state in ("absent", "unverified"):
            return {"signature": self.state}
        return {
            "signature": self.state,
            "keys": self.keys,
            "covered": list(self.covered),
            "signatures": [dict(row) for row in self.rows],
        }


def unverified(report: Any) -> Signed:
    """Return what is said of a card whose signatures nobody wants to have verified."""
    if not report.is_signed:
        return Signed(state="absent")
    return Signed(state="unverified", words="present, not verified; --verify does that")


def look_at_signatures(place: str, report: Any, version: str, pinned: str) -> Signed:
    """Verify the signatures of the card at `place`, or end the command because there are no keys.

    What is signed must be all that is read of the card: by callers of `version`, or else of every version of A2A that
    it is for.

    Args:
        place: the card's URL.
        report: the card.
        version: the A2A-Version that was asked for, if any.
        pinned: the file or URL of the keys; empty for those beside the card.
    """
    from dragoman.cards.verify import JwksError, trusted, verify

    if not report.is_signed:
        return Signed(state="bad", words="absent, so nothing vouches for the card")
    if report.is_ambiguous:
        return Signed(
            state="bad", words="worth nothing: readers can take the card for different ones, see below"
        )
    try:
        text, where = _pinned(pinned) if pinned else _beside(place)
    except NothingThereError as error:
        refuse(error, 1)
    try:
        trust = trusted(text, time.time())
    except JwksError as error:
        refuse(f"{where} {error}", 1)
    verdict = verify(report.card, trust)
    needed = [one for one in report.generations if version in ("", one)]
    missing = [one for one in needed if one not in verdict.covered]
    whose = (
        ""
        if pinned
        else " (beside the card: they tell that it is whole, not whose it is; pin keys with --jwks)"
    )
    return Signed(
        state="bad" if missing else "good",
        words=_words(verdict.covered, missing, version),
        keys=tame(where) + whose,
        covered=verdict.covered,
        rows=tuple(_row(one, where) for one in verdict.signatures),
    )


def _words(covered: tuple[str, ...], missing: list[str], version: str) -> str:
    if not missing:
        return f"good for A2A {' and '.join(covered)}"
    told = f"not good: nothing trusted vouches for what A2A {' and '.join(missing)} reads of the card"
    if covered and not version:
        told += f"; for A2A {' and '.join(covered)} alone it is good (--a2a-version {covered[0]})"
    return told


def _row(one: Any, where: str) -> dict[str, str]:
    jku = f"; its jku {one.jku} was not asked" if one.jku and one.jku != where and one.flaw else ""
    return {
        "key": tame(one.kid) or "?",
        "alg": tame(one.algorithm) or "?",
        "for": one.version or "-",
        "signature": "good" if not one.flaw else tame(one.flaw + jku),
    }


def _pinned(pinned: str) -> tuple[bytes, str]:
    if urlsplit(pinned).scheme in ("http", "https"):
        try:
            return asyncio.run(fetch(pinned, "JWK Set"))[0], pinned
        except NothingThereError as error:
            raise NothingThereError(f"{pinned}: {error}") from None
    try:
        return Path(pinned).read_bytes(), pinned
    except OSError as error:
        raise NothingThereError(f"--jwks {pinned}: {error.strerror}") from None


def _beside(place: str) -> tuple[bytes, str]:
    told = []
    for url in _places(place):
        try:
            return asyncio.run(fetch(url, "JWK Set"))[0], url
        except NothingThereError as error:
            told.append(f"{url}: {error}")
    raise NothingThereError("\n  ".join(["there are no keys beside the card; name some with --jwks:", *told]))


def _places(place: str) -> Iterator[str]:
    """Yield where the keys of a card may stand: in its own folder, and at the root of its origin."""
    parts = urlsplit(place)
    root = f"{parts.scheme}://{parts.netloc}{JWKS_PATH}"
    beside = urljoin(f"{parts.scheme}://{parts.netloc}{parts.path}", "jwks.json")
    if beside.endswith(JWKS_PATH) and beside != root:
        yield beside
    yield root
