"""Messages to send, each under an id of its own."""

import itertools
import os
from typing import Any

_PREFIX = os.urandom(4).hex()
_NUMBERS = itertools.count(1)


def new_id(stem: str = "m") -> str:
    """An id that no other message has."""
    return f"{stem}-{_PREFIX}-{next(_NUMBERS)}"


def message(text: str = "hello", **members: Any) -> dict[str, Any]:
    """A 1.0 message with one text part; `members` come over what it has."""
    return {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": text}], **members}


def send_params(text: str = "hello", *, configuration: Any = None, **members: Any) -> dict[str, Any]:
    """The parameters of a send."""
    params: dict[str, Any] = {"message": message(text, **members)}
    if configuration is not None:
        params["configuration"] = configuration
    return params
