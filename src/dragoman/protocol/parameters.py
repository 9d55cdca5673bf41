"""Request messages of HTTP+JSON, put together from the path, the query and the body (A2A 1.0 §11.5)."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from dragoman.model.errors import InvalidParams
from dragoman.protocol.spec import HttpCall

Convert = Callable[[str], object]


def text(value: str) -> object:
    """Return the text of a query parameter as the JSON value that it is."""
    return value


def boolean(value: str) -> object:
    """Return `true` and `false` as truth values, and any other text as it is, to be refused."""
    return {"true": True, "false": False}.get(value, value)


def number_or_name(value: str) -> object:
    """Return a number as such: an enum value may be given by its number or its name."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else value


class Query:
    """The query parameters of a version, and how each one becomes a JSON value.

    Names are read in both spellings, the last of several values counts, and unknown parameters are ignored.
    """

    def __init__(self, parameters: Mapping[str, Convert]) -> None:
        self._parameters = parameters
        self._snake = {
            re.sub(r"[A-Z]", lambda capital: f"_{capital[0].lower()}", name): name for name in parameters
        }

    def read(self, call: HttpCall) -> dict[str, Any]:
        """Return the request message in a query and a path.

        Raises:
            InvalidParams: a parameter is given in both spellings.
        """
        params: dict[str, Any] = {}
        for spelled, values in call.query.items():
            name = self._snake.get(spelled, spelled)
            convert = self._parameters.get(name)
            if convert is not None and values[-1] != "":
                if name in params:
                    raise InvalidParams.of(name, "is given in both spellings")
                params[name] = convert(values[-1])
        return params | dict(call.variables)


def from_body(call: HttpCall) -> dict[str, Any]:
    """Return the request message in a body and a path.

    Raises:
        InvalidParams: the body names another thing than the path does.
    """
    params = dict(call.body or {})
    for name, value in call.variables.items():
        if params.get(name) not in (None, "", value):
            raise InvalidParams.of(name, "must be the one in the path, or be left out")
        params[name] = value
    return params
