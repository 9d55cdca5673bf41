"""`exact`: what a server makes of a message that is sent twice, and what it holds after a sudden end.

The message is sent again with the same `messageId` once its task is completed, as a
client does that never saw the reply. Then the process is killed (SIGKILL), started
again on the same files, and asked for the task.
"""

import signal
import time

from bench.processes import Running, scratch_folder, start
from bench.replies import WrongReply
from bench.results import Sample
from bench.servers import Server
from bench.session import Session
from bench.wire import Binding, Operation, with_fresh_id

_SETTLED = 10.0  # seconds for a task to be completed
_POLL = 0.01


def exact(session: Session) -> list[Sample]:
    """Ask every server, round by round."""
    return session.measure("exact", session.servers(Operation.IMMEDIATE), _ask)


def _ask(server: Server, number: int) -> Sample:
    with scratch_folder() as folder:
        served = start(server, folder)
        try:
            message = with_fresh_id(served.wire(Binding.JSONRPC).send(Operation.IMMEDIATE))
            first = _completed(served, message)
            second = _completed(served, message)
            served.stop(signal.SIGKILL)
            served = start(server, folder)
            held = _holds(served, first)
        finally:
            served.stop()
    metrics = {"runs_of_two": float(len({first, second})), "held_after_kill": float(held)}
    return Sample("exact", server.name, number, metrics)


def _completed(served: Running, message: bytes) -> str:
    """The id of the completed task that `message` leads to."""
    caller = served.caller()
    task_id = str(caller.call(message, Operation.IMMEDIATE).at("task", "id"))
    deadline = time.monotonic() + _SETTLED
    task = served.wire(Binding.JSONRPC).get(task_id)
    while caller.ask(task).fault(Operation.GET) is not None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"task {task_id} is not completed after {_SETTLED:.0f} s")
        time.sleep(_POLL)
    caller.close()
    return task_id


def _holds(served: Running, task_id: str) -> bool:
    """Whether the server knows the completed task.

    Raises:
        WrongReply: if it neither shows the task nor says that there is none.
    """
    caller = served.caller()
    reply = caller.ask(served.wire(Binding.JSONRPC).get(task_id))
    caller.close()
    if reply.fault(Operation.GET) is None:
        return True
    if b"-32001" not in reply.body:
        raise WrongReply(f"after the restart: HTTP {reply.status}: {reply.body[:300]!r}")
    return False
