"""What every dialect reads alike of a push notification configuration: its bounds, and what can be sent as a header."""

import re

from dragoman.model import PushConfig
from dragoman.protocol.protojson import Fields
from dragoman.protocol.requests import LONGEST_ID

LONGEST_URL = 2048
LONGEST_TOKEN = 1024
LONGEST_CREDENTIALS = 8192
LONGEST_SCHEME = 64

# A header value (RFC 9110 §5.5) without tabs and what is obsolete in it, and an authentication scheme (§11.1).
_VALUE = re.compile(r"(?! )[\x20-\x7e]*(?<! )")
_SCHEME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def read_config(
    fields: Fields, generation: str, *, task_id: str, scheme: str, authentication: Fields | None
) -> PushConfig:
    """Read a configuration.

    Args:
        fields: the object that holds `id`, `url` and `token`.
        generation: the generation that its caller speaks.
        task_id: the task, if it is known.
        scheme: the scheme of the authentication, as the version has it; empty if there is none.
        authentication: the object that holds the credentials, if there is one.

    Raises:
        InvalidParams: a field is wrong.
    """
    token = fields.string("token", longest=LONGEST_TOKEN)
    if not _VALUE.fullmatch(token):
        raise fields.wrong("token", _NO_HEADER)
    credentials = ""
    if authentication is not None:
        credentials = authentication.string("credentials", longest=LONGEST_CREDENTIALS)
        if not _VALUE.fullmatch(credentials):
            raise authentication.wrong("credentials", _NO_HEADER)
    return PushConfig(
        generation=generation,
        id=read_id(fields, "id"),
        task_id=task_id,
        # Whether it is one is for whoever knows where notifications may go.
        url=fields.string("url", longest=LONGEST_URL),
        token=token,
        scheme=scheme,
        credentials=credentials,
        place=fields.path,
    )


def read_id(fields: Fields, name: str, other: str | None = None) -> str:
    """Return the id of a configuration; empty if there is none.

    Raises:
        InvalidParams: it cannot be one.
    """
    found = fields.string(name, other, longest=LONGEST_ID)
    if _CONTROL.search(found):
        raise fields.wrong(name, "must not hold control characters")
    return found


def check_scheme(fields: Fields, name: str, scheme: str) -> str:
    """Return an authentication scheme.

    Raises:
        InvalidParams: it is none.
    """
    if len(scheme) > LONGEST_SCHEME or not _SCHEME.fullmatch(scheme):
        raise fields.wrong(name, "must be an authentication scheme such as Bearer")
    return scheme


_NO_HEADER = "must be printable ASCII, without a space at either end: it is sent as a header"
