"""Reads HTTP/1.1 replies out of bytes as they arrive, and says whether they are good.

Only what the servers here answer is understood: a Content-Length or a chunked body.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from bench.wire import EXPECTED, REFUSAL, Operation

_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:\s*chunked", re.IGNORECASE)
_SHOWN = 300


class WrongReply(Exception):
    """A server did not answer what the operation answers when all is well."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole reply."""

    status: int
    body: bytes

    def fault(self, operation: Operation) -> str | None:
        """What is wrong with this reply to `operation`, or None."""
        good = self.status == 200 and EXPECTED[operation] in self.body and REFUSAL not in self.body
        return None if good else f"HTTP {self.status}: {self.body[:_SHOWN]!r}"

    def checked(self, operation: Operation) -> "Reply":
        """This reply, if it is a good one.

        Raises:
            WrongReply: if it is not.
        """
        fault = self.fault(operation)
        if fault is not None:
            raise WrongReply(f"{operation}: {fault}")
        return self

    def at(self, *path: str | int) -> Any:
        """A member of the operation's result: the JSON-RPC `result`, or the whole HTTP+JSON body.

        Raises:
            WrongReply: if it is not there.
        """
        try:
            found = json.loads(self.body)
            for step in ("result", *path) if "jsonrpc" in found else path:
                found = found[step]
        except (LookupError, TypeError, ValueError) as error:
            shown = self.body[:_SHOWN]
            raise WrongReply(f"no {'.'.join(map(str, path))} in {shown!r}") from error
        return found


class ReplyParser:
    """Turns bytes of one connection into replies, in order."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._status = 0
        self._body = bytearray()
        self._left: int | None = None  # of a Content-Length body; None: no head read yet
        self._chunked = False

    def feed(self, data: bytes) -> list[Reply]:
        """Take `data` in; the replies that it completes."""
        self._buffer += data
        replies = []
        while (reply := self._next()) is not None:
            replies.append(reply)
        return replies

    def _next(self) -> Reply | None:
        if self._left is None and not self._chunked and not self._read_head():
            return None
        if self._chunked:
            if not self._read_chunks():
                return None
        else:
            assert self._left is not None
            if len(self._buffer) < self._left:
                return None
            self._body += self._buffer[: self._left]
            del self._buffer[: self._left]
        reply = Reply(self._status, bytes(self._body))
        self._body.clear()
        self._left, self._chunked = None, False
        return reply

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        self._status = int(head[9:12])
        self._chunked = _CHUNKED.search(head) is not None
        length = _LENGTH.search(head)
        self._left = int(length[1]) if length else 0
        return True

    def _read_chunks(self) -> bool:
        """Move whole chunks into the body; True at the last one."""
        while (line_end := self._buffer.find(b"\r\n")) >= 0:
            size = int(self._buffer[:line_end].split(b";")[0], 16)
            chunk_end = line_end + 2 + size
            if len(self._buffer) < chunk_end + 2:
                return False
            self._body += self._buffer[line_end + 2 : chunk_end]
            del self._buffer[: chunk_end + 2]
            if size == 0:
                return True
        return False
