"""A page of tasks as a JSON document, the same for every version but for the tasks in it (A2A 1.0 §3.1.4)."""

from collections.abc import Callable

import msgspec

from dragoman.model import Task, TaskPage

MAX_PAGE_BYTES = 1024 * 1024
"""A page of tasks is cut to this size, but always holds one task."""

_PAGE_FRAME = 1024
"""Bytes of a page that are no tasks: its other members, and the envelope of a binding."""

_to_json = msgspec.json.Encoder().encode


def encode_page(page: TaskPage, encode_task: Callable[[Task], bytes]) -> bytes:
    """Return a page, its tasks as `encode_task` writes them. Its four members are always there."""
    texts: list[bytes] = []
    size = _PAGE_FRAME
    for task in page.tasks:
        text = encode_task(task)
        size += len(text) + 1
        if texts and size > MAX_PAGE_BYTES:
            break
        texts.append(text)
    page = page.first(len(texts))
    rest = {"nextPageToken": page.next_token, "pageSize": page.page_size, "totalSize": page.total}
    return b'{"tasks":[' + b",".join(texts) + b"]," + _to_json(rest)[1:]
