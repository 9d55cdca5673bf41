"""The form that an answer takes: decided as soon as a request is negotiated, so that every error has it too."""

from dragoman.bindings import sse
from dragoman.bindings.exchange import HeaderList, RawRequest, Reply
from dragoman.model.errors import (
    AgentNotFound,
    BodyTooLarge,
    DragomanError,
    Forbidden,
    MethodNotAllowed,
    NotAcceptable,
    QuotaExceeded,
    RateLimited,
    RequestTimeout,
    TransportError,
    Unauthenticated,
    Unavailable,
)
from dragoman.protocol.jsonrpc import error_frame, result_frame
from dragoman.protocol.media import JSON
from dragoman.protocol.spec import Codec, ErrorReply, HttpDialect, JsonRpcDialect, Occasion

VARY = (b"vary", b"A2A-Version, Accept")


class HttpForm:
    """HTTP+JSON in one dialect. `version` is empty while the request is not, or could not be, negotiated."""

    __slots__ = ("content_type", "dialect", "media_types", "request", "version")

    def __init__(
        self, dialect: HttpDialect, version: str, request: RawRequest, content_type: str = JSON
    ) -> None:
        self.dialect = dialect
        self.version = version
        self.request = request
        self.content_type = content_type
        self.media_types = dialect.media_types

    @property
    def codec(self) -> Codec:
        """See `Form`."""
        return self.dialect.codec

    def headers(self) -> HeaderList:
        """See `Form`."""
        return _negotiated(self.version)

    def success(self, body: bytes) -> Reply:
        """See `Form`."""
        return Reply(200, [(b"content-type", self.content_type.encode()), *self.headers()], body)

    def failure(self, error: DragomanError) -> Reply:
        """See `Form`."""
        written = self._written(error)
        content_type = self.content_type if written.content_type == JSON else written.content_type
        headers = [(b"content-type", content_type.encode()), *self.headers(), *error_headers(error)]
        return Reply(written.status, headers, written.body)

    def stream_data(self, item: bytes) -> bytes:
        """See `Form`."""
        return item

    def stream_failure(self, error: DragomanError) -> tuple[bytes | None, bytes]:
        """See `Form`."""
        return b"error", self._written(error).body

    def _written(self, error: DragomanError) -> ErrorReply:
        return self.dialect.encode_error(error, Occasion(self.request.path, self.request.id))


class JsonRpcForm:
    """JSON-RPC in one dialect.

    Attributes:
        id: the request's id as JSON text, `null` until the envelope is read.
        named: whether the request itself named the version.
        answers: whether the envelope was read: from then on an error is an answer, with HTTP status 200.
        streams: whether a refusal, too, is to come as a stream.
    """

    __slots__ = ("answers", "dialect", "id", "media_types", "named", "streams", "version")

    def __init__(
        self, dialect: JsonRpcDialect, version: str, identifier: bytes = b"null", *, named: bool = True
    ) -> None:
        self.dialect = dialect
        self.version = version
        self.named = named
        self.id = identifier
        self.answers = False
        self.streams = False
        self.media_types: tuple[str, ...] = (JSON,)

    @property
    def codec(self) -> Codec:
        """See `Form`."""
        return self.dialect.codec

    def headers(self) -> HeaderList:
        """See `Form`."""
        return _negotiated(self.version)

    def success(self, body: bytes) -> Reply:
        """See `Form`."""
        return Reply(200, [(b"content-type", JSON.encode()), *self.headers()], result_frame(self.id, body))

    def failure(self, error: DragomanError) -> Reply:
        """See `Form`."""
        # A credential that stops being good while it is waited for an answer: what says so is that answer.
        unknown = isinstance(error, Unauthenticated) and not error.invalid
        barred = unknown or isinstance(error, AgentNotFound | Forbidden | RateLimited)
        transport = isinstance(error, TransportError) and (
            not self.answers or barred or isinstance(error, NotAcceptable)
        )
        if self.streams and not transport:
            _, data = self.stream_failure(error)
            return Reply(
                200, [*sse.HEADERS, *self.headers(), *error_headers(error)], sse.frame(sse.one_line(data))
            )
        status = self.dialect.http_status(error) if transport else 200
        headers = [(b"content-type", JSON.encode()), *self.headers(), *error_headers(error)]
        identifier = b"null" if barred else self.id
        return Reply(status, headers, error_frame(identifier, self.dialect.encode_error(error)))

    def stream_data(self, item: bytes) -> bytes:
        """See `Form`."""
        # The id is the caller's own text, and may hold what some readers take for the end of a line.
        return result_frame(sse.one_line(self.id), item)

    def stream_failure(self, error: DragomanError) -> tuple[bytes | None, bytes]:
        """See `Form`."""
        return None, error_frame(self.id, self.dialect.encode_error(error))


def _negotiated(version: str) -> HeaderList:
    return [VARY, (b"a2a-version", version.encode())] if version else [VARY]


def error_headers(error: DragomanError) -> HeaderList:
    """Return the headers that an error brings along on any binding."""
    if isinstance(error, MethodNotAllowed):
        return [(b"allow", ", ".join(error.allowed).encode())]
    if isinstance(error, Unauthenticated):
        flaw = ', error="invalid_token"' if error.invalid else ""
        return [(b"www-authenticate", f'Bearer realm="dragoman"{flaw}'.encode())]
    if isinstance(error, Forbidden):
        challenge = f'Bearer realm="dragoman", error="insufficient_scope", scope="{error.scope}"'
        return [(b"www-authenticate", challenge.encode())]
    if isinstance(error, QuotaExceeded | RateLimited | Unavailable):
        return [(b"retry-after", str(error.retry_after).encode())]
    if isinstance(error, BodyTooLarge | RequestTimeout):
        # The rest of the body may still be on its way: this connection is of no more use.
        return [(b"connection", b"close")]
    return []
