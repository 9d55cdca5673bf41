"""The tree of errors."""

import inspect
import re

import pytest

from dragoman.model import errors
from dragoman.model.errors import (
    A2AError,
    DragomanError,
    FieldViolation,
    InternalError,
    InvalidParams,
    MessageIdConflict,
    MethodNotAllowed,
    QuotaExceeded,
    TaskNotFound,
    Unavailable,
)

CLASSES = [
    value
    for _, value in inspect.getmembers(errors, inspect.isclass)
    if issubclass(value, DragomanError) and value.__module__ == errors.__name__
]
ABSTRACT = {"DragomanError", "A2AError", "RequestError", "TransportError", "RunError"}


def drawn_tree() -> dict[str, str]:
    """Child → parent, as the module's docstring draws it."""
    parents: dict[str, str] = {}
    path: list[str] = ["DragomanError"]
    for line in (errors.__doc__ or "").splitlines():
        form = re.match(r"    ([│ ]*)[├└]── (\w+)", line)
        if form:
            depth = len(form[1]) // 4 + 1
            parents[form[2]] = path[depth - 1]
            path[depth:] = [form[2]]
    return parents


def test_the_docstring_draws_the_tree_as_it_is() -> None:
    real = {kind.__name__: kind.__bases__[0].__name__ for kind in CLASSES if kind is not DragomanError}
    assert drawn_tree() == real


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_has_a_reason_for_programs(kind: type[DragomanError]) -> None:
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", kind.reason)


def test_the_standards_reasons_are_the_standards_names() -> None:
    standard = [kind for kind in CLASSES if issubclass(kind, A2AError) and kind is not A2AError]
    assert len(standard) == 9
    for kind in standard:
        words = re.findall("[A-Z][a-z]+", kind.__name__)
        assert kind.reason == "_".join(words).upper()


def test_leaves_have_reasons_of_their_own() -> None:
    shared = {"CONTENT_TYPE_NOT_SUPPORTED", "INVALID_REQUEST", "RUN_ERROR", "INTERNAL_ERROR"}
    reasons = [kind.reason for kind in CLASSES if kind.__name__ not in ABSTRACT and kind.reason not in shared]
    assert len(reasons) == len(set(reasons))


def test_invalid_params_say_each_field() -> None:
    error = InvalidParams([FieldViolation("a.b", "is wrong"), FieldViolation("c[0]", "is missing")])
    assert error.message == str(error) == "a.b: is wrong; c[0]: is missing"
    assert [violation.field for violation in error.violations] == ["a.b", "c[0]"]
    assert InvalidParams([], message="all of it").message == "all of it"


def test_an_error_for_one_field_is_of_the_class_it_was_asked_of() -> None:
    error = MessageIdConflict.of("message.messageId", "was used before")
    assert type(error) is MessageIdConflict
    assert error.violations == (FieldViolation("message.messageId", "was used before"),)


def test_a_missing_task_is_named_but_not_at_any_length() -> None:
    assert TaskNotFound("t-1").metadata == {"taskId": "t-1"}
    assert TaskNotFound("t-1").message == "Task not found"
    assert len(TaskNotFound("x" * 10_000).metadata["taskId"]) == 128


def test_a_wrong_method_is_answered_with_the_right_ones() -> None:
    error = MethodNotAllowed("PUT", ["GET", "HEAD"])
    assert error.allowed == ("GET", "HEAD")
    assert error.message == "PUT is not allowed here; use GET or HEAD"


def test_an_internal_error_says_nothing_of_its_cause() -> None:
    assert InternalError().message == InternalError().message
    assert (InternalError().reason, dict(InternalError().metadata)) == ("INTERNAL_ERROR", {})


def test_unavailable_says_when_to_come_back() -> None:
    assert Unavailable("busy").retry_after == 1
    assert Unavailable("busy", retry_after=7).retry_after == 7


def test_an_exceeded_quota_says_which_limit_it_is_and_when_to_come_back() -> None:
    error = QuotaExceeded("too many", metadata={"limit": "max_waiting"}, retry_after=7)
    assert (error.metadata, error.retry_after) == ({"limit": "max_waiting"}, 7)
    assert QuotaExceeded("too many").retry_after == 1
