"""Replacing servers one by one: a next version of this code, and callers that never let up meanwhile.

The callers do what a proxy does: they keep connections, drop those that the server has closed, and go to another server
when one takes no connection. Whatever else happens to a request is a failure.
"""

import http.client
import json
import re
import select
import shutil
import ssl
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from dragoman.stores.postgres.migrating import migrations
from tests.harness.paths import SOURCE

NEXT = migrations()[-1].number + 1
"""The schema of the next version."""

_CHANGE = f"""-- What a version after this one might add.
-- Servers of schema {NEXT - 1} and later may go on.
ALTER TABLE task ADD COLUMN origin TEXT;
ALTER TABLE event ADD COLUMN weight INTEGER NOT NULL DEFAULT 0;
ALTER TABLE replica ADD COLUMN zone TEXT NOT NULL DEFAULT '';
ALTER TABLE journal ADD COLUMN origin TEXT;
CREATE TABLE zone (name TEXT PRIMARY KEY);
"""

HEADERS = {"A2A-Version": "1.0", "Content-Type": "application/json"}
ENDED = re.compile(r'"state":"TASK_STATE_(COMPLETED|FAILED|CANCELED|REJECTED)"')
FAILURES = (OSError, http.client.HTTPException, AssertionError, ValueError, LookupError)
SECONDS = 30.0


def next_version(folder: Path) -> Path:
    """Make the version after this one: the same code with one migration more; return its place for PYTHONPATH."""
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    files = folder / "dragoman" / "stores" / "postgres" / "migrations"
    (files / f"{NEXT:04}_test.sql").write_text(_CHANGE, encoding="utf-8")
    return folder


def sending(text: str) -> dict[str, Any]:
    """A request to send, with a message id of its own."""
    return {"message": {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": text}]}}


class Caller:
    """One caller of several servers, with a kept connection to each. For one thread."""

    def __init__(
        self,
        places: Sequence[str],
        first: int = 0,
        *,
        context: ssl.SSLContext | None = None,
        token: str = "",
    ) -> None:
        """Prepare to call.

        Args:
            places: the servers, as `HOST:PORT`.
            first: the one that is called first.
            context: how TLS is spoken, if it is.
            token: the bearer token of every request.
        """
        self._context = context
        self._headers = HEADERS | ({"Authorization": f"Bearer {token}"} if token else {})
        self._places = places
        self._turn = first
        self._kept: dict[str, http.client.HTTPConnection] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._kept.values():
            connection.close()

    def call(self, path: str, document: Any = None, **headers: str) -> http.client.HTTPResponse:
        """Send a request to whichever server takes a connection; by POST if there is a document.

        Raises:
            ConnectionError: none takes one, or the request was sent and not answered.
        """
        body = None if document is None else json.dumps(document)
        connection = self._connection()
        connection.request("GET" if body is None else "POST", path, body, self._headers | headers)
        return connection.getresponse()

    def read(self, path: str, document: Any = None) -> Any:
        """Return the document of a reply.

        Raises:
            ConnectionError, AssertionError: there was none, or it was an error.
        """
        with self.call(path, document) as reply:
            text = reply.read()
        assert reply.status == 200, (reply.status, text)
        return json.loads(text)

    def stream(self, text: str) -> list[int]:
        """Send a message, and follow its stream to the end of the task, from server to server; return the event ids.

        Raises:
            ConnectionError, AssertionError: a stream broke, or was refused.
        """
        told = self._follow("/agents/demo/message:stream", sending(text))
        assert told, "a stream tells what it is a stream of before it ends"
        task_id = re.search(r'"(?:id|taskId)":"([^"]+)"', told[0][1])
        assert task_id, told[0]
        while not ENDED.search(told[-1][1]):
            path = f"/agents/demo/tasks/{task_id[1]}:subscribe"
            told += self._follow(path, {}, **{"Last-Event-ID": str(told[-1][0])})
        return [number for number, _ in told]

    def _follow(self, path: str, document: Any, **headers: str) -> list[tuple[int, str]]:
        with self.call(path, document, **headers) as reply:
            text = reply.read().decode()
        assert reply.status == 200, (reply.status, text)
        told = re.findall(r"^id: (\d+)\ndata: (.*)$", text, re.MULTILINE)
        return [(int(number), data) for number, data in told]

    def _connection(self) -> http.client.HTTPConnection:
        for _ in self._places:
            place = self._places[self._turn % len(self._places)]
            self._turn += 1
            kept = self._kept.pop(place, None)
            if kept is not None and kept.sock is not None and not select.select([kept.sock], [], [], 0)[0]:
                self._kept[place] = kept
                return kept
            if kept is not None:
                kept.close()
            made = self._made(place)
            try:
                made.connect()
            except ConnectionRefusedError:
                continue
            self._kept[place] = made
            return made
        raise ConnectionRefusedError(f"nobody listens at any of {', '.join(self._places)}")

    def _made(self, place: str) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(place, timeout=SECONDS)
        return http.client.HTTPSConnection(place, timeout=SECONDS, context=self._context)


class Load:
    """Callers that do the same again and again until the end of a `with`.

    Attributes:
        done: how often each kind of call went well.
        failures: what went wrong.
    """

    def __init__(
        self, caller: Callable[[int], Caller], kinds: dict[str, tuple[int, Callable[[Caller], None]]]
    ) -> None:
        """Prepare callers, by their numbers; `kinds` says how many there are of each, and what one does each time."""
        self.done: Counter[str] = Counter()
        self.failures: list[str] = []
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._go_on, args=(name, act, caller(first)), daemon=True)
            for name, (count, act) in kinds.items()
            for first in range(count)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(SECONDS)

    def more(self, count: int) -> Callable[[], bool]:
        """Return a question: whether every kind of call went well `count` times more than now."""
        before = Counter(self.done)
        return lambda: (
            bool(self.failures)
            or all(
                self.done[kind] >= before[kind] + count for kind in {thread.name for thread in self._threads}
            )
        )

    def _go_on(self, name: str, act: Callable[[Caller], None], caller: Caller) -> None:
        threading.current_thread().name = name
        with caller:
            self._repeat(name, act, caller)

    def _repeat(self, name: str, act: Callable[[Caller], None], caller: Caller) -> None:
        while not self._over.is_set():
            try:
                act(caller)
            except FAILURES as error:
                self.failures.append(f"{time.strftime('%X')} {name}: {type(error).__name__}: {error}")
                return
            self.done[name] += 1
