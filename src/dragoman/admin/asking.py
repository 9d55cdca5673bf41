"""One request of the admin surface, read strictly: what it does not know is refused, with the field's name."""

from collections.abc import Collection
from typing import Any

from msgspec import Struct

from dragoman.admin.operations import Actor
from dragoman.admin.overview import nearest
from dragoman.bindings.exchange import Exchange
from dragoman.model import Principal
from dragoman.model.errors import InvalidParams
from dragoman.protocol import media
from dragoman.protocol.protojson import Fields, kind_of, parse

BODY_LIMIT = 64 * 1024
PAGE = 100
LARGEST_PAGE = 500


class Asked(Struct, frozen=True):
    """A request: who asks, the names in its path, its query and its body."""

    exchange: Exchange
    principal: Principal
    names: tuple[str, ...]

    @property
    def actor(self) -> Actor:
        """Who asks, as the audit names them."""
        who = self.principal
        return Actor(
            principal=who.name,
            tenant=who.tenant,
            credential=who.credential,
            address=self.exchange.request.address,
        )

    def query(self, *known: str) -> Fields:
        """Return the query, each parameter of which must be among `known`, and given once.

        Raises:
            InvalidParams.
        """
        values: dict[str, Any] = {}
        for name, given in self.exchange.request.query.items():
            _check_known(name, known)
            if len(given) > 1:
                raise InvalidParams.of(name, "is given more than once")
            values[name] = given[0]
        return Fields(values)

    async def body(self, *known: str) -> Fields:
        """Return the body, an object whose members must be among `known`; an empty one if there is none.

        Raises:
            InvalidParams, RequestError, TransportError.
        """
        request = self.exchange.request
        named = media.check_content_type(request.headers.get(b"content-type"), (media.JSON,))
        text = await request.read_body(BODY_LIMIT)
        if not text:
            return Fields({})
        if named is None:
            raise media.unsupported((media.JSON,))
        value = parse(text).check()
        if not isinstance(value, dict):
            raise InvalidParams.of("body", f"must be an object, not {kind_of(value)}")
        for name in value:
            _check_known(name, known)
        return Fields(value)


def limit(query: Fields) -> int:
    """Return how many things a page is to hold.

    Raises:
        InvalidParams.
    """
    return query.integer("limit", low=1, high=LARGEST_PAGE) or PAGE


def number(query: Fields, name: str) -> int:
    """Return a number of any size in the query; 0 if it is absent.

    Raises:
        InvalidParams.
    """
    text = query.string(name)
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise query.wrong(name, "must be a whole number")
    return int(text)


def _check_known(name: str, known: Collection[str]) -> None:
    if name in known:
        return
    near = nearest(name, known)
    hint = f"did you mean {near}?" if near else f"there is {', '.join(known) or 'nothing to say'}"
    raise InvalidParams.of(name[:128], f"is not known here; {hint}")
