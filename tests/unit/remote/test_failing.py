"""How runs end that a remote agent does not end."""

import pytest

from dragoman.model import TaskState, errors
from dragoman.model.payload import unpack
from dragoman.protocol.client import RemoteRefusalError
from dragoman.remote.failing import LONGEST_WORDS, is_passing, of_refusal, uncertain


@pytest.mark.parametrize(
    ("kind", "state", "words"),
    [
        (errors.InvalidParams, TaskState.REJECTED, "refused the message (INVALID_PARAMS). It says: theirs"),
        (errors.MessageIdConflict, TaskState.REJECTED, "(MESSAGE_ID_CONFLICT)"),
        (errors.UnsupportedOperation, TaskState.REJECTED, "(UNSUPPORTED_OPERATION)"),
        (errors.TaskNotFound, TaskState.FAILED, "an error (TASK_NOT_FOUND). It says: theirs"),
        (errors.RateLimited, TaskState.FAILED, "an error (RATE_LIMITED)"),
        (errors.Unauthenticated, TaskState.FAILED, "did not accept this server's credential."),
        (errors.Forbidden, TaskState.FAILED, "did not accept this server's credential."),
        (errors.Misdirected, TaskState.FAILED, "elsewhere, which is not followed."),
    ],
)
def test_an_error_ends_a_run_by_its_meaning(
    kind: type[errors.DragomanError], state: TaskState, words: str
) -> None:
    change = of_refusal(RemoteRefusalError(kind, "theirs")).change("t", "c", ())
    assert change.message is not None
    assert (change.state, words in change.message.text) == (state, True)
    assert unpack(change.message.metadata) == {"urn:dragoman:ext:remote:v1": {"reason": kind.reason}}
    assert (change.message.task_id, change.message.context_id) == ("t", "c")


def test_what_is_said_about_our_credential_is_not_passed_on() -> None:
    change = of_refusal(RemoteRefusalError(errors.Unauthenticated, "t0k3n is bad")).change("t", "c", ())
    assert change.message is not None and "bad" not in change.message.text


def test_words_of_others_are_shortened_and_hold_no_secret_and_no_control_characters() -> None:
    refusal = RemoteRefusalError(errors.InvalidParams, "a\x1b[2J\nt0k3n " + "x" * 1000)
    change = of_refusal(refusal).change("t", "c", ("t0k3n",))
    assert change.message is not None
    said = change.message.text.partition("It says: ")[2]
    assert said.startswith("a [2J … x")
    assert len(said) == LONGEST_WORDS + 1


def test_what_can_be_over_a_moment_later_is_told_from_the_rest() -> None:
    passing = (errors.RateLimited, errors.Unavailable, errors.InternalError, errors.ObserverLimit)
    for kind in passing:
        assert is_passing(RemoteRefusalError(kind, ""))
    for kind in (errors.TaskNotFound, errors.InvalidParams, errors.Unauthenticated):
        assert not is_passing(RemoteRefusalError(kind, ""))


def test_an_uncertain_send_says_so() -> None:
    change = uncertain("why").change("t", "c", ())
    assert change.message is not None
    assert change.message.text.endswith("It is not sent again.")
    assert unpack(change.message.metadata) == {"urn:dragoman:ext:remote:v1": {"reason": "OUTCOME_UNKNOWN"}}
