"""Pages of tasks: keyset cursors and the page itself."""

import base64
import binascii
import hashlib

import msgspec
from msgspec import Struct

from dragoman.model.errors import InvalidParams
from dragoman.model.principal import Scope
from dragoman.model.task import Task, TaskState


class Filters(Struct, frozen=True, array_like=True):
    """What a listing is restricted to. A cursor is good for the same filters and caller only."""

    scope: Scope
    context_id: str | None
    state: TaskState | None
    after: int | None

    def fingerprint(self) -> bytes:
        """Return 8 bytes that differ when the filters do."""
        return hashlib.blake2b(msgspec.json.encode(self), digest_size=8).digest()


class Cursor(Struct, frozen=True, array_like=True):
    """A place in a listing: just after the task with this status time (milliseconds) and id.

    It names a place, not a row, so it stays good when that task is deleted.
    """

    timestamp: int
    task_id: str
    fingerprint: bytes

    def token(self) -> str:
        """Return the opaque text form."""
        return base64.urlsafe_b64encode(msgspec.msgpack.encode(self)).rstrip(b"=").decode()

    @classmethod
    def parse(cls, token: str) -> "Cursor":
        """Return the cursor behind `token`.

        Raises:
            InvalidParams: it is no token of ours.
        """
        try:
            packed = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
            cursor = msgspec.msgpack.decode(packed, type=cls)
        except (binascii.Error, ValueError, msgspec.DecodeError) as error:
            raise InvalidParams.of("pageToken", "is not a token that this server gave out") from error
        if cursor.token() != token or not -(2**63) <= cursor.timestamp < 2**63:
            raise InvalidParams.of("pageToken", "is not a token that this server gave out")
        return cursor


class TaskPage(Struct, frozen=True, kw_only=True):
    """Tasks, newest status change first. `total` counts all that match; `has_more` tells of a further page."""

    tasks: tuple[Task, ...]
    filters: Filters
    page_size: int
    total: int
    has_more: bool

    def first(self, count: int) -> "TaskPage":
        """Return the page cut down to its first `count` tasks, so that the rest comes on the next page."""
        if count >= len(self.tasks):
            return self
        return msgspec.structs.replace(self, tasks=self.tasks[:count], has_more=True)

    @property
    def next_token(self) -> str:
        """The token of the next page; empty on the last one."""
        if not self.has_more or not self.tasks:
            return ""
        last = self.tasks[-1]
        return Cursor(last.status.timestamp, last.id, self.filters.fingerprint()).token()
