"""Valid requests made wrong in one way or another, each by its own number: the same number makes the same request."""

import json
import random
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tests.interaction.answers import Reply
from tests.interaction.callers import Caller, Request
from tests.interaction.changes import PARAM_STEPS, REQUEST_STEPS, give_twice
from tests.interaction.messages import new_id
from tests.interaction.sockets import Socket

SEED = 20_261_129
CONNECTIONS = 4
PIPELINED = 20


@dataclass(frozen=True)
class Mutant:
    """A request and what was done to it."""

    number: int
    request: Request
    history: str


Answered = list[tuple[Mutant, Reply]]


def answered(url: str, mutants: Sequence[Mutant]) -> Answered:
    """Send requests over several connections, many at a time over each, and give the reply of each."""
    batches = [mutants[start : start + PIPELINED] for start in range(0, len(mutants), PIPELINED)]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return [pair for pairs in pool.map(lambda batch: _exchange(url, batch), batches) for pair in pairs]


def _exchange(url: str, mutants: Sequence[Mutant]) -> Answered:
    found: Answered = []
    while len(found) < len(mutants):
        left = mutants[len(found) :]
        with Socket(url, seconds=15) as socket:
            socket.send_what_is_taken(b"".join(mutant.request.text() for mutant in left))
            before = len(found)
            for mutant, reply in zip(left, socket.replies(), strict=False):
                found.append((mutant, reply))
                if reply.headers.get("connection") == "close":
                    break
            assert len(found) > before, f"no reply to {left[0]}"
    return found


def check_all(pairs: Iterable[tuple[Mutant, Reply]], check: Callable[[Mutant, Reply], bool]) -> int:
    """Check the form of every reply, and count those that accepted a message, as `check` tells."""
    wrong, accepted = [], 0
    for mutant, reply in pairs:
        try:
            accepted += check(mutant, reply)
        except (AssertionError, ValueError, LookupError) as error:
            head = f"{mutant.request.method} {mutant.request.target[:200]} {dict(mutant.request.headers)}"
            body = (mutant.request.body or b"")[:600]
            shown = f"#{mutant.number} ({mutant.history})\n  {head}\n  {body!r}\n  -> {str(error)[:600]}"
            wrong.append(shown)
    assert not wrong, f"{len(wrong)} wrong replies:\n" + "\n".join(wrong[:5])
    return accepted


class Mutator:
    """Makes mutants of the requests of two callers, who have one finished task each."""

    def __init__(self, callers: Sequence[Caller], task_ids: Sequence[str]) -> None:
        self._callers = callers
        self._task_ids = task_ids

    def make(self, number: int) -> Mutant:
        """The mutant with this number. About one in ten is left as it was."""
        rng = random.Random(f"{SEED}:{number}")
        caller = rng.choice(self._callers)
        operation, params = self._valid(rng)
        done = [f"{caller.binding} {operation}"]
        for _ in range(rng.choice([0, 1, 1, 1, 1, 2, 2, 3, 4, 6])):
            if isinstance(params, dict) and rng.random() < 0.5:
                step: Callable[[random.Random, Any], Any] = rng.choice(PARAM_STEPS)
                params = step(rng, params)
                done.append(step.__name__)
        request = caller.request(operation, self._text(rng, caller, operation, params))
        if rng.random() < 0.5:
            change = rng.choice(REQUEST_STEPS)
            request = change(rng, request)
            done.append(change.__name__)
        return Mutant(number, request, ", ".join(done))

    def _valid(self, rng: random.Random) -> tuple[str, dict[str, Any]]:
        task = rng.choice([*self._task_ids, "nope"])
        message = {
            "messageId": new_id("mut"),
            "role": "ROLE_USER",
            "parts": [{"text": "hello", "metadata": {"n": 1}}, {"data": {"a": [1, {"b": None}]}}],
            "metadata": {"k": {"deep": [1.5, "x"]}},
            "contextId": new_id("ctx"),
        }
        send = {"message": message, "configuration": {"historyLength": 1}, "metadata": {"r": 1}}
        return rng.choice(
            [
                ("SendMessage", send),
                ("SendMessage", send),
                ("SendMessage", send),
                ("SendStreamingMessage", send),
                ("GetTask", {"id": task, "historyLength": 1}),
                ("ListTasks", {"contextId": "none", "pageSize": 2, "status": "TASK_STATE_COMPLETED"}),
                ("CancelTask", {"id": task, "metadata": {"a": 1}}),
                ("SubscribeToTask", {"id": task}),
                ("GetExtendedAgentCard", {}),
                ("ListTaskPushNotificationConfigs", {"taskId": task}),
            ]
        )

    def _text(self, rng: random.Random, caller: Caller, operation: str, params: Any) -> Any:
        """Parameters as JSON text where the binding has a body for them, otherwise as they are."""
        if caller.binding == "jsonrpc" or operation.startswith("Send"):
            text = json.dumps(params, ensure_ascii=rng.random() < 0.3)
            if rng.random() < 0.2:
                text = give_twice(rng, text)
            return text.encode()
        kept = params if isinstance(params, dict) else {}
        return (
            {"id": "nope", "taskId": "nope"} | kept
            if "Task" in operation and operation != "ListTasks"
            else kept
        )


def flip_anywhere(number: int, text: bytes) -> bytes:
    """A request as bytes with some of them changed, head and body alike."""
    rng = random.Random(f"{SEED}:raw:{number}")
    made = bytearray(text)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)
