"""What a handler sees of a call: whatever a remote agent puts into its task, reading it is safe."""

import json
from typing import Any

import pytest
from msgspec import Raw

from dragoman.agents.called import as_called
from dragoman.gateway.remotes import Outcome


def called(result: Any, **more: Any) -> Any:
    return as_called(Outcome(status="completed", result=Raw(json.dumps(result).encode()), **more))


def parts(*texts: str) -> dict[str, Any]:
    return {"parts": [{"text": text} for text in texts]}


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"message": parts("a", "b")}, "a\nb"),
        ({"task": {"artifacts": [parts("a"), parts("b")], "status": {"message": parts("c")}}}, "a\nb"),
        ({"task": {"status": {"message": parts("Which one?")}}}, "Which one?"),
        ({"task": {"artifacts": [{"parts": [{"data": 1}, {"text": "x"}, {"raw": "eA=="}]}]}}, "x"),
        ({"task": {"artifacts": {"parts": []}, "status": {"message": "no"}}}, ""),
        (
            {
                "task": {
                    "artifacts": ["x", 1, None, {"parts": "x"}, {"parts": [1, {"text": 2}]}],
                    "status": {},
                }
            },
            "",
        ),
        ({"task": {"artifacts": None}}, ""),
    ],
)
def test_the_text_is_that_of_the_message_the_artifacts_or_the_status(result: Any, text: str) -> None:
    assert called(result).text == text


def test_what_came_is_there_as_it_came() -> None:
    task = {"id": "r-1", "metadata": {"n": 12345678901234567890, "kind": None}}
    found = called({"task": task}, remote_task_id="r-1")
    assert (found.task, found.message, found.remote_task_id) == (task, {}, "r-1")
    assert (found.is_unknown, found.has_failed) == (False, False)


def test_what_did_not_come_is_empty() -> None:
    for status in ("unknown", "failed"):
        found = as_called(Outcome(status=status, code=-32001, error="No"))
        assert (found.task, found.message, found.text, found.code, found.error) == ({}, {}, "", -32001, "No")
        assert (found.is_unknown, found.has_failed) == (status == "unknown", status == "failed")
