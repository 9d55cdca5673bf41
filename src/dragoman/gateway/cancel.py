"""Cancelling: the store decides once, by the task's row, then the handler is stopped."""

from dragoman.gateway.access import is_withheld
from dragoman.gateway.call import Call
from dragoman.gateway.extensions import marked
from dragoman.gateway.ports import Engine, TaskStore
from dragoman.gateway.query import HISTORY
from dragoman.gateway.result import without_content
from dragoman.model import Task
from dragoman.model.operation import CancelTask


class Canceller:
    """CancelTask (A2A 1.0 §3.1.5)."""

    def __init__(self, store: TaskStore, engine: Engine) -> None:
        self._store = store
        self._engine = engine

    async def cancel(self, call: Call, request: CancelTask) -> Task:
        """Move a task to CANCELED, for ever, and have its handler stopped.

        Of a task that is withheld from the caller, only its state is told.

        Raises:
            TaskNotFound: there is none, or it is not the caller's.
            TaskNotCancelable: it is finished, or canceled, already.
        """
        await self._store.cancel(call.scope, request.task_id, audit=call.audit)
        self._engine.stop(request.task_id)
        fold = await self._store.read(call.scope, request.task_id)
        task = fold.task(history_length=HISTORY)
        return (
            without_content(task) if is_withheld(call.access, fold.sources) else marked(call.extensions, task)
        )
