"""Writing results: what is left out, what never is, and how a page is cut."""

import json

import pytest

from dragoman.model import (
    Artifact,
    Cursor,
    Filters,
    Message,
    Received,
    Reply,
    Resumed,
    Role,
    Scope,
    Task,
    TaskEvent,
    TaskPage,
    TaskState,
    TaskStatus,
    TextPart,
    Used,
)
from dragoman.protocol.pages import MAX_PAGE_BYTES
from dragoman.protocol.v1_0.encode import encode_item, encode_page, encode_task

FILTERS = Filters(Scope("t", "p", "a"), None, None, None)
MESSAGE = Message(message_id="m", role=Role.USER, parts=(TextPart(text="x"),))


def task(number: int, text: str = "", artifacts: tuple[Artifact, ...] | None = ()) -> Task:
    history = (Message(message_id="m", role=Role.USER, parts=(TextPart(text=text),)),) if text else ()
    return Task(
        id=f"task-{number}",
        context_id="c",
        status=TaskStatus(state=TaskState.WORKING, timestamp=1000 - number),
        history=history,
        artifacts=artifacts,
    )


def page(*tasks: Task, has_more: bool = False) -> TaskPage:
    return TaskPage(tasks=tasks, filters=FILTERS, page_size=50, total=1234, has_more=has_more)


def test_a_task_has_no_empty_members() -> None:
    assert json.loads(encode_task(task(0))).keys() == {"id", "contextId", "status"}


@pytest.mark.parametrize(("artifacts", "shown"), [((), True), (None, False)])
def test_a_listed_task_shows_that_it_has_no_artifacts_only_if_that_was_asked(
    artifacts: tuple[Artifact, ...] | None, shown: bool
) -> None:
    listed = json.loads(encode_page(page(task(0, artifacts=artifacts))))["tasks"][0]
    assert ("artifacts" in listed) == shown
    assert listed.get("artifacts", []) == []
    assert "artifacts" not in json.loads(encode_task(task(0, artifacts=artifacts)))


def test_a_page_always_has_its_four_members() -> None:
    assert json.loads(encode_page(page())) == {
        "tasks": [],
        "nextPageToken": "",
        "pageSize": 50,
        "totalSize": 1234,
    }


def test_a_page_with_more_to_come_has_the_token_of_the_next() -> None:
    document = json.loads(encode_page(page(task(0), task(1), has_more=True)))
    assert Cursor.parse(document["nextPageToken"]) == Cursor(999, "task-1", FILTERS.fingerprint())


def test_a_page_is_cut_at_a_mebibyte_and_goes_on_after_the_cut() -> None:
    third = "x" * (MAX_PAGE_BYTES // 3)
    body = encode_page(page(*(task(number, third) for number in range(5))))
    document = json.loads(body)
    assert [listed["id"] for listed in document["tasks"]] == ["task-0", "task-1"]
    assert Cursor.parse(document["nextPageToken"]) == Cursor(999, "task-1", FILTERS.fingerprint())
    assert (document["pageSize"], document["totalSize"]) == (50, 1234)
    assert len(body) < MAX_PAGE_BYTES + 200


def test_a_page_holds_one_task_however_large() -> None:
    document = json.loads(encode_page(page(task(0, "x" * (2 * MAX_PAGE_BYTES)), task(1))))
    assert [listed["id"] for listed in document["tasks"]] == ["task-0"]
    assert Cursor.parse(document["nextPageToken"]).task_id == "task-0"
    last = json.loads(encode_page(page(task(0, "x" * (2 * MAX_PAGE_BYTES)))))
    assert (len(last["tasks"]), last["nextPageToken"]) == (1, "")


def test_small_tasks_behind_a_large_one_are_not_taken_out_of_order() -> None:
    whole = encode_page(page(task(0), task(1, "x" * MAX_PAGE_BYTES), task(2)))
    assert [listed["id"] for listed in json.loads(whole)["tasks"]] == ["task-0"]


@pytest.mark.parametrize("change", [Received(MESSAGE), Reply(MESSAGE), Resumed(1), Used("wiki")])
def test_an_event_that_streams_do_not_show_has_no_form(change: Received | Reply | Resumed | Used) -> None:
    with pytest.raises(TypeError, match=type(change).__name__):
        encode_item(TaskEvent("t", "c", 1, 0, 1, change))
