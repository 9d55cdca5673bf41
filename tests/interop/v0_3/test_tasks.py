"""Reading and cancelling tasks, and typed errors, through the official 0.3 SDKs."""

import pytest

from tests.interop.sdks import Report, artifact_text, state
from tests.interop.v0_3.refusals import (
    NO_PUSH,
    NOT_CANCELABLE,
    NOT_FOUND,
    UNSUPPORTED,
    UNUSABLE,
    Refusal,
    assert_refused,
)
from tests.interop.v0_3.sdks import OLDER_CLIENT, UNFINISHED, history_texts, is_python, over_http

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


def test_a_history_length_of_0_is_none_over_json_rpc_and_not_sent_in_protojson(report: Report) -> None:
    seen = report["history"]
    expected = history_texts(seen["absent"]) if over_http(report) else []
    assert history_texts(seen["zero"]) == expected


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


@pytest.mark.parametrize(
    ("call_name", "expected"),
    [
        ("get unknown", NOT_FOUND),
        ("cancel unknown", NOT_FOUND),
        ("message to unknown", NOT_FOUND),
        ("message to finished", UNSUPPORTED),
        ("cancel finished", NOT_CANCELABLE),
    ],
)
def test_each_refusal_is_the_typed_error_of_the_standard(
    report: Report, call_name: str, expected: Refusal
) -> None:
    assert_refused(report, report["errors"][call_name], expected)


def test_a_push_configuration_is_refused_by_the_server_itself(report: Report) -> None:
    # The clients of the JavaScript SDK refuse for the card's sake, so its transport was asked.
    assert_refused(report, report["errors"]["push set"], NO_PUSH, raised=not is_python(report))


def test_a_refused_stream_is_a_typed_error_too(report: Report) -> None:
    assert_refused(report, report["errors"]["stream to unknown"], NOT_FOUND, raised=True)


def test_a_refused_resubscription_is_a_typed_error_too(report: Report) -> None:
    # The Python SDK does not look at the status of this answer over HTTP+JSON: whatever is no stream is a 400 to it.
    expected = Refusal(NOT_FOUND.name, NOT_FOUND.code, 400)
    assert_refused(report, report["errors"]["resubscribe unknown"], expected, raised=True)


def test_a_second_cancel_is_refused_as_not_cancelable(report: Report) -> None:
    assert_refused(report, report["cancel"]["again"], NOT_CANCELABLE)


def test_another_message_under_a_used_id_is_refused_and_not_answered(report: Report) -> None:
    error = report["repeat"]["changed"]
    if is_python(report) or report.sdk.binding == OLDER_CLIENT:
        assert_refused(report, error, UNUSABLE)
    else:
        assert error["type"] in {"Error", "JSONRPCTransportError"}, error  # this SDK has no class for it
        assert "(Code: -32602)" in error["message"]
