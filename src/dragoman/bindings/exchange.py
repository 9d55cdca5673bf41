"""One request and its reply as plain data: what passes between the ASGI edge and the pipeline."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol
from urllib.parse import parse_qs

from msgspec import Struct

from dragoman.model import Principal
from dragoman.model.errors import DragomanError, InvalidRequest, RateLimited
from dragoman.protocol.headers import Headers
from dragoman.protocol.spec import Codec

HeaderList = list[tuple[bytes, bytes]]

MAX_PARAMETERS = 100


class RawRequest:
    """A request before it is read as anything.

    Attributes:
        method: the HTTP method, upper case.
        path: the path, still percent-encoded, below the base path.
        headers: the headers.
        id: the request id, echoed in the reply and the log.
        address: where the request comes from.
    """

    __slots__ = ("_query", "_read_body", "address", "headers", "id", "method", "path")

    def __init__(
        self,
        method: str,
        path: str,
        query: bytes,
        headers: Headers,
        request_id: str,
        read_body: Callable[[bytes | None, int | None], Awaitable[bytes]],
        address: str = "",
    ) -> None:
        self.address = address
        self.method = method
        self.path = path
        self.headers = headers
        self.id = request_id
        self._read_body = read_body
        self._query = query

    async def read_body(self, limit: int | None = None) -> bytes:
        """Return the body, which may have `limit` bytes if that is less than what every body may have.

        Raises:
            BodyTooLarge, RequestTimeout.
        """
        return await self._read_body(self.headers.get(b"content-length"), limit)

    @property
    def query(self) -> dict[str, list[str]]:
        """The query parameters, each with all its values.

        Raises:
            InvalidRequest: there are too many.
        """
        if not self._query:
            return {}
        try:
            return parse_qs(
                self._query.decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_PARAMETERS
            )
        except ValueError:
            raise InvalidRequest(f"The query has more than {MAX_PARAMETERS} parameters") from None


class Reply(Struct):
    """A whole reply."""

    status: int
    headers: HeaderList
    body: bytes = b""


class StreamReply(Struct):
    """A reply that goes on: `frames` are sent as they come; `release` is called in the end, whatever became of it."""

    headers: HeaderList
    frames: AsyncGenerator[bytes]
    release: Callable[[], None]
    status: int = 200


class Form(Protocol):
    """How answers and errors are written for one request.

    `media_types` are those in which a whole answer may come; `codec` writes results.
    """

    media_types: tuple[str, ...]

    @property
    def codec(self) -> Codec:
        """What writes the results."""
        ...

    def headers(self) -> HeaderList:
        """Return the headers that every reply of this form has, beside its Content-Type."""
        ...

    def success(self, body: bytes) -> Reply:
        """Return a reply with a result."""
        ...

    def failure(self, error: DragomanError) -> Reply:
        """Return a reply with an error."""
        ...

    def stream_data(self, item: bytes) -> bytes:
        """Return one stream item as the data of an event."""
        ...

    def stream_failure(self, error: DragomanError) -> tuple[bytes | None, bytes]:
        """Return an error in a stream that has begun: the event's name, if it has one, and its data."""
        ...


class Exchange:
    """What becomes known of a request on its way: for its reply's form, the log line and the metrics.

    Attributes:
        form: how answers and errors are written.
        version: the negotiated version, "rejected", or empty if nothing was negotiated.
        principal: who asks, once that is known.
        agent, operation, task_id, route: what was called, as far as it came.
        outcome: "ok" or the reason of the error.
        flaw: what was wrong with the credential, which only the log line says.
        address: where a request came from that was refused for who sent it, for the log line.
        excess: why the request is one too many, if it is.
    """

    __slots__ = (
        "address",
        "agent",
        "excess",
        "flaw",
        "form",
        "operation",
        "outcome",
        "principal",
        "request",
        "route",
        "task_id",
        "version",
    )

    def __init__(self, request: RawRequest, form: Form) -> None:
        self.request = request
        self.form = form
        self.version = ""
        self.agent = ""
        self.principal: Principal | None = None
        self.operation = ""
        self.task_id = ""
        self.route = ""
        self.outcome = "ok"
        self.flaw = ""
        self.address = ""
        self.excess: RateLimited | None = None

    @property
    def tenant(self) -> str:
        """The tenant of whoever asks, once that is known."""
        return self.principal.tenant if self.principal is not None else ""
