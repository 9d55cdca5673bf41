"""Errors of the standard as each official 0.3 SDK shows them to its caller."""

from dataclasses import dataclass

from tests.interop.sdks import Json, Report
from tests.interop.v0_3.sdks import OLDER_CLIENT, is_python, over_http


@dataclass(frozen=True)
class Refusal:
    """One error: its class in JavaScript, its code in JSON-RPC, its status, all that Python keeps of HTTP+JSON."""

    name: str
    code: int
    status: int


NOT_FOUND = Refusal("TaskNotFoundError", -32001, 404)
NOT_CANCELABLE = Refusal("TaskNotCancelableError", -32002, 400)
NO_PUSH = Refusal("PushNotificationNotSupportedError", -32003, 400)
UNSUPPORTED = Refusal("UnsupportedOperationError", -32004, 400)
UNUSABLE = Refusal("InvalidParamsError", -32602, 409)
"""Another message under an id that was used."""


def assert_refused(report: Report, error: Json, expected: Refusal, *, raised: bool = False) -> None:
    """Check what a driver reports of an error. The older clients return it, where the newer ones raise it.

    `raised` is for what the older clients raise too, such as the errors of streams.
    """
    if report.sdk.binding == OLDER_CLIENT and not raised:
        assert (error["type"], error["code"]) == ("ReturnedError", expected.code), error
    elif not is_python(report):
        assert error["type"] == expected.name, error
    elif over_http(report):
        assert (error["type"], error["code"]) == ("A2AClientHTTPError", expected.status), error
    else:
        assert (error["type"], error["code"]) == ("A2AClientJSONRPCError", expected.code), error
