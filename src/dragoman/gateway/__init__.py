"""The gateway: what the server does, one module an operation. It knows no wire, no database and no engine."""

from dragoman.gateway.call import Answer, Call, Committed, EventStream, StreamItem
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.observe import Hub

__all__ = ["Answer", "Call", "Committed", "EventStream", "Gateway", "Hub", "StreamItem"]
