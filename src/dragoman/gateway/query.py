"""Reading tasks: one, or a page of them."""

from msgspec import structs

from dragoman.gateway.access import is_withheld
from dragoman.gateway.call import Call
from dragoman.gateway.extensions import marked
from dragoman.gateway.ports import TaskStore
from dragoman.gateway.result import verify
from dragoman.model import Filters, Task, TaskPage
from dragoman.model.errors import InvalidParams, TaskNotFound
from dragoman.model.operation import GetTask, ListTasks

HISTORY = 100
"""Messages of history in an answer that names no number."""

MAX_HISTORY = 1000
"""Messages of history in any answer."""


def history_bound(asked: int | None) -> int:
    """Return how many messages of history an answer holds (A2A 1.0 §3.2.4)."""
    return HISTORY if asked is None else min(asked, MAX_HISTORY)


def show(call: Call, task: Task) -> Task:
    """Return a task as a surface may show it, with what the extensions that are active in the call add.

    Raises:
        ArtifactUnverified: the surface verifies results, and one is not what was written.
    """
    shown = verify(task) if call.policy.verifies else task
    return marked(call.extensions, shown) if call.extensions else shown


class Reader:
    """GetTask and ListTasks (A2A 1.0 §3.1.3, §3.1.4)."""

    def __init__(self, store: TaskStore) -> None:
        self._store = store

    async def get(self, call: Call, request: GetTask) -> Task:
        """Return a task with its artifacts.

        Raises:
            TaskNotFound: there is none, or it is not the caller's.
        """
        fold = await self._store.read(call.scope, request.task_id)
        if is_withheld(call.access, fold.sources):
            raise TaskNotFound(request.task_id)
        return show(call, fold.task(history_length=history_bound(request.history_length)))

    async def list(self, call: Call, request: ListTasks) -> TaskPage:
        """Return one page of the caller's tasks, newest status change first.

        A task whose status changes while its pages are being read may be skipped or be seen twice.

        Raises:
            InvalidParams: the page token belongs to other filters or another caller, or a caller that nobody knows
                names no context.
        """
        if call.principal.is_anonymous and request.context_id is None:
            raise InvalidParams.of(
                "contextId", "is required without a credential: only who knows a context may list its tasks"
            )
        filters = Filters(call.scope, request.context_id, request.state, request.after)
        if request.cursor is not None and request.cursor.fingerprint != filters.fingerprint():
            raise InvalidParams.of(
                "pageToken", "belongs to a listing with other filters; start again without it"
            )
        if call.access is not None and call.access.is_lost:
            return TaskPage(tasks=(), filters=filters, page_size=request.page_size, total=0, has_more=False)
        page = await self._store.page(
            filters,
            size=request.page_size,
            cursor=request.cursor,
            history_length=min(request.history_length, MAX_HISTORY),
            artifacts=request.include_artifacts,
            withheld=call.access.lacks if call.access is not None else None,
        )
        return structs.replace(page, tasks=tuple(show(call, task) for task in page.tasks))
