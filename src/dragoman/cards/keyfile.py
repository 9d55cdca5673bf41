"""The file that holds the signing keys: for its owner alone (0600), replaced as a whole, changed by one at a time."""

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dragoman.cards.keys import KeysError, SigningKey, live, new_key, read_keys, write_keys

NAME = "signing-keys.json"
"""What it is called in the data folder."""

LARGEST = 256 * 1024

_OTHERS = stat.S_IWGRP | stat.S_IRWXO
"""What nobody else may do. A group may read: that is how secrets are mounted for a process of another user."""

Change = Callable[[tuple[SigningKey, ...]], Sequence[SigningKey]]


class KeyFile:
    """A file of signing keys.

    Attributes:
        path: where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def is_there(self) -> bool:
        """Whether there is one."""
        return self.path.exists()

    def read(self) -> tuple[SigningKey, ...]:
        """Return the keys in it, also those whose time is over.

        Raises:
            KeysError: it is missing, cannot be read, can be read by anybody, or holds something else.
        """
        return self._read()[0]

    def read_again(self, known: object) -> tuple[tuple[SigningKey, ...], object] | None:
        """Return the keys and what tells this text of the file from a later one; `None` if that is `known`.

        Raises:
            KeysError: as `read`.
        """
        try:
            if _mark(os.stat(self.path)) == known:
                return None
        except OSError as error:
            raise self._unreadable(error) from error
        return self._read()

    def ensure(self, algorithm: str) -> tuple[SigningKey, ...]:
        """Return the keys in it; where there is no file, make one with a new key.

        Raises:
            KeysError: as `read`, or it cannot be made.
        """
        if self.is_there:
            return self.read()
        return self.change(lambda keys: keys or (new_key(algorithm, time.time()),))

    def change(self, change: Change) -> tuple[SigningKey, ...]:
        """Put what `change` makes of its keys into it, and return that. Without a file there are no keys.

        Keys whose time is over are left out. What `change` raises comes through, and then nothing was changed.

        Raises:
            KeysError: as `read`, or it cannot be written.
        """
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._locked():
                now = time.time()
                keys = live(change(self.read() if self.is_there else ()), now)
                self._replace(write_keys(keys))
        except OSError as error:
            raise KeysError(f"{self.path} cannot be written: {error.strerror}") from error
        return keys

    def _read(self) -> tuple[tuple[SigningKey, ...], object]:
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                text = file.read(LARGEST + 1)
        except OSError as error:
            raise self._unreadable(error) from error
        if status.st_mode & _OTHERS:
            raise KeysError(
                f"{self.path} is open to others, and whoever reads it can sign; run: chmod 600 {self.path}"
            )
        if len(text) > LARGEST:
            raise KeysError(f"{self.path} is larger than any key file")
        try:
            return read_keys(text), _mark(status)
        except KeysError as error:
            raise KeysError(f"{self.path} {error}") from None

    def _unreadable(self, error: OSError) -> KeysError:
        if isinstance(error, FileNotFoundError):
            return KeysError(f"{self.path} is not there; make it with `dragoman keys create`")
        return KeysError(f"{self.path} cannot be read: {error.strerror}")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # The folder itself: the file is another one after each change, and a lock beside it would be one file more.
        lock = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _replace(self, text: bytes) -> None:
        # Beside the file itself, not beside a link to it, which must stay one.
        place = self.path.resolve()
        draft = place.with_name(f"{place.name}.new")
        # One that was killed on its way may have left it; whoever holds the lock is alone here.
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(place)
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _mark(status: os.stat_result) -> object:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
