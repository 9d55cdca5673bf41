"""The keys that a running server signs with: in step with their file, and with time."""

import asyncio
import logging
import time
from collections.abc import Callable

from dragoman.cards.keyfile import KeyFile
from dragoman.cards.keys import KeysError, SigningKey, jwks, live
from dragoman.cards.serve import CardFile

LOOK_SECONDS = 2.0
"""Seconds between two looks at the file."""

_LOG = logging.getLogger("dragoman.cards")


class KeyKeeper:
    """Follows a key file. Lives on the serving loop.

    Attributes:
        keys: the keys that sign now, the newest first; there is always one.
    """

    def __init__(self, file: KeyFile, algorithm: str, *, clock: Callable[[], float] = time.time) -> None:
        """Take the keys; where there is no file, make one.

        Args:
            file: where they are.
            algorithm: what a first key is for.
            clock: seconds since 1970 UTC.

        Raises:
            KeysError: there is no key to sign with.
        """
        self._file = file
        self._clock = clock
        self._all = file.ensure(algorithm)
        self._mark: object = None
        self._trouble = ""
        self._changed: Callable[[], None] = lambda: None
        self.keys = live(self._all, clock())
        if not self.keys:
            raise KeysError(
                f"{file.path} holds no key whose time is not over; make one with `dragoman keys rotate`"
            )

    def on_change(self, changed: Callable[[], None]) -> None:
        """Have `changed` called whenever other keys sign than before."""
        self._changed = changed

    def public(self) -> CardFile:
        """Return the JWK Set of the keys that sign now."""
        return CardFile(jwks(self.keys), self._clock())

    async def run(self) -> None:
        """Look at the file now and then, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Take what the file holds now, and let go of keys whose time is over.

        A file that cannot be used changes nothing, and neither does one without a key that could sign: cards stay
        as they are, and the log says so once.
        """
        try:
            found = await asyncio.to_thread(self._file.read_again, self._mark)
        except KeysError as error:
            self._complain(f"the signing keys are as they were: {error}")
            found = None
        else:
            if found is not None:
                self._all, self._mark = found
                self._trouble = ""
        keys = live(self._all, self._clock())
        if not keys:
            self._complain(f"cards are signed as they were: no key in {self._file.path} counts any more")
        elif keys != self.keys:
            self._take(keys)

    def _take(self, keys: tuple[SigningKey, ...]) -> None:
        self.keys = keys
        _LOG.info("cards are signed with %s", ", ".join(key.kid for key in keys))
        self._changed()

    def _complain(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            _LOG.error("%s", trouble)
