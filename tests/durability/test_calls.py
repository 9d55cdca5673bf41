"""`run.call` through crashes: one send for each point of a handler, and never a guess about what came of it."""

import json
from typing import Any

from tests.durability.delegating import SECRET, register
from tests.harness import stores
from tests.harness.polling import until
from tests.harness.rogue import HANG, Rogue, reply, task
from tests.harness.server import ServerProcess
from tests.harness.wire import call


def send(server: ServerProcess, agent: str, text: str, *, wait: bool = True) -> Any:
    body = {
        "message": {"messageId": text.replace(" ", "-"), "role": "ROLE_USER", "parts": [{"text": text}]},
        "configuration": {"returnImmediately": not wait},
    }
    answer = call("POST", f"{server.url}/agents/{agent}/message:send", body, timeout=60)
    assert answer.status == 200, answer
    return answer.json()["task"]


def ended(server: ServerProcess, agent: str, task_id: str) -> Any:
    def look() -> Any:
        found = call("GET", f"{server.url}/agents/{agent}/tasks/{task_id}").json()
        over = found["status"]["state"] in ("TASK_STATE_COMPLETED", "TASK_STATE_FAILED")
        return found if over else None

    return until(look, what="the task has ended", seconds=30)


def text_of(found: Any) -> str:
    return str(found["artifacts"][0]["parts"][0]["text"])


def test_a_handler_calls_and_follows_a_remote_task(delegating: ServerProcess, other: Rogue) -> None:
    delegating.start()
    register(delegating, other)
    states = iter(["SUBMITTED", "WORKING", "WORKING", "COMPLETED"])
    parts = [{"text": "bonjour"}]
    other.script = lambda asked: reply(
        task(asked, f"TASK_STATE_{next(states)}", artifacts=[{"artifactId": "a", "parts": parts}])
    )
    assert text_of(send(delegating, "caller", "0 Hello")) == "completed|bonjour|remote-1|"
    first, *looks = other.got()
    assert [one.method for one in looks] == ["GetTask"] * 3
    asked = first.json()["params"]
    assert asked["configuration"] == {"returnImmediately": True}
    assert asked["message"]["parts"] == [{"text": "Hello"}]
    assert first.headers["authorization"] == f"Bearer {SECRET}"


def test_each_point_of_a_handler_in_a_thread_is_a_call_of_its_own(
    delegating: ServerProcess, other: Rogue
) -> None:
    delegating.start()
    register(delegating, other)
    other.script = lambda asked: reply(
        {
            "jsonrpc": "2.0",
            "id": asked.id,
            "result": {
                "message": {
                    "messageId": asked.json()["params"]["message"]["messageId"],
                    "role": "ROLE_AGENT",
                    "parts": [{"text": "x"}],
                }
            },
        }
    )
    found = send(delegating, "plain", "Hello")
    assert text_of(found) == f"completed|{found['id']}-call-1|{found['id']}-call-2"
    assert len(other.got()) == 2


def test_an_agent_that_is_not_there_is_a_failure_of_the_call_alone(
    delegating: ServerProcess, other: Rogue
) -> None:
    delegating.start()
    assert text_of(send(delegating, "caller", "0 Hello")).startswith("failed|||there is no remote agent")
    register(delegating, other)
    register(delegating, other)
    assert text_of(send(delegating, "caller", "0 Hello again")).startswith(
        "failed|||there is no remote agent"
    )
    assert other.got() == []


def test_a_call_that_a_crash_left_uncertain_is_unknown_to_the_handler(
    delegating: ServerProcess, other: Rogue
) -> None:
    delegating.start()
    register(delegating, other)
    other.script = lambda asked: [HANG]
    found = send(delegating, "caller", "0 Hello", wait=False)
    other.wait(1)
    delegating.kill()
    other.script = lambda asked: reply(task(asked))
    delegating.start()
    told = ended(delegating, "caller", found["id"])
    assert text_of(told).startswith("unknown|||the server stopped")
    assert len(other.got()) == 1, "and it is not repeated"


def test_a_call_whose_task_is_known_is_reconciled_after_a_crash(
    delegating: ServerProcess, other: Rogue
) -> None:
    delegating.start()
    register(delegating, other)
    other.script = lambda asked: reply(task(asked, "TASK_STATE_WORKING"))
    found = send(delegating, "caller", "0 Hello", wait=False)
    other.wait(3)
    delegating.kill()
    artifacts = [{"artifactId": "a", "parts": [{"text": "done meanwhile"}]}]
    other.script = lambda asked: reply(task(asked, artifacts=artifacts))
    delegating.start()
    assert text_of(ended(delegating, "caller", found["id"])) == "completed|done meanwhile|remote-1|"
    assert len(other.got("SendMessage")) == 1


def test_a_call_that_was_answered_is_not_made_again_in_a_later_attempt(
    delegating: ServerProcess, other: Rogue
) -> None:
    delegating.start()
    register(delegating, other)
    other.script = lambda asked: reply(
        task(asked, artifacts=[{"artifactId": "a", "parts": [{"text": "once"}]}])
    )
    found = send(delegating, "caller", "2 Hello", wait=False)

    def is_called() -> bool:
        return bool(stores.query(delegating.data, "SELECT 1 FROM journal WHERE kind = 'call'"))

    until(is_called, what="the call is in the journal")
    delegating.kill()
    other.script = lambda asked: reply(
        task(asked, artifacts=[{"artifactId": "a", "parts": [{"text": "twice"}]}])
    )
    delegating.start()
    assert text_of(ended(delegating, "caller", found["id"])) == "completed|once|remote-1|"
    assert len(other.got()) == 1


def test_a_handler_that_says_something_else_the_second_time_is_ended(
    delegating: ServerProcess, other: Rogue
) -> None:
    delegating.start()
    register(delegating, other)
    other.script = lambda asked: [HANG]
    found = send(delegating, "fickle", "Hello", wait=False)
    other.wait(1)
    delegating.kill()
    other.script = lambda asked: reply(task(asked))
    delegating.start()
    told = ended(delegating, "fickle", found["id"])
    assert told["status"]["state"] == "TASK_STATE_FAILED"
    assert "changed while it was interrupted" in json.dumps(told["status"])
    assert len(other.got()) == 1
