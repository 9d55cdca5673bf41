"""Valid requests of 0.3 made wrong in one way or another, each by its own number: see `tests.interaction.mutations`."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.interaction.changes import PARAM_STEPS, REQUEST_STEPS, give_twice
from tests.interaction.messages import new_id
from tests.interaction.mutations import Mutant
from tests.interaction.v0_3.callers import Caller
from tests.interaction.v0_3.messages import data_part, file_part, text_part

SEED = 20_261_130
LONGEST_TARGET = 16_000


class Mutator:
    """Makes mutants of the requests of callers, who have some finished tasks."""

    def __init__(self, callers: Sequence[Caller], task_ids: Sequence[str]) -> None:
        self._callers = callers
        self._task_ids = task_ids

    def make(self, number: int) -> Mutant:
        """The mutant with this number. About one in ten is left as it was."""
        rng = random.Random(f"{SEED}:{number}")
        caller = rng.choice(self._callers)
        operation, params = self._valid(rng, caller)
        params = caller.place.dialect.write(operation, params)
        done = [f"{caller.place.name} {operation}"]
        for _ in range(rng.choice([0, 1, 1, 1, 1, 2, 2, 3, 4, 6])):
            if isinstance(params, dict) and rng.random() < 0.5:
                step: Callable[[random.Random, Any], Any] = rng.choice(PARAM_STEPS)
                params = step(rng, params)
                done.append(step.__name__)
        sent = self._sent(rng, caller, operation, params)
        request = caller.request(operation, sent, as_is=True)
        # HTTP parsers refuse longer targets, and with them whatever else came in the same piece.
        request = request.at(request.target[:LONGEST_TARGET])
        if rng.random() < 0.5:
            change = rng.choice(REQUEST_STEPS)
            request = change(rng, request)
            done.append(change.__name__)
        return Mutant(number, request, ", ".join(done))

    def _valid(self, rng: random.Random, caller: Caller) -> tuple[str, dict[str, Any]]:
        task = rng.choice([*self._task_ids, "nope"])
        message = {
            "kind": "message",
            "messageId": new_id("mut"),
            "role": "user",
            "parts": [
                text_part("hello", metadata={"n": 1}),
                data_part({"a": [1, {"b": None}]}),
                file_part(b"\xff\xfe", name="a", mimeType="a/b"),
            ],
            "metadata": {"k": {"deep": [1.5, "x"]}},
            "contextId": new_id("ctx"),
        }
        configuration = {"historyLength": 1, "blocking": True, "acceptedOutputModes": ["text/plain"]}
        send = {"message": message, "configuration": configuration, "metadata": {"r": 1}}
        choices: list[tuple[str, dict[str, Any]]] = [
            *[("SendMessage", send)] * 3,
            ("SendStreamingMessage", send),
            ("GetTask", {"id": task, "historyLength": 1}),
            ("CancelTask", {"id": task, "metadata": {"a": 1}}),
            ("SubscribeToTask", {"id": task}),
            ("ListTaskPushNotificationConfigs", {"id": task}),
        ]
        if caller.has_kinds and caller.binding == "http":
            choices.append(("ListTasks", {"contextId": "none", "pageSize": 2, "status": "completed"}))
        return rng.choice(choices)

    def _sent(self, rng: random.Random, caller: Caller, operation: str, params: Any) -> Any:
        """Parameters as JSON text where the binding has a body for them, otherwise as they are."""
        if caller.binding == "jsonrpc" or operation.startswith("Send"):
            text = json.dumps(params, ensure_ascii=rng.random() < 0.3)
            if rng.random() < 0.2:
                text = give_twice(rng, text)
            return text.encode()
        kept = params if isinstance(params, dict) else {}
        return kept if operation == "ListTasks" else {"id": "nope"} | kept
