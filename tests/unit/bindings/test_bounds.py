"""Results of at most so many bytes."""

import msgspec
import pytest

from dragoman.bindings.bounds import page_within, task_within
from dragoman.model import Filters, Message, Role, Scope, Task, TaskPage, TaskState, TaskStatus, TextPart
from dragoman.model.errors import ResultTooLarge

write = msgspec.json.encode


def said(number: int, size: int = 100) -> Message:
    return Message(message_id=f"m{number}", role=Role.USER, parts=(TextPart(text="x" * size),))


def task(turns: int, *, task_id: str = "t") -> Task:
    status = TaskStatus(state=TaskState.COMPLETED, timestamp=0)
    return Task(id=task_id, context_id="c", status=status, history=tuple(map(said, range(turns))))


def page(*tasks: Task) -> TaskPage:
    filters = Filters(Scope("t", "p", "a"), None, None, None)
    return TaskPage(tasks=tasks, filters=filters, page_size=50, total=7, has_more=False)


def test_what_fits_is_written_as_it_is() -> None:
    whole = write(task(9))
    assert task_within(len(whole), task(9), write) == whole
    assert task_within(None, task(1000), write) == write(task(1000))
    listed = write(page(task(9), task(9)))
    assert page_within(len(listed), page(task(9), task(9)), write) == listed
    assert page_within(None, page(task(1000)), write) == write(page(task(1000)))


@pytest.mark.parametrize("turns", [1, 2, 3, 9, 100])
def test_a_task_that_is_too_large_loses_its_oldest_messages(turns: int) -> None:
    whole = write(task(turns))
    text = task_within(len(whole) - 1, task(turns), write)
    assert len(text) < len(whole)
    kept = msgspec.json.decode(text, type=Task).history
    assert kept == task(turns).history[turns - len(kept) :]
    assert len(kept) >= (turns - 1) // 2


def test_a_task_that_is_too_large_without_history_is_refused() -> None:
    with pytest.raises(ResultTooLarge) as refused:
        task_within(len(write(task(0))) - 1, task(5), write)
    assert refused.value.reason == "RESULT_TOO_LARGE"


def test_a_page_that_is_too_large_has_its_first_task_without_history_and_the_rest_on_the_next_page() -> None:
    both = page(task(50, task_id="a"), task(50, task_id="b"))
    text = page_within(len(write(both)) // 3, both, write)
    cut = msgspec.json.decode(text)
    assert [one["id"] for one in cut["tasks"]] == ["a"]
    assert not cut["tasks"][0].get("history")
    assert (cut["total"], cut["has_more"]) == (7, True)


def test_a_page_whose_first_task_is_too_large_even_so_is_refused() -> None:
    with pytest.raises(ResultTooLarge):
        page_within(50, page(task(5)), write)
