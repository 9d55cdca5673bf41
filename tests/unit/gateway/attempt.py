"""An attempt of an accepted run, for tests of what handlers do."""

from typing import Any

from msgspec import structs

from dragoman.gateway.execute import Execution
from dragoman.gateway.ports import Acceptance, AgentSettings, RunRef, RunRequest
from dragoman.model import Change
from dragoman.model.ids import new_id
from dragoman.model.operation import SendMessage
from tests.unit.gateway.memory_store import MemoryStore
from tests.unit.gateway.scripted import SCOPE, message


class Attempt:
    """An accepted run and an execution of it."""

    def __init__(self, store: MemoryStore, ref: RunRef, settings: AgentSettings) -> None:
        self.store = store
        self.ref = ref
        self.settings = settings
        self.execution = Execution(store, ref, settings)

    def again(self) -> "Attempt":
        """Return the next attempt of the run, on the same store."""
        state = self.store.state(self.ref.lease.task_id)
        ref = structs.replace(self.ref, attempt=self.ref.attempt + 1, state=state, again=True)
        return Attempt(self.store, ref, self.settings)

    async def answered(self, text: str) -> "Attempt":
        """Answer the run, which waits for it, and return what executes it then."""
        answer = message(text, message_id=new_id())
        sent = structs.replace(answer.message, task_id=self.ref.lease.task_id)
        await self.store.accept(accepting(structs.replace(answer, message=sent)))
        return Attempt(self.store, self.store.runs[-1], self.settings)

    @property
    def done(self) -> list[Change]:
        """What the run did, all attempts together."""
        return self.store.changes(self.ref.lease.task_id)[1:]


async def begun(
    replies: str = "task",
    request: SendMessage | None = None,
    *,
    extensions: tuple[str, ...] = (),
    **settings: Any,
) -> Attempt:
    """Have a message accepted and return the first attempt of its run."""
    request = request or message()
    store = MemoryStore()
    await store.accept(accepting(request, extensions, visible=replies == "task"))
    return Attempt(store, store.runs[0], AgentSettings(replies=replies, **settings))


def accepting(request: SendMessage, extensions: tuple[str, ...] = (), *, visible: bool = True) -> Acceptance:
    """Return the acceptance of a message."""
    return Acceptance(
        scope=SCOPE,
        message=request.message,
        digest=b"",
        idempotent=True,
        task_id=new_id(),
        context_id="c",
        request=RunRequest(request.accepted_output_modes, extensions, request.metadata),
        deadline=60_000,
        visible=visible,
    )
