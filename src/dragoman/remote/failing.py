"""How a run ends that a remote agent does not end: in which state, with which words and reason."""

from collections.abc import Sequence

from msgspec import structs

from dragoman.model import StatusChange, TaskState, errors
from dragoman.model.payload import pack
from dragoman.model.speech import agent_message
from dragoman.protocol.client import RemoteRefusalError

REASONS = "urn:dragoman:ext:remote:v1"
"""Key in the metadata of a run's last message that holds the `reason` why the remote agent did not end it."""

LONGEST_WORDS = 500
"""Characters of a remote agent's own words about an error that callers are shown."""

UNCERTAIN = (
    "The connection to the remote agent broke before it answered, so nobody knows whether the message arrived. "
    "It is not sent again."
)

_REFUSED = (
    errors.InvalidParams,
    errors.ContentTypeNotSupported,
    errors.UnsupportedMediaType,
    errors.UnsupportedOperation,
    errors.ExtensionSupportRequired,
    errors.BodyTooLarge,
)
"""Errors by which the remote agent will not do what it was asked."""

_PASSING = (
    errors.RateLimited,
    errors.QuotaExceeded,
    errors.Unavailable,
    errors.RequestTimeout,
    errors.InternalError,
)
"""Errors that can be over a moment later."""


class FailedError(Exception):
    """A run is to end, in `state`; the message says why, to the caller.

    Attributes:
        reason: the same for programs.
        words: what the remote agent says of it.
        detail: more about it for the log; nothing of what was said, and nothing secret.
    """

    def __init__(
        self,
        message: str,
        detail: str = "",
        *,
        reason: str = "UNAVAILABLE",
        words: str = "",
        state: TaskState = TaskState.FAILED,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.words = words
        self.detail = detail
        self.state = state

    def change(self, task_id: str, context_id: str, secrets: Sequence[str]) -> StatusChange:
        """Return the last status of the run. What is secret does not show in it, whoever says it."""
        text = str(self)
        if self.words:
            text = f"{text} It says: {_tame(self.words, secrets)}"
        message = agent_message(text, task_id=task_id, context_id=context_id)
        metadata = pack({REASONS: {"reason": self.reason}})
        return StatusChange(self.state, structs.replace(message, metadata=metadata))


def uncertain(why: str) -> FailedError:
    """Return the end of a run whose message may have arrived or not."""
    return FailedError(UNCERTAIN, why, reason="OUTCOME_UNKNOWN")


def too_large(largest: int) -> FailedError:
    """Return the end of a run whose remote agent gives more than it may."""
    return FailedError(f"The remote agent gave more than {largest} bytes.", reason="RESULT_TOO_LARGE")


def wrong_task() -> FailedError:
    """Return the end of a run whose remote agent speaks of another task."""
    return FailedError("The remote agent answered about another task.", reason="INVALID_AGENT_RESPONSE")


def of_refusal(refusal: RemoteRefusalError) -> FailedError:
    """Return the end of a run whose message, or task, the remote agent answers with an error."""
    kind, reason = refusal.kind, refusal.kind.reason
    if issubclass(kind, errors.Unauthenticated | errors.Forbidden):
        # Their words would be about our credential.
        return FailedError("The remote agent did not accept this server's credential.", reason=reason)
    if issubclass(kind, errors.Misdirected):
        return FailedError(
            "The remote agent sent this server elsewhere, which is not followed.", reason=reason
        )
    if issubclass(kind, _REFUSED):
        text, state = f"The remote agent refused the message ({reason}).", TaskState.REJECTED
    else:
        text, state = f"The remote agent answered with an error ({reason}).", TaskState.FAILED
    return FailedError(text, reason=reason, words=refusal.message, state=state)


def is_passing(refusal: RemoteRefusalError) -> bool:
    """Tell whether the same request can be answered otherwise a moment later."""
    return issubclass(refusal.kind, _PASSING)


def _tame(words: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        words = words.replace(secret, "…")
    words = "".join(sign if sign.isprintable() else " " for sign in words)
    return words if len(words) <= LONGEST_WORDS else f"{words[:LONGEST_WORDS]}…"
