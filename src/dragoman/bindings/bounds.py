"""Results of at most so many bytes: history is cut first, then a page, and what is too large even so is refused."""

from collections.abc import Callable

from msgspec import structs

from dragoman.model import Task, TaskPage
from dragoman.model.errors import ResultTooLarge


def task_within(most: int | None, task: Task, write: Callable[[Task], bytes]) -> bytes:
    """Return a task as `write` writes it, in at most `most` bytes: if need be, without its oldest messages.

    Raises:
        ResultTooLarge: it is too large without any history.
    """
    text = write(task)
    while most is not None and len(text) > most:
        if not task.history:
            raise _too_large(most)
        task = structs.replace(task, history=task.history[(len(task.history) + 1) // 2 :])
        text = write(task)
    return text


def page_within(most: int | None, page: TaskPage, write: Callable[[TaskPage], bytes]) -> bytes:
    """Return a page as `write` writes it, in at most `most` bytes: if need be, of one task without its history.

    Raises:
        ResultTooLarge: its first task is too large without any history.
    """
    text = write(page)
    if most is None or len(text) <= most:
        return text
    first = page.first(1)
    text = write(structs.replace(first, tasks=(structs.replace(first.tasks[0], history=()),)))
    if len(text) > most:
        raise _too_large(most)
    return text


def _too_large(most: int) -> ResultTooLarge:
    return ResultTooLarge(f"The result has more than {most} bytes, even without its history")
