"""What moves a run that no message may move: decisions on approvals, and text for a run that asked."""

from collections.abc import Collection

from dragoman.gateway.call import Call
from dragoman.gateway.identity import digest
from dragoman.gateway.ports import Acceptance, RunRequest, TaskStore
from dragoman.gateway.query import HISTORY, show
from dragoman.model import Approval, Decision, Message, Principal, Role, Task, TaskState, TextPart
from dragoman.model.errors import UnsupportedOperation
from dragoman.model.ids import new_id
from dragoman.model.operation import SendMessage

PAGE = 100
LONGEST_NOTE = 2000


class Approvals:
    """Reads and decides approvals of a principal's tenant."""

    def __init__(self, store: TaskStore, flat: Collection[str]) -> None:
        """Work on a store; `flat` are the agents whose deadlines do not move."""
        self._store = store
        self._flat = flat

    async def open(self, principal: Principal, after: str) -> tuple[Approval, ...]:
        """Return the approvals that wait to be decided, oldest first, after the one with the id `after`."""
        return await self._store.approvals(principal.tenant, after=after, limit=PAGE)

    async def find(self, principal: Principal, approval_id: str) -> Approval:
        """Return an approval, decided or not.

        Raises:
            ApprovalNotFound: the principal's tenant has none of this id.
        """
        return await self._store.approval(principal.tenant, approval_id)

    async def decide(
        self, principal: Principal, approval_id: str, *, approved: bool, note: str, shown: str | None
    ) -> Approval:
        """Decide an approval, once; the run that waits for it goes on.

        Raises:
            ApprovalNotFound, ApprovalClosed.
        """
        decision = Decision(approved=approved, by=principal.name, note=note)
        return await self._store.decide(
            principal.tenant, approval_id, decision, digest=shown, flat=self._flat
        )


class Resumer:
    """Answers a run that asked, where tasks are not continued by messages."""

    def __init__(self, store: TaskStore) -> None:
        self._store = store

    async def resume(self, call: Call, task_id: str, text: str) -> Task:
        """Give a run that waits for input the text that it waits for, and return its task.

        Raises:
            TaskNotFound: there is none, or it is not the caller's.
            UnsupportedOperation: it does not wait for input.
        """
        fold = await self._store.read(call.scope, task_id)
        state = fold.task(history_length=0).status.state
        if state is not TaskState.INPUT_REQUIRED:
            raise UnsupportedOperation(f"Task {task_id} does not wait for input: it is {state.name}")
        message = Message(message_id=new_id(), role=Role.USER, parts=(TextPart(text=text),), task_id=task_id)
        await self._store.accept(
            Acceptance(
                scope=call.scope,
                message=message,
                digest=digest(SendMessage(message=message, generation="")),
                idempotent=False,
                task_id=task_id,
                context_id=fold.context_id,
                request=RunRequest(),
                deadline=0,
                visible=True,
                flat=call.settings.flat_deadline,
            )
        )
        fold = await self._store.read(call.scope, task_id)
        return show(call.policy, fold.task(history_length=HISTORY))
