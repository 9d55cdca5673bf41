"""Files, data and metadata to the agent and back, through the official 0.3 SDKs."""

import json

import pytest

from tests.harness.server import ServerProcess
from tests.harness.wire import call
from tests.interop.sdks import PYTHON_NEW, Json, Report, Sdk, raw_bytes
from tests.interop.v0_3.sdks import ALL_SDKS, JAVASCRIPT, content, over_http

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


def _echoed(report: Report, how: str) -> tuple[list[Json], list[Json]]:
    """The parts that were sent, and those of the artifact that the echoing agent made of them."""
    (artifact,) = report["parts"][how]["artifacts"]
    sent = report["parts"]["sent"]["parts"]
    if over_http(report):
        # The proto of 0.3 has no integers in data: the SDKs send and read them as the floats that they become.
        sent = json.loads(json.dumps(sent), parse_int=float)
    return sent, artifact["parts"]


@pytest.mark.parametrize("how", ["task", "read"])
def test_every_part_comes_back_with_the_content_that_was_sent(report: Report, how: str) -> None:
    sent, echoed = _echoed(report, how)
    assert [part["kind"] for part in echoed] == [part["kind"] for part in sent]
    assert [content(part) for part in echoed] == [content(part) for part in sent]


def test_the_agent_and_callers_of_1_0_see_the_bytes_that_were_meant(report: Report) -> None:
    # An echo alone proves nothing: bytes that were encoded once too often come back as they went.
    sent, _ = _echoed(report, "task")
    task = call("GET", f"{report.agent_url}/tasks/{report['parts']['task']['id']}").json()
    for parts in (task["artifacts"][0]["parts"], task["history"][0]["parts"]):
        assert [raw_bytes(part) for part in parts if "raw" in part] == [content(part) for part in sent[:3]]
        assert [part["url"] for part in parts if "url" in part] == [content(sent[3])]
        assert parts[4]["data"] == content(sent[4])


@pytest.fixture(scope="module")
def of_1_0(server: ServerProcess) -> Json:
    """What a 1.0 client sent of files and data."""
    seen: Json = PYTHON_NEW[0].drive(server.url, "parts")["parts"]
    return seen


@pytest.mark.parametrize("sdk", ALL_SDKS, ids=str)
def test_files_of_a_1_0_caller_are_read_with_the_bytes_that_were_meant(
    server: ServerProcess, of_1_0: Json, sdk: Sdk
) -> None:
    (read,) = sdk.drive(server.url, f"read={of_1_0['task']['id']}")["read"]
    sent = of_1_0["sent"]["parts"]
    parts = read["artifacts"][0]["parts"]
    assert [content(part) for part in parts[:3]] == [raw_bytes(part) for part in sent[:3]]
    assert [content(part) for part in parts[3:]] == [
        sent[3]["url"], sent[4]["data"], {"value": sent[5]["data"]},
    ]  # fmt: skip


def test_a_file_that_is_base64_text_itself_is_not_decoded_once_too_often(report: Report) -> None:
    _, echoed = _echoed(report, "task")
    assert content(echoed[1]) == b"dGV4dCB0aGF0IGlzIGJhc2U2NCBpdHNlbGY="


def test_the_type_of_a_file_comes_back(report: Report) -> None:
    sent, echoed = _echoed(report, "task")
    types = [part["file"].get("mimeType") for part in sent if part["kind"] == "file"]
    assert [part["file"].get("mimeType") for part in echoed if part["kind"] == "file"] == types


def test_the_name_of_a_file_comes_back_unless_the_sdk_itself_loses_it(report: Report) -> None:
    sent, echoed = _echoed(report, "task")
    names = [part["file"]["name"] for part in sent if part["kind"] == "file"]
    if report.sdk in JAVASCRIPT and over_http(report):
        names = [None] * len(names)  # its ProtoJSON has no such member
    assert [part["file"].get("name") for part in echoed if part["kind"] == "file"] == names


def test_the_metadata_of_a_part_comes_back_unless_the_sdk_itself_loses_it(report: Report) -> None:
    sent, echoed = _echoed(report, "task")
    expected = None if report.sdk in JAVASCRIPT and over_http(report) else sent[-1]["metadata"]
    assert echoed[-1].get("metadata") == expected


@pytest.mark.parametrize("how", ["task", "read"])
def test_the_message_stands_in_the_history_as_it_was_sent(report: Report, how: str) -> None:
    sent = report["parts"]["sent"] | {"parts": _echoed(report, how)[0]}
    (message,) = report["parts"][how]["history"]
    assert (message["messageId"], message["role"]) == (sent["messageId"], "user")
    assert message["metadata"] == sent["metadata"]
    assert [content(part) for part in message["parts"]] == [content(part) for part in sent["parts"]]
