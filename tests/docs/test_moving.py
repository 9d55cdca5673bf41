"""What `how-to/move-to-1.0.md` promises a client that moves one call at a time: both versions reach the same tasks."""

from collections.abc import Iterator
from itertools import count

import httpx2
import pytest

from tests.docs.moving import NEW, OLD, Mover, Way, state_of
from tests.harness.polling import until
from tests.harness.server import ServerProcess

MOVES = [pair for old in OLD for new in NEW for pair in ((old, new), (new, old))]
LISTING = [(old, new) for old, new in MOVES if {old.path, new.path} <= {"", "/v1"}]
"""Pairs of ways, both of which list tasks by `GET /tasks`."""

_NUMBERS = count(1)

moving = pytest.mark.parametrize(("before", "after"), MOVES, ids=str)


@pytest.fixture(scope="module")
def mover(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mover]:
    """A client of the demo agent."""
    with (
        ServerProcess(tmp_path_factory.mktemp("moving") / "data") as server,
        httpx2.Client(base_url=f"{server.url}/agents/demo", timeout=20, trust_env=False) as client,
    ):
        yield Mover(client)


def new_id() -> str:
    """The id of a message."""
    return f"moving-{next(_NUMBERS)}"


@moving
def test_what_was_sent_through_one_version_is_read_through_the_other(
    mover: Mover, before: Way, after: Way
) -> None:
    sent = mover.task(before, "SendMessage", before.send(new_id(), "hello"))
    assert (sent.state, sent.texts) == ("completed", ("hello",))
    assert mover.task(after, "GetTask", {"id": sent.id}) == sent


@moving
def test_a_task_that_came_through_one_version_is_cancelled_through_the_other(
    mover: Mover, before: Way, after: Way
) -> None:
    task = mover.task(before, "SendMessage", before.send(new_id(), "slow 600", wait=False))
    until(
        lambda: mover.task(before, "GetTask", {"id": task.id}).state == "working", what="the task is working"
    )
    cancelled = mover.task(after, "CancelTask", {"id": task.id})
    assert (cancelled.id, cancelled.state) == (task.id, "canceled")
    assert mover.task(before, "GetTask", {"id": task.id}) == cancelled


@moving
def test_a_stream_that_broke_off_in_one_version_goes_on_in_the_other(
    mover: Mover, before: Way, after: Way
) -> None:
    stream = mover.events(before, "SendStreamingMessage", before.send(new_id(), "slow 1"))
    (_, first), (seen, _) = next(stream), next(stream)
    stream.close()  # type: ignore[attr-defined]
    rest = list(mover.events(after, "SubscribeToTask", {"id": first["id"]}, after=seen))
    assert [number for number, _ in rest] == list(range(seen + 1, seen + 1 + len(rest)))
    assert state_of(rest[-1][1]) == "completed"
    assert rest == list(mover.events(after, "SubscribeToTask", {"id": first["id"]}, after=seen))


@moving
def test_a_message_goes_on_with_a_context_of_the_other_version(mover: Mover, before: Way, after: Way) -> None:
    first = mover.task(before, "SendMessage", before.send(new_id(), "one"))
    second = mover.task(after, "SendMessage", after.send(new_id(), "two", context_id=first.context))
    assert (second.context, second.texts) == (first.context, ("two",))
    assert second.id != first.id


@pytest.mark.parametrize(("before", "after"), LISTING, ids=str)
def test_a_listing_that_began_in_one_version_goes_on_in_the_other(
    mover: Mover, before: Way, after: Way
) -> None:
    context = new_id()
    sent = [
        mover.task(way, "SendMessage", way.send(new_id(), "x", context_id=context)).id
        for way in (before, after)
    ]

    def page(way: Way, token: str) -> tuple[list[str], str]:
        query = {"contextId": context, "pageSize": "1", "pageToken": token}
        headers = {"A2A-Version": way.version}
        listed = mover.client.get(f"{way.path}/tasks", params=query, headers=headers).json()
        return [task["id"] for task in listed["tasks"]], listed["nextPageToken"]

    ids, token = page(before, "")
    rest, end = page(after, token)
    assert (ids + rest, end) == (sent[::-1], "")


@moving
def test_a_retry_in_the_other_version_is_a_conflict_and_changes_nothing(
    mover: Mover, before: Way, after: Way
) -> None:
    message_id = new_id()
    sent = mover.task(before, "SendMessage", before.send(message_id, "once"))
    refused = mover.call(after, "SendMessage", after.send(message_id, "once"))
    assert "MESSAGE_ID_CONFLICT" in str(refused)
    assert mover.task(before, "SendMessage", before.send(message_id, "once")) == sent


@pytest.mark.parametrize("first", OLD, ids=str)
@pytest.mark.parametrize("again", OLD, ids=str)
def test_a_retry_in_another_form_of_the_same_version_is_the_same_task(
    mover: Mover, first: Way, again: Way
) -> None:
    message_id = new_id()
    sent = mover.task(first, "SendMessage", first.send(message_id, "once"))
    assert mover.task(again, "SendMessage", again.send(message_id, "once")) == sent
