"""Reading and cancelling tasks, and typed errors, through the official 0.3 SDKs."""

from dataclasses import dataclass

import pytest

from tests.interop.sdks import Report, artifact_text, state
from tests.interop.v0_3.sdks import UNFINISHED, history_texts, is_python, over_http

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


def test_a_task_read_is_the_task_that_was_answered(report: Report) -> None:
    seen = report["history"]
    assert seen["absent"] == seen["sent"]
    assert artifact_text(seen["absent"]) == "Took 1 s."


def test_a_history_holds_what_both_sides_said_in_order(report: Report) -> None:
    roles_and_texts = history_texts(report["history"]["absent"])
    assert roles_and_texts[0] == ("user", "slow 1")
    assert roles_and_texts == [("user", "slow 1")] + [
        ("agent", f"{done} % done") for done in (0, 20, 40, 60, 80)
    ]


def test_get_with_history_length_1_gives_the_newest_message(report: Report) -> None:
    seen = report["history"]
    assert history_texts(seen["one"]) == history_texts(seen["absent"])[-1:]


def test_a_send_with_a_history_length_is_answered_with_that_many_messages(report: Report) -> None:
    seen = report["history"]
    assert history_texts(seen["sent two"]) == history_texts(seen["absent"])[-2:]


def test_cancel_ends_a_running_task_at_once_and_for_good(report: Report) -> None:
    seen = report["cancel"]
    assert state(seen["running"]) in UNFINISHED
    assert seen["canceled"]["id"] == seen["running"]["id"]
    assert state(seen["canceled"]) == "canceled"
    assert seen["read"]["status"] == seen["canceled"]["status"]
    assert seen["seconds"] < 3.0


@dataclass(frozen=True)
class Refusal:
    """One error as each SDK shows it: by class (JavaScript), by code (JSON-RPC), by status alone (Python over HTTP)."""

    name: str
    code: int
    status: int


_NOT_FOUND = Refusal("TaskNotFoundError", -32001, 404)
_NOT_CANCELABLE = Refusal("TaskNotCancelableError", -32002, 400)
_NO_PUSH = Refusal("PushNotificationNotSupportedError", -32003, 400)
_UNSUPPORTED = Refusal("UnsupportedOperationError", -32004, 400)


def _assert_refused(
    report: Report, error: dict[str, object], expected: Refusal, *, stream: bool = False
) -> None:
    if not is_python(report):
        assert error["type"] == expected.name, error
    elif over_http(report):
        assert (error["type"], error["code"]) == ("A2AClientHTTPError", expected.status), error
    else:
        raised = stream or report.sdk.binding == "JSONRPC"  # the older client returns it, but for streams
        assert error["type"] == ("A2AClientJSONRPCError" if raised else "ReturnedError"), error
        assert error["code"] == expected.code, error


@pytest.mark.parametrize(
    ("call_name", "expected"),
    [
        ("get unknown", _NOT_FOUND),
        ("cancel unknown", _NOT_FOUND),
        ("message to unknown", _NOT_FOUND),
        ("message to finished", _UNSUPPORTED),
        ("cancel finished", _NOT_CANCELABLE),
        ("push set", _NO_PUSH),
    ],
)
def test_each_refusal_is_the_typed_error_of_the_standard(
    report: Report, call_name: str, expected: Refusal
) -> None:
    _assert_refused(report, report["errors"][call_name], expected)


def test_a_refused_stream_is_a_typed_error_too(report: Report) -> None:
    _assert_refused(report, report["errors"]["stream to unknown"], _NOT_FOUND, stream=True)


def test_a_refused_resubscription_is_a_typed_error_too(report: Report) -> None:
    # The Python SDK does not look at the status of this answer over HTTP+JSON: whatever is no stream is a 400 to it.
    expected = Refusal(_NOT_FOUND.name, _NOT_FOUND.code, 400)
    _assert_refused(report, report["errors"]["resubscribe unknown"], expected, stream=True)


def test_a_second_cancel_is_refused_as_not_cancelable(report: Report) -> None:
    _assert_refused(report, report["cancel"]["again"], _NOT_CANCELABLE)


def test_another_message_under_a_used_id_is_refused_and_not_answered(report: Report) -> None:
    error = report["repeat"]["changed"]
    if is_python(report):
        _assert_refused(report, error, Refusal("InvalidParamsError", -32602, 409))
    else:
        assert error["type"] in {"Error", "JSONRPCTransportError"}, error  # this SDK has no class for it
        assert "(Code: -32602)" in error["message"]
