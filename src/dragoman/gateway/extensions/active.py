"""Which extensions are active in a call, and what comes of that."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Raw, structs

from dragoman.gateway.extensions.behaviour import Behaviour
from dragoman.gateway.extensions.shipped import SHIPPED
from dragoman.gateway.ports import Acceptance
from dragoman.model import (
    ArtifactChunk,
    Extension,
    Received,
    RunFacts,
    StatusChange,
    Task,
    TaskEvent,
    TaskFold,
)
from dragoman.model.errors import ExtensionSupportRequired
from dragoman.model.payload import is_present, members, with_members

HEADER = "A2A-Extensions"


def activated(requested: Sequence[str], declared: Sequence[Extension]) -> tuple[str, ...]:
    """Return those of the requested extension URIs that an agent declares, in the order of the request."""
    if not (requested and declared):
        return ()
    known = {extension.uri for extension in declared}
    return tuple(dict.fromkeys(uri for uri in requested if uri in known))


def check_required(active: tuple[str, ...], declared: Sequence[Extension]) -> None:
    """Make sure that every extension which the agent requires is active (A2A 1.0 §3.3.4).

    Raises:
        ExtensionSupportRequired: one is not; each of these is named.
    """
    if not declared:
        return
    missing = [extension.uri for extension in declared if extension.required and extension.uri not in active]
    if missing:
        named = ", ".join(missing)
        raise ExtensionSupportRequired(
            f"This agent requires what the request did not ask for; send the header {HEADER}: {named}",
            metadata={"required": named},
        )


def accepted(active: tuple[str, ...], acceptance: Acceptance) -> Acceptance:
    """Return how a message is accepted in a call."""
    if active:
        for behaviour in _of(active):
            acceptance = behaviour.accept(acceptance)
    return acceptance


def marked(active: tuple[str, ...], task: Task) -> Task:
    """Return a task as it is shown in a call: with what is said of its run."""
    facts = _facts(active, task.run) if task.run is not None else None
    return structs.replace(task, metadata=with_members(task.metadata, facts)) if facts else task


def retold(active: tuple[str, ...], fold: TaskFold, event: TaskEvent) -> TaskEvent:
    """Return an event as it is shown in a call; `fold` has it as its last one.

    A change of state has what the task keeps, and each event what is said of the run. What the agent itself wrote
    there stays.
    """
    change = event.change
    added = dict(_facts(active, fold.facts))
    if isinstance(change, Received) and change.state is not None:
        # It shows as a change of state.
        change = StatusChange(change.state)
    if isinstance(change, StatusChange):
        metadata = with_members(with_members(change.metadata, added), members(fold.metadata))
    elif isinstance(change, ArtifactChunk):
        metadata = with_members(change.metadata, added)
    else:
        return event
    if metadata is change.metadata:
        return event
    return structs.replace(event, change=structs.replace(change, metadata=metadata))


def _of(active: tuple[str, ...]) -> Iterator[Behaviour]:
    return (SHIPPED[uri] for uri in active if uri in SHIPPED)


def _facts(active: tuple[str, ...], run: RunFacts) -> Mapping[str, Raw]:
    told = ((behaviour.uri, behaviour.facts(run)) for behaviour in _of(active))
    return {uri: facts for uri, facts in told if is_present(facts)}
