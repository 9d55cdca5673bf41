"""What a protocol version is made of: the shape of the `SPEC` that every version folder exports."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from urllib.parse import unquote

from msgspec import Struct

from dragoman.model import AgentCard, Message, PushConfig, PushConfigs, Task, TaskEvent, TaskPage
from dragoman.model.errors import DragomanError, MethodNotAllowed, MethodNotFound
from dragoman.model.operation import Operation, Request
from dragoman.protocol.headers import Headers

Json = dict[str, object]
Query = Mapping[str, Sequence[str]]


class Codec(Struct, frozen=True):
    """How results are written, as JSON text: the answer to a send, a task, a page of tasks, one item of a stream.

    And a push notification configuration, several of them, and what is answered where there is nothing to tell.
    `item` is also told whether the item is the last one of its stream. `name` is the codec's alone: what one codec
    has written is kept under it for everybody who wants the same.
    """

    name: str
    answer: Callable[[Task | Message], bytes]
    task: Callable[[Task], bytes]
    page: Callable[[TaskPage], bytes]
    item: Callable[[Task | Message | TaskEvent, bool], bytes]
    push_config: Callable[[PushConfig], bytes]
    push_configs: Callable[[PushConfigs], bytes]
    nothing: bytes


class Occasion(Struct, frozen=True):
    """The request that an error belongs to: its path, and the id under which the log knows it."""

    path: str
    request_id: str


class ErrorReply(Struct, frozen=True):
    """An error as it goes over HTTP."""

    status: int
    content_type: str
    body: bytes


class HttpCall(Struct, frozen=True):
    """An HTTP request, taken apart as far as decoding needs it. `body` is `None` where there was none."""

    variables: Mapping[str, str]
    query: Query
    body: Json | None
    agent: str


class Endpoint(Struct, frozen=True):
    """What a method of a path does."""

    operation: Operation
    decode: Callable[[HttpCall], Request]


class Match(Struct, frozen=True):
    """An endpoint found for a path and method, and the values of the path's variables."""

    endpoint: Endpoint
    template: str
    variables: Mapping[str, str]


class RouteTable:
    """Paths below an agent's base. A template holds variables in braces, each one a segment without a colon."""

    def __init__(self, routes: Mapping[str, Mapping[str, Endpoint]]) -> None:
        self._routes = routes
        self._exact = {template: methods for template, methods in routes.items() if "{" not in template}
        self._patterns = [
            (re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/:]+)", re.escape(template))), template, methods)
            for template, methods in routes.items()
            if "{" in template
        ]

    def __iter__(self) -> Iterator[tuple[str, Mapping[str, Endpoint]]]:
        """Yield each template and its endpoints by method."""
        return iter(self._routes.items())

    def __contains__(self, template: str) -> bool:
        """Tell whether a template is among them."""
        return template in self._routes

    def match(self, method: str, path: str) -> Match:
        """Return the endpoint at `path`, still percent-encoded, for `method`.

        Raises:
            MethodNotFound: there is no such path.
            MethodNotAllowed: there is, but not with this method.
        """
        methods = self._exact.get(path)
        if methods is not None:
            return Match(_endpoint(method, methods), path, {})
        for pattern, template, methods in self._patterns:
            found = pattern.fullmatch(path)
            if found is not None:
                variables = {name: unquote(value) for name, value in found.groupdict().items()}
                return Match(_endpoint(method, methods), template, variables)
        raise MethodNotFound("There is no such path here; the agent card lists the interfaces")


def _endpoint(method: str, methods: Mapping[str, Endpoint]) -> Endpoint:
    endpoint = methods.get("GET" if method == "HEAD" else method)
    if endpoint is None:
        allowed = [*methods, *(["HEAD"] if "GET" in methods else [])]
        raise MethodNotAllowed(method, allowed)
    return endpoint


class HttpDialect(Struct, frozen=True):
    """The HTTP+JSON binding of a version, in one of its dialects.

    `mount` is where it stands below an agent's base (`""`, `"/v1"`). `media_types` are those of requests; the
    first is the one to answer with unless the caller names another. The card stands at `card_paths` in the form of
    this version alone. A dialect that is not `advertised` is served but not listed in cards. `choose` gives the
    dialect to take instead for a caller that is known, by its headers, to speak another one at the same place.
    """

    mount: str
    routes: RouteTable
    codec: Codec
    media_types: tuple[str, ...]
    encode_error: Callable[[DragomanError, Occasion], ErrorReply]
    card_paths: tuple[str, ...] = ()
    advertised: bool = True
    choose: "Callable[[Headers], HttpDialect | None] | None" = None


class Method(Struct, frozen=True):
    """What a JSON-RPC method does. `decode` takes the params and the agent's id."""

    operation: Operation
    decode: Callable[[Json, str], Request]


class JsonRpcDialect(Struct, frozen=True):
    """The JSON-RPC binding of a version.

    `encode_error` returns the error object. `streams_refusals`: a stream that is refused is answered with a stream
    that holds the error alone, if the caller takes one. `notifications_last`: what else is wrong with a request
    is told before that it has no id.
    """

    methods: Mapping[str, Method]
    codec: Codec
    encode_error: Callable[[DragomanError], bytes]
    http_status: Callable[[DragomanError], int]
    streams_refusals: bool = False
    notifications_last: bool = False


class PushForm(Struct, frozen=True, kw_only=True):
    """What push notifications of a version look like: `encode` writes an event, or a task as it stands.

    With `whole` every notification is the task as it stands after the event.
    """

    media_type: str
    whole: bool
    encode: Callable[[Task | TaskEvent], bytes]


class Deployment(Struct, frozen=True):
    """What a description of the interfaces has to know beside the protocol: where they are and who is served there.

    `url` is the origin and base path, `agents` the ids of the agents, `release` that of this Dragoman.
    """

    url: str
    agents: tuple[str, ...]
    release: str


class ProtocolSpec(Struct, frozen=True):
    """A protocol version.

    The first of the `http` dialects is the one for what belongs to no agent. `extension_headers`, in lower case,
    name the extensions that a caller asks for; the first one is answered. `card` returns the card as a JSON object
    in the form of this version alone. `describe` returns the OpenAPI document of the HTTP+JSON binding, if the
    version has one. `revisions` holds the dialects by the revisions whose HTTP statuses differ; `http` are those of
    the newest.
    """

    version: str
    http: tuple[HttpDialect, ...]
    jsonrpc: JsonRpcDialect
    card: Callable[[AgentCard], Json]
    push: PushForm
    extension_headers: tuple[bytes, ...] = (b"a2a-extensions",)
    describe: Callable[[Deployment], bytes] | None = None
    revisions: Mapping[str, tuple[HttpDialect, ...]] = MappingProxyType({})

    def dialect(self, mount: str) -> HttpDialect:
        """Return the HTTP dialect that stands at a mount."""
        return next(dialect for dialect in self.http if dialect.mount == mount)
