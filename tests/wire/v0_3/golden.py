"""Golden files of 0.3 (see `tests.wire.golden`): a case in each form of 0.3 that has it."""

from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from dragoman.protocol.spec import Codec
from dragoman.protocol.v0_3.decode_proto import Reader
from dragoman.protocol.v0_3.encode import CODEC
from dragoman.protocol.v0_3.encode_proto import Writer
from tests.wire.golden import HttpRequest, JsonRpcRequest

READERS = {"proto": Reader(doubled=False), "doubled": Reader(doubled=True)}
"""How requests are read at the official place, by kind of client."""

CODECS: dict[str, Codec] = {
    "kinds": CODEC,
    "proto": Writer(doubled=False).codec,
    "doubled": Writer(doubled=True).codec,
}
"""How results are written, by form."""


class Replies(Struct, frozen=True, forbid_unknown_fields=True):
    """A result in each form; clients that double read the plain ProtoJSON unless there are files in it."""

    kinds: Raw
    proto: Raw = Raw(b"")
    doubled: Raw = Raw(b"")


class Golden(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One case: requests that all mean `request`, and the forms of `result`; `last` if it ends its stream.

    `kinds` is a request at seed A's places, `proto` one at the official place, and `doubled` the same from a client
    that doubles, where that differs.
    """

    about: str
    operation: str = ""
    kinds: HttpRequest | None = None
    jsonrpc: JsonRpcRequest | None = None
    proto: HttpRequest | None = None
    doubled: HttpRequest | None = None
    request: Raw = Raw(b"")
    kind: str = ""
    result: Raw = Raw(b"")
    last: bool = False
    replies: Replies | None = None


def golden(path: Path) -> Golden:
    """Read a golden file."""
    return msgspec.json.decode(path.read_bytes(), type=Golden)
