"""What moves a run that no message may move: decisions on approvals, and text for a run that asked."""

from collections.abc import Mapping

from msgspec import structs

from dragoman.gateway.access import is_withheld
from dragoman.gateway.audit import AuditEntry
from dragoman.gateway.call import Call
from dragoman.gateway.identity import digest
from dragoman.gateway.ports import Acceptance, AgentSettings, RunRequest, TaskStore
from dragoman.gateway.query import HISTORY, show
from dragoman.model import Approval, Decision, Message, Principal, Role, Task, TextPart
from dragoman.model.errors import TaskNotFound
from dragoman.model.ids import new_id
from dragoman.model.operation import SendMessage

PAGE = 100
LONGEST_NOTE = 2000


class Approvals:
    """Reads and decides approvals of a principal's tenant."""

    def __init__(self, store: TaskStore, settings: Mapping[str, AgentSettings]) -> None:
        """Work on a store; `settings` are those of every agent that runs, by its id."""
        self._store = store
        self._settings = settings
        self._flat = [agent for agent, one in settings.items() if one.flat_deadline]

    async def open(self, principal: Principal, after: str) -> tuple[Approval, ...]:
        """Return the approvals that wait to be decided, oldest first, after the one with the id `after`."""
        found = await self._store.approvals(principal.tenant, after=after, limit=PAGE)
        return tuple(map(self._with_end, found))

    async def find(self, principal: Principal, approval_id: str) -> Approval:
        """Return an approval, decided or not.

        Raises:
            ApprovalNotFound: the principal's tenant has none of this id.
        """
        return self._with_end(await self._store.approval(principal.tenant, approval_id))

    async def decide(
        self,
        principal: Principal,
        approval_id: str,
        *,
        approved: bool,
        note: str,
        shown: str | None,
        audit: AuditEntry | None = None,
    ) -> Approval:
        """Decide an approval, once; the run that waits for it goes on. `audit` is what to note of it.

        Raises:
            ApprovalNotFound, ApprovalClosed.
        """
        decision = Decision(approved=approved, by=principal.name, note=note)
        approval = await self._store.decide(
            principal.tenant, approval_id, decision, digest=shown, flat=self._flat, audit=audit
        )
        return self._with_end(approval)

    def _with_end(self, approval: Approval) -> Approval:
        """Return an approval with the time at which its run stops to wait: its deadline stands still meanwhile."""
        settings = self._settings.get(approval.agent)
        if settings is None:
            return approval
        until = approval.created_at + int(settings.parked_deadline * 1000)
        if settings.flat_deadline:
            until = min(until, approval.expires_at)
        return structs.replace(approval, expires_at=until)


class Resumer:
    """Answers a run that asked, where tasks are not continued by messages."""

    def __init__(self, store: TaskStore) -> None:
        self._store = store

    async def resume(self, call: Call, task_id: str, text: str, message_id: str = "") -> Task:
        """Give a run that waits for its caller the text that it waits for, and return its task.

        The same text under the same `message_id` is given once, however often it is sent.

        Raises:
            TaskNotFound: there is none, or it is not the caller's, or is withheld.
            UnsupportedOperation: it does not wait, or waits for an approval.
            MessageIdConflict: the `message_id` was used for something else.
        """
        fold = await self._store.read(call.scope, task_id)
        if is_withheld(call.access, fold.sources):
            raise TaskNotFound(task_id)
        message = Message(
            message_id=message_id or new_id(), role=Role.USER, parts=(TextPart(text=text),), task_id=task_id
        )
        await self._store.accept(
            Acceptance(
                scope=call.scope,
                message=message,
                digest=digest(SendMessage(message=message, generation="")),
                idempotent=bool(message_id),
                task_id=task_id,
                context_id=fold.context_id,
                request=RunRequest(),
                deadline=0,
                visible=True,
                flat=call.settings.flat_deadline,
                answers=True,
                audit=call.audit,
            )
        )
        fold = await self._store.read(call.scope, task_id)
        return show(call, fold.task(history_length=HISTORY))
