"""Messages, acceptances and scopes to fill stores with, and short words for what tests do to tasks again and again."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from dragoman.gateway.hooks import KeptConfig
from dragoman.gateway.ports import Acceptance, Commit, Lease, RunRequest, TaskStore
from dragoman.model import (
    Artifact,
    ArtifactChunk,
    Change,
    Cursor,
    Filters,
    Message,
    Role,
    Scope,
    StatusChange,
    TaskEvent,
    TaskPage,
    TaskState,
    TextPart,
)
from dragoman.model.allowance import Allowance
from dragoman.model.ids import new_id
from dragoman.model.speech import agent_message

ALICE = Scope("acme", "alice", "writer")
OTHER_PRINCIPAL = Scope("acme", "bob", "writer")
OTHER_TENANT = Scope("globex", "alice", "writer")
OTHER_AGENT = Scope("acme", "alice", "reader")
STRANGERS = (OTHER_PRINCIPAL, OTHER_TENANT, OTHER_AGENT)

HOUR = 3_600_000
TERMINAL = (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED)
INTERRUPTED = (TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED)


def message(
    text: str = "Hello", *, message_id: str | None = None, task_id: str = "", context_id: str = ""
) -> Message:
    """A caller's message under a new id."""
    return Message(
        message_id=message_id or new_id(),
        role=Role.USER,
        parts=(TextPart(text=text),),
        task_id=task_id,
        context_id=context_id,
    )


def acceptance(
    sent: Message | None = None,
    *,
    scope: Scope = ALICE,
    digest: str | None = None,
    idempotent: bool = True,
    visible: bool = True,
    deadline: int = HOUR,
    task_id: str | None = None,
    request: RunRequest | None = None,
    allowance: Allowance | None = None,
    push: KeptConfig | None = None,
) -> Acceptance:
    """An acceptance of `sent`; its digest is that of the text unless it is named."""
    sent = sent or message()
    return Acceptance(
        scope=scope,
        message=sent,
        digest=hashlib.sha256((digest or sent.text).encode()).digest(),
        idempotent=idempotent,
        task_id=task_id or new_id(),
        context_id=sent.context_id or new_id(),
        request=request or RunRequest(),
        deadline=deadline,
        visible=visible,
        allowance=allowance,
        push=push,
    )


async def begun(store: TaskStore, **how: Any) -> Lease:
    """Accept a message as a new task (`how` as for `acceptance`) and return the lease of its run."""
    accepted = await store.accept(acceptance(**how))
    return Lease(accepted.task_id, 1)


async def brought_to(store: TaskStore, state: TaskState, **how: Any) -> Lease:
    """Accept a message as a new task and move it to `state`."""
    lease = await begun(store, **how)
    if state is TaskState.CANCELED:
        await store.cancel(how.get("scope", ALICE), lease.task_id)
    elif state is not TaskState.SUBMITTED:
        await store.append(lease, [status(state)])
    return lease


def status(state: TaskState, text: str | None = None) -> StatusChange:
    """A status change, with a message of the agent if there is a text."""
    return StatusChange(state, None if text is None else agent_message(text, task_id="", context_id=""))


def chunk(text: str, *, artifact_id: str = "result", append: bool = False) -> ArtifactChunk:
    """A piece of an artifact."""
    return ArtifactChunk(Artifact(artifact_id=artifact_id, parts=(TextPart(text=text),)), append=append)


def filters(
    scope: Scope = ALICE,
    *,
    context_id: str | None = None,
    state: TaskState | None = None,
    after: int | None = None,
) -> Filters:
    """Filters of a listing."""
    return Filters(scope, context_id, state, after)


async def purged(store: TaskStore, *, thorough: bool = True, **ages: int) -> int:
    """Purge what ended longer ago than `ages` (milliseconds, by the state's name); return how many tasks that was."""
    wanted = {TaskState[name.upper()]: age for name, age in ages.items()}
    step = await store.purge(wanted, "", thorough=thorough)
    tasks = step.tasks
    while step.place:
        step = await store.purge(wanted, step.place, thorough=thorough)
        tasks += step.tasks
    return tasks


Withheld = Callable[[str], bool]


async def listing(
    store: TaskStore, wanted: Filters, *, size: int = 100, withheld: Withheld | None = None
) -> list[TaskPage]:
    """All pages of a listing."""
    pages = [await one_page(store, wanted, size=size, withheld=withheld)]
    while pages[-1].has_more:
        token = pages[-1].next_token
        pages.append(await one_page(store, wanted, size=size, token=token, withheld=withheld))
    return pages


async def one_page(
    store: TaskStore,
    wanted: Filters,
    *,
    size: int = 100,
    token: str = "",
    history_length: int = 0,
    artifacts: bool = False,
    withheld: Withheld | None = None,
) -> TaskPage:
    """The page that `token` stands for; the first one without."""
    cursor = Cursor.parse(token) if token else None
    return await store.page(
        wanted,
        size=size,
        cursor=cursor,
        history_length=history_length,
        artifacts=artifacts,
        withheld=withheld,
    )


def ids(pages: Iterable[TaskPage]) -> list[str]:
    """The ids of all tasks on `pages`, in order."""
    return [task.id for page in pages for task in page.tasks]


def recorded(store: TaskStore) -> list[Commit]:
    """A list that every commit from now on is added to."""
    commits: list[Commit] = []
    store.on_commit(commits.append)
    return commits


def events_of(commits: Sequence[Commit], task_id: str) -> list[TaskEvent]:
    """What `commits` said of one task."""
    return [event for commit in commits for event in commit.events if event.task_id == task_id]


async def on_many_loops(work: Callable[[int], Awaitable[Any]], *, count: int, threads: int = 5) -> list[Any]:
    """Run `work(0)` … `work(count - 1)` at once, on the loops of several threads, and return what came of each.

    An exception is a result like any other.
    """

    async def share(numbers: range) -> list[Any]:
        return await asyncio.gather(*(work(number) for number in numbers), return_exceptions=True)

    shares = [range(first, count, threads) for first in range(threads)]
    gathered = await asyncio.gather(
        *(asyncio.to_thread(lambda numbers=numbers: asyncio.run(share(numbers))) for numbers in shares)
    )
    return [result for results in gathered for result in results]


def changed(events: Iterable[TaskEvent]) -> list[Change]:
    """The changes alone."""
    return [event.change for event in events]
