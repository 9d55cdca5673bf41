"""Every error that can reach somebody outside: one tree, without codes of any wire.

    DragomanError
    ├── A2AError                            the standard's own (A2A 1.0.1 §3.3.2)
    │   ├── TaskNotFound
    │   ├── TaskNotCancelable
    │   ├── PushNotificationNotSupported
    │   ├── UnsupportedOperation
    │   ├── ContentTypeNotSupported
    │   ├── InvalidAgentResponse
    │   ├── ExtendedAgentCardNotConfigured
    │   ├── ExtensionSupportRequired
    │   └── VersionNotSupported
    ├── RequestError                        the request itself is wrong
    │   ├── MalformedJson
    │   ├── InvalidRequest                  the envelope
    │   ├── MethodNotFound                  no such path or method
    │   └── InvalidParams                   names the fields
    │       └── MessageIdConflict
    ├── TransportError                      refused before anything was read as A2A
    │   ├── Unauthenticated
    │   ├── Forbidden                       names the scope
    │   ├── RateLimited
    │   │   └── ObserverLimit
    │   ├── AgentNotFound
    │   ├── Misdirected                     meant for another host
    │   ├── MethodNotAllowed
    │   ├── NotAcceptable
    │   ├── RequestTimeout
    │   ├── BodyTooLarge
    │   ├── UnsupportedMediaType
    │   ├── QuotaExceeded
    │   └── Unavailable
    ├── ApprovalNotFound
    ├── ApprovalClosed                      decided before, or nobody waits for it any more
    ├── RemoteNotFound                      no such remote agent of the tenant
    ├── DelegationNotFound
    ├── NotReconcilable                     there is nothing to ask the remote agent by
    ├── EntryNotFound                       no such tenant, principal, token …
    ├── EntryConflict                       what is there forbids the change
    ├── ResultTooLarge                      of a result that is bounded
    ├── ArtifactUnverified                  what is stored of a task is not what was written
    ├── InternalError                       ours; the cause goes to the log, never to the wire
    └── RunError                            told to whoever writes to a run, never to a caller
        ├── IllegalChange
        └── Fenced

Each class carries its `reason` (UPPER_SNAKE, the same in every version and binding). Messages are written for
the person who meets them; nothing internal is ever put in one.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from dragoman.model.principal import Principal


class FieldViolation(Struct, frozen=True):
    """One wrong field: its path in the request (`message.parts[0].raw`) and what is wrong with it."""

    field: str
    description: str


class DragomanError(Exception):
    """The root of the tree.

    Attributes:
        message: what is wrong and what to do next, safe to show to the caller.
        metadata: short facts for programs, text to text.
    """

    reason = "INTERNAL_ERROR"

    def __init__(self, message: str, *, metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.metadata: Mapping[str, str] = metadata or {}


class A2AError(DragomanError):
    """An error that the standard names."""


class TaskNotFound(A2AError):
    """There is no such task, or it is not the caller's: the two are never told apart."""

    reason = "TASK_NOT_FOUND"

    def __init__(self, task_id: str) -> None:
        super().__init__("Task not found", metadata={"taskId": task_id[:128]})


class TaskNotCancelable(A2AError):
    """The task is finished already."""

    reason = "TASK_NOT_CANCELABLE"


class PushNotificationNotSupported(A2AError):
    """The agent declares no push notifications."""

    reason = "PUSH_NOTIFICATION_NOT_SUPPORTED"


class UnsupportedOperation(A2AError):
    """The operation is not available: for this agent, or for a task in this state."""

    reason = "UNSUPPORTED_OPERATION"


class ContentTypeNotSupported(A2AError):
    """A part has a media type that the agent does not take."""

    reason = "CONTENT_TYPE_NOT_SUPPORTED"


class InvalidAgentResponse(A2AError):
    """The agent ended without an answer that the standard allows."""

    reason = "INVALID_AGENT_RESPONSE"


class ExtendedAgentCardNotConfigured(A2AError):
    """An extended card is declared, but there is none."""

    reason = "EXTENDED_AGENT_CARD_NOT_CONFIGURED"


class ExtensionSupportRequired(A2AError):
    """The agent requires an extension that the caller did not name."""

    reason = "EXTENSION_SUPPORT_REQUIRED"


class VersionNotSupported(A2AError):
    """The protocol version asked for is not served here."""

    reason = "VERSION_NOT_SUPPORTED"


class RequestError(DragomanError):
    """The request is wrong in itself."""

    reason = "INVALID_REQUEST"


class MalformedJson(RequestError):
    """The body is no JSON text, or no UTF-8."""


class InvalidRequest(RequestError):
    """The envelope around the call is wrong."""


class MethodNotFound(RequestError):
    """There is no such method or path."""

    reason = "METHOD_NOT_FOUND"


class InvalidParams(RequestError):
    """One or more fields are wrong; `violations` names each."""

    reason = "INVALID_PARAMS"

    def __init__(self, violations: Sequence[FieldViolation], *, message: str | None = None) -> None:
        super().__init__(message or "; ".join(f"{v.field}: {v.description}" for v in violations))
        self.violations = tuple(violations)

    @classmethod
    def of(cls, field: str, description: str) -> "InvalidParams":
        """Return the error for a single field."""
        return cls([FieldViolation(field, description)])


class MessageIdConflict(InvalidParams):
    """The messageId was used before for another message."""

    reason = "MESSAGE_ID_CONFLICT"


class TransportError(DragomanError):
    """Refused before the request was read as A2A."""


class Unauthenticated(TransportError):
    """There is no credential, or none that is good; `invalid` tells whether one was shown.

    `flaw` says what is wrong with it, for the log alone.
    """

    reason = "UNAUTHENTICATED"

    def __init__(self, message: str, *, invalid: bool, flaw: str = "") -> None:
        super().__init__(message)
        self.invalid = invalid
        self.flaw = flaw


class Forbidden(TransportError):
    """The credential is good, but its scopes do not cover what is asked; `scope` would. `by` is whose it is."""

    reason = "INSUFFICIENT_SCOPE"

    def __init__(self, scope: str, *, by: Principal | None = None) -> None:
        super().__init__(
            f"This credential lacks the scope {scope}; ask whoever issued it for one that has it",
            metadata={"scope": scope},
        )
        self.scope = scope
        self.by = by


class RateLimited(TransportError):
    """Too many requests of this kind; `retry_after` says in how many seconds to come back.

    `metadata` names the setting that is the limit, if there is one.
    """

    reason = "RATE_LIMITED"

    def __init__(
        self, message: str, *, metadata: Mapping[str, str] | None = None, retry_after: int = 1
    ) -> None:
        super().__init__(message, metadata=metadata)
        self.retry_after = retry_after


class ObserverLimit(RateLimited):
    """Too many waits and streams of this caller, its tenant or all tenants are under way."""

    reason = "OBSERVER_LIMIT"

    def __init__(self) -> None:
        super().__init__(
            "Too many waits and streams are under way; nothing was done. End one of yours, or send with "
            "returnImmediately and read the task later",
            retry_after=1,
        )


class AgentNotFound(TransportError):
    """There is no such agent here, or it is not the caller's to know."""

    reason = "AGENT_NOT_FOUND"


class Misdirected(TransportError):
    """The request is meant for another host than this one."""

    reason = "MISDIRECTED_REQUEST"


class MethodNotAllowed(TransportError):
    """The path exists, but not with this HTTP method; `allowed` lists those it has."""

    reason = "METHOD_NOT_ALLOWED"

    def __init__(self, method: str, allowed: Sequence[str]) -> None:
        self.allowed = tuple(allowed)
        super().__init__(f"{method} is not allowed here; use {' or '.join(self.allowed)}")


class NotAcceptable(TransportError):
    """The caller accepts no media type that this reply has."""

    reason = "NOT_ACCEPTABLE"


class RequestTimeout(TransportError):
    """The body did not arrive in time."""

    reason = "REQUEST_TIMEOUT"


class BodyTooLarge(TransportError):
    """The body is over the limit."""

    reason = "BODY_TOO_LARGE"


class UnsupportedMediaType(TransportError):
    """The body has a media type that this endpoint does not read."""

    reason = "CONTENT_TYPE_NOT_SUPPORTED"


class QuotaExceeded(TransportError):
    """As much is under way, or kept, as may be; `retry_after` says in how many seconds to come back.

    `metadata` names the setting that is the limit.
    """

    reason = "QUOTA_EXCEEDED"

    def __init__(
        self, message: str, *, metadata: Mapping[str, str] | None = None, retry_after: int = 1
    ) -> None:
        super().__init__(message, metadata=metadata)
        self.retry_after = retry_after


class Unavailable(TransportError):
    """The server cannot do its work just now; `retry_after` says in how many seconds to come back."""

    reason = "UNAVAILABLE"

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ApprovalNotFound(DragomanError):
    """There is no such approval, or it is not the caller's to know."""

    reason = "APPROVAL_NOT_FOUND"

    def __init__(self, approval_id: str) -> None:
        super().__init__("Approval not found", metadata={"approvalId": approval_id[:128]})


class ApprovalClosed(DragomanError):
    """The approval was decided before, or nobody waits for it any more, or it is not what was shown."""

    reason = "APPROVAL_CLOSED"


class RemoteNotFound(DragomanError):
    """There is no such remote agent, or it is another tenant's: the two are never told apart."""

    reason = "REMOTE_NOT_FOUND"

    def __init__(self, remote: str) -> None:
        super().__init__("Remote agent not found", metadata={"agentId": remote[:128]})


class DelegationNotFound(DragomanError):
    """There is no such delegation, or it is not the caller's: the two are never told apart."""

    reason = "DELEGATION_NOT_FOUND"

    def __init__(self, delegation_id: str) -> None:
        super().__init__("Delegation not found", metadata={"delegationId": delegation_id[:128]})


class NotReconcilable(DragomanError):
    """The remote agent cannot be asked what became of a delegation: there is nothing to ask by, or nobody to ask."""

    reason = "NOT_RECONCILABLE"


class EntryNotFound(DragomanError):
    """There is nothing of this name among what operators keep of tenants.

    `tenant` is where it was looked for, `near` a name there that looks like it.
    """

    reason = "ENTRY_NOT_FOUND"

    def __init__(self, what: str, name: str, *, tenant: str = "", near: str = "") -> None:
        where = f" in {tenant}" if tenant else ""
        hint = f"; did you mean {near}?" if near else ""
        super().__init__(f"There is no {what} {name[:128]}{where}{hint}", metadata={"name": name[:128]})


class EntryConflict(DragomanError):
    """What is there forbids the change: the same is there already, or it belongs to the configuration."""

    reason = "ENTRY_CONFLICT"


class ResultTooLarge(DragomanError):
    """The result is larger than a reply may be here."""

    reason = "RESULT_TOO_LARGE"


class ArtifactUnverified(DragomanError):
    """What is stored of a task is not what was written, so it is not shown."""

    reason = "ARTIFACT_UNVERIFIED"

    def __init__(self, task_id: str, artifact_id: str = "") -> None:
        named = {"taskId": task_id[:128], "artifactId": artifact_id[:128]}
        super().__init__(
            "What is stored of this task is damaged and is not shown; the operator must restore it",
            metadata={name: value for name, value in named.items() if value},
        )


class InternalError(DragomanError):
    """Something failed on our side. The message is always the same; the cause is in the log."""

    def __init__(self) -> None:
        super().__init__("Internal error; the server's log has the cause under this reply's X-Request-Id")


class RunError(DragomanError):
    """A write to a run was refused."""

    reason = "RUN_ERROR"


class IllegalChange(RunError):
    """The lifecycle does not allow the change."""


class Fenced(RunError):
    """The run belongs to somebody else by now (taken over, cancelled or expired): stop, nothing was written."""
