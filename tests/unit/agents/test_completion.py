"""Which answers of a model are whole, and what is wrong with the others."""

import json
from typing import Any

import pytest

from dragoman.agents.completion import Completion, ModelFailed, fault_of


def event(content: Any = None, finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    return json.dumps({"choices": [choice], **more}).encode()


def read(*events: bytes) -> str:
    completion = Completion()
    text = "".join(map(completion.read, events))
    completion.end()
    return text


def failed(*events: bytes) -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        read(*events)
    return caught.value


@pytest.mark.parametrize(
    "events",
    [
        (event("one "), event("two", "stop"), b"[DONE]"),
        (event("one "), event("two"), event(None, "stop"), b"[DONE]"),
        (event("one two"), event("", "stop")),
        (b'{"choices":[],"prompt_filter_results":[{}]}', event("one two"), event(None, "stop"), b" [DONE] "),
        (event("one two"), event(None, "stop"), b'{"choices":[],"usage":{"total_tokens":5}}', b"[DONE]"),
        (event("one two", ""), b'{"choices":[{"finish_reason":"stop"}]}', b"[DONE]", b"whatever"),
        (
            event("one two", error=None),
            b'{"choices":[{"index":1,"delta":{"content":"x"}}]}',
            event(None, "stop"),
        ),
    ],
)
def test_a_whole_answer_is_its_text(events: tuple[bytes, ...]) -> None:
    assert read(*events) == "one two"


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ((), "broke off"),
        ((event("half"),), "broke off"),
        ((event("half"), b"[DONE]"), "broke off"),
        ((b'{"choices":[]}', b"[DONE]"), "broke off"),
        ((b"{}",), "broke off"),
        ((event(None, "stop"), b"[DONE]"), "no text"),
        ((event("half", "length"),), "longest length"),
        ((event("half", "content_filter"),), "content filter"),
        ((event(None, "tool_calls"),), "asked for a tool"),
        ((event("half", "tired"),), "stopped before its answer was whole"),
        ((event("half"), b'{"error":{"message":"secret"}}'), "reported an error"),
        ((b'{"error":"secret"}',), "reported an error"),
        ((b'{"choices":',), "no chat completion"),
        ((b'{"choices":5}',), "no chat completion"),
        ((b"[]",), "no chat completion"),
        ((event(5),), "no chat completion"),
        ((b'{"choices":[{"delta":{"content":"\xff"}}]}',), "no chat completion"),
        ((b'{"choices":[{"delta":{"content":"\\ud800"}}]}',), "no chat completion"),
        ((b'{"choices":' + b"[" * 100_000,), "no chat completion"),
    ],
)
def test_any_other_answer_fails_with_its_reason(events: tuple[bytes, ...], reason: str) -> None:
    error = failed(*events)
    assert reason in str(error)
    assert "secret" not in str(error) + error.detail


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"error":{"message":"m","type":"invalid_request_error","code":"model_not_found"}}',
         "invalid_request_error, model_not_found"),
        (b'{"error":{"type":"server_error","code":503}}', "server_error"),
        (b'{"error":{"code":"sk-abc123"}}', ""),
        (b'{"error":"m"}', ""),
        (b"\xff", ""),
        (b"", ""),
    ],
)  # fmt: skip
def test_of_an_error_only_its_kind_is_told(body: bytes, kind: str) -> None:
    assert fault_of(body) == kind
