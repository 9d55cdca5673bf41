"""Messages, parts, operations, and what the agent's side says."""

import pytest

from dragoman.model import LOCAL, DataPart, Message, RawPart, Role, TextPart, UrlPart
from dragoman.model.message import text_of
from dragoman.model.operation import ListTasks, Operation
from dragoman.model.payload import pack
from dragoman.model.speech import agent_message

PARTS = (
    TextPart(text="one"),
    RawPart(raw=b"no text", media_type="text/plain"),
    DataPart.of({"text": "no text"}),
    TextPart(text=""),
    UrlPart(url="https://example.org/text"),
    TextPart(text="two\nthree"),
)


def test_the_text_of_a_message_is_its_text_parts_line_by_line() -> None:
    message = Message(message_id="m", role=Role.USER, parts=PARTS)
    assert message.text == text_of(PARTS) == "one\n\ntwo\nthree"


def test_a_message_without_text_parts_has_an_empty_text() -> None:
    assert text_of((RawPart(raw=b"x"), DataPart.of("x"))) == ""
    assert text_of(()) == ""


def test_a_data_part_holds_a_value_and_gives_it_back_anew_each_time() -> None:
    part = DataPart.of({"a": [2**70]}, media_type="application/json", filename="a.json")
    assert part.data == pack({"a": [2**70]})
    assert (part.media_type, part.filename) == ("application/json", "a.json")
    part.value["a"].append("changed")
    assert part.value == {"a": [2**70]}


def test_a_data_part_cannot_hold_what_json_cannot() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        DataPart.of(float("nan"))
    with pytest.raises(TypeError):
        DataPart.of({1, 2})


def test_model_values_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        TextPart(text="x").text = "y"


def test_the_agents_side_speaks_about_a_task() -> None:
    one = agent_message("Done.", task_id="t", context_id="c")
    other = agent_message("Done.", task_id="t", context_id="c")
    assert (one.role, one.text, one.task_id, one.context_id) == (Role.AGENT, "Done.", "t", "c")
    assert one.message_id != other.message_id


def test_two_operations_stream() -> None:
    streaming = {operation for operation in Operation if operation.streams}
    assert streaming == {Operation.SEND_STREAMING_MESSAGE, Operation.SUBSCRIBE_TO_TASK}


def test_a_listing_that_asks_for_nothing_is_a_page_of_fifty_without_history_or_artifacts() -> None:
    request = ListTasks()
    assert (request.page_size, request.history_length, request.include_artifacts) == (50, 0, False)
    assert (request.context_id, request.state, request.after, request.cursor) == (None, None, None, None)


def test_the_implicit_tenant_and_principal_have_one_name() -> None:
    assert LOCAL == "local"
