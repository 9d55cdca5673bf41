"""An agent that is a command: real programs, on the kind of loop that agents have."""

import asyncio
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import uvloop
from msgspec.structs import replace

from dragoman.agents import Agent, AgentError, child
from dragoman.agents.command import LONGEST_LINE, MOST_LINES, Command, find_program
from dragoman.gateway.execute import execute
from dragoman.model import DataPart, Part, RawPart, TextPart, UrlPart
from dragoman.model.payload import pack
from tests.harness.polling import until
from tests.unit.agents.acted import brief
from tests.unit.gateway.attempt import Attempt, begun
from tests.unit.gateway.scripted import message


def program(code: str) -> list[str]:
    """A program in Python."""
    return [sys.executable, "-c", code]


def shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


class Running:
    """A command in an attempt of a run."""

    def __init__(self, command: Sequence[str], *, max_output: int = 1000, **environment: str) -> None:
        self.command = Command(command, environment, max_output=max_output)
        self.agent = Agent(id="agent")
        self.agent.handler(self.command.answer)

    async def run(self, text: str = "hello", *parts: Part, context_id: str = "c") -> list[str]:
        attempt = await begun("task", message("", TextPart(text=text), *parts))
        attempt = Attempt(attempt.store, replace(attempt.ref, context_id=context_id), attempt.settings)
        await execute(attempt.execution, self.agent.run)
        return [brief(change) for change in attempt.done]

    async def begin(self) -> tuple[asyncio.Task[None], Attempt]:
        attempt = await begun()
        return asyncio.ensure_future(execute(attempt.execution, self.agent.run)), attempt


def on_loop(scenario: Callable[[], Awaitable[Any]]) -> Any:
    """Run a scenario on a loop as an agent has it; it has 30 seconds."""

    async def bounded() -> Any:
        async with asyncio.timeout(30):
            return await scenario()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(bounded())


def done(command: Sequence[str], text: str = "hello", *parts: Part, **settings: Any) -> list[str]:
    context_id = settings.pop("context_id", "c")
    return on_loop(lambda: Running(command, **settings).run(text, *parts, context_id=context_id))


def whole(acts: Sequence[str]) -> str:
    """The text of the artifact that acts streamed, once they have ended well."""
    assert acts[-1] == "COMPLETED"
    return "".join(act.partition(" ")[2].removesuffix(" last") for act in acts if act[:4] in ("arti", "more"))


def shown(acts: Sequence[str]) -> list[str]:
    """Acts without what depends on how fast they came: WORKING before the first, the mark of the last."""
    return [act.removesuffix(" last") for act in acts if act != "WORKING"]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ("Z", "X")


def number(file: Path) -> int:
    """The number that a program wrote into a file, once it has."""
    return int(until(lambda: file.exists() and file.read_text().strip(), what=f"a number in {file}"))


async def wrote(file: Path) -> int:
    return await asyncio.to_thread(number, file)


def test_the_text_goes_in_and_what_is_written_comes_out() -> None:
    assert shown(done(["/bin/cat"], "hello\nworld")) == ["artifact hello\nworld", "COMPLETED"]


def test_a_command_that_writes_nothing_has_completed_without_an_artifact() -> None:
    assert done(["/bin/true"]) == ["COMPLETED"]


def test_no_shell_reads_the_words_of_a_command() -> None:
    assert whole(done([*program("import sys; print(sys.argv[1:])"), "$HOME", "a b", "; id"])) == (
        "['$HOME', 'a b', '; id']\n"
    )


def test_what_is_written_comes_as_it_is_written(tmp_path: Path) -> None:
    async def scenario() -> list[str]:
        gate = tmp_path / "gate"
        running = Running(shell(f"echo one; while [ ! -e {gate} ]; do sleep 0.02; done; printf two"))
        task, attempt = await running.begin()
        while len(attempt.done) < 2:
            await asyncio.sleep(0.01)
        early = [brief(change) for change in attempt.done]
        gate.touch()
        await task
        return [*early, "|", *(brief(change) for change in attempt.done)]

    came = shown(on_loop(scenario))
    assert came == ["artifact one\n", "|", "artifact one\n", "more two", "COMPLETED"]


def test_much_goes_through_both_ways_at_once() -> None:
    text = "0123456789abcdé" * 100_000
    assert whole(done(["/bin/cat"], text, max_output=2_000_000)) == text


def test_a_command_that_does_not_read_is_fine() -> None:
    assert whole(done(shell("exec <&-; echo done"), "x" * 3_000_000)) == "done\n"


def test_characters_that_are_written_byte_by_byte_are_whole() -> None:
    code = "import os, time\nfor byte in 'é€😀'.encode(): os.write(1, bytes([byte])); time.sleep(0.01)"
    assert whole(done(program(code))) == "é€😀"


@pytest.mark.parametrize("octets", [r"ok\377", r"ok\303", r"ok\355\240\200"])
def test_what_is_not_utf_8_ends_the_run_as_failed(octets: str) -> None:
    acts = done(shell(f"printf '{octets}'"))
    assert acts[-1] == "FAILED The agent gave something that is not UTF-8 text."
    assert not [act for act in acts if act.endswith("last")]


def test_more_output_than_is_allowed_ends_the_run_as_failed() -> None:
    assert whole(done(shell("printf 12345"), max_output=5)) == "12345"
    acts = done(["/usr/bin/yes"], max_output=100_000)
    assert acts[-1] == "FAILED The agent gave more than 100000 bytes."
    assert sum(len(act) for act in acts) < 110_000


@pytest.mark.parametrize(
    ("script", "end"),
    [
        ("echo half; exit 3", "FAILED The agent's program ended with exit code 3."),
        ("kill -KILL $$", "FAILED The agent's program was ended by SIGKILL."),
        ("kill -ABRT $$", "FAILED The agent's program was ended by SIGABRT."),
    ],
)
def test_another_end_than_0_is_failed_and_says_nothing_of_the_inside(script: str, end: str) -> None:
    acts = done(shell(f"echo secret >&2; {script}"))
    assert acts[-1] == end
    assert "secret" not in str(acts)
    assert not [act for act in acts if act.endswith("last")]


def test_data_and_text_files_are_text_and_other_files_are_refused() -> None:
    data, file = DataPart(data=pack({"n": 2**70, "ü": [1.50]})), RawPart(raw="ß\n".encode(), filename="a.csv")
    assert (
        whole(done(["/bin/cat"], "text", data, file)) == 'text\n{"n":1180591620717411303424,"ü":[1.5]}\nß\n'
    )
    refusal = "REJECTED message.parts[1]: this agent takes text, data, and files that hold UTF-8 text."
    for raw in (b"\x89PNG", b"a\0b"):
        assert done(["/bin/cat"], "text", RawPart(raw=raw)) == [refusal]
    assert done(["/bin/cat"], "", UrlPart(url="https://a.example/x.txt")) == [
        "REJECTED message.parts[1]: this agent fetches nothing; send the file itself, as text."
    ]


def test_a_command_has_the_variables_that_it_was_given_and_those_that_tell_of_its_run() -> None:
    came = whole(done(["/usr/bin/env"], LANG="C.UTF-8", context_id="our chat"))
    told = dict(line.split("=", 1) for line in came.splitlines())
    assert told.pop("DRAGOMAN_TASK_ID") == told.pop("DRAGOMAN_RUN_ID") != ""
    assert told == {"LANG": "C.UTF-8", "DRAGOMAN_CONTEXT_ID": "our chat", "DRAGOMAN_ATTEMPT": "1"}


def test_a_context_that_no_variable_can_hold_is_left_out() -> None:
    assert "CONTEXT" not in whole(done(["/usr/bin/env"], context_id="a\0b"))


def test_a_program_that_is_gone_ends_the_run_as_failed(tmp_path: Path) -> None:
    assert done([str(tmp_path / "gone")]) == ["FAILED The agent's program could not be started."]


def test_standard_error_is_logged_by_the_line_with_its_task(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dragoman.command")
    code = "import sys; sys.stderr.write('one\\n\\n' + 'x' * 9999 + '\\n' + 'last'); print('out')"
    assert whole(done(program(code))) == "out\n"
    lines = [(record.getMessage(), vars(record)["attempt"]) for record in caplog.records]
    assert lines == [("stderr: one", 1), (f"stderr: {'x' * LONGEST_LINE}", 1), ("stderr: last", 1)]
    assert len({vars(record)["task_id"] for record in caplog.records}) == 1


def test_a_flood_on_standard_error_is_read_but_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dragoman.command")
    assert whole(done(shell("yes | head -c 1000000 >&2; echo out"))) == "out\n"
    assert len(caplog.records) == MOST_LINES + 1
    assert "not logged" in caplog.records[-1].getMessage()


def test_a_cancelled_command_is_asked_to_end_and_its_whole_group_is_gone(tmp_path: Path) -> None:
    async def scenario() -> None:
        script = f"trap 'echo asked >{tmp_path}/asked; exit' TERM; sleep 60 & echo $! >{tmp_path}/inner; wait"
        task, attempt = await Running(shell(script)).begin()
        inner = await wrote(tmp_path / "inner")
        attempt.execution.stop()
        task.cancel()
        await asyncio.wait([task])
        assert (tmp_path / "asked").read_text() == "asked\n"
        await asyncio.to_thread(until, lambda: not is_alive(inner), what="the inner process is gone")

    on_loop(scenario)


def test_a_command_that_does_not_listen_is_killed_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "GRACE", 0.3)

    async def scenario() -> None:
        script = f"trap '' TERM; sleep 60 & echo $! >{tmp_path}/inner; echo $$ >{tmp_path}/outer; wait"
        task, attempt = await Running(shell(script)).begin()
        pids = [await wrote(tmp_path / name) for name in ("inner", "outer")]
        attempt.execution.stop()
        began = time.monotonic()
        task.cancel()
        await asyncio.wait([task])
        assert 0.3 <= time.monotonic() - began < 3
        for pid in pids:
            await asyncio.to_thread(until, lambda pid=pid: not is_alive(pid), what=f"{pid} is gone")

    on_loop(scenario)


def test_a_second_cancel_kills_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        script = f"trap 'echo asked >{tmp_path}/asked' TERM; echo $$ >{tmp_path}/outer; while :; do sleep 0.1; done"
        task, attempt = await Running(shell(script)).begin()
        outer = await wrote(tmp_path / "outer")
        attempt.execution.stop()
        task.cancel()
        while not (tmp_path / "asked").exists():
            await asyncio.sleep(0.01)
        began = time.monotonic()
        task.cancel()
        await asyncio.wait([task])
        await asyncio.to_thread(until, lambda: not is_alive(outer), what="the program is gone")
        assert time.monotonic() - began < 3

    on_loop(scenario)


def test_shutting_down_kills_what_runs(tmp_path: Path) -> None:
    async def scenario() -> None:
        running = Running(shell(f"trap '' TERM; echo $$ >{tmp_path}/outer; while :; do sleep 1; done"))
        task, attempt = await running.begin()
        outer = await wrote(tmp_path / "outer")
        attempt.execution.stop()
        task.cancel()
        await running.command.shutdown()
        await asyncio.wait([task])
        assert not is_alive(outer)

    on_loop(scenario)


def test_one_that_left_something_behind_has_ended_with_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.agents.command.GRACE", 0.3)
    script = f"sleep 60 & echo $! >{tmp_path}/inner; echo out"
    assert whole(done(shell(script))) == "out\n"
    inner = number(tmp_path / "inner")
    until(lambda: not is_alive(inner), what="what was left behind is gone")


def test_what_a_background_process_still_writes_is_waited_for() -> None:
    assert whole(done(shell("(sleep 0.3; echo late) & echo early"))) == "early\nlate\n"


def test_nothing_is_left_open_or_unwaited_for() -> None:
    def mine() -> tuple[set[str], list[str]]:
        fds = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_open(fd)}
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        return {fd for fd in fds if fd.startswith("pipe:")}, children

    async def scenario() -> None:
        await Running(["/bin/cat"]).run()
        before = mine()
        for command in (["/bin/cat"], ["/bin/false"], ["/no/such/program"], shell("printf '\\377'")):
            await Running(command).run()
        assert mine() == before

    on_loop(scenario)


def _is_open(fd: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


def test_a_program_is_found_by_path_or_name_and_refused_with_the_place_that_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    for name, refusal in (("./tool", f"{tool} may not be executed; allow it with `chmod +x`"),):
        with pytest.raises(AgentError) as caught:
            find_program(name, str(tmp_path))
        assert str(caught.value) == refusal
    with pytest.raises(AgentError, match=f"there is no program 'tool' that may be executed in {tmp_path}"):
        find_program("tool", str(tmp_path))
    tool.chmod(0o755)
    assert find_program("./tool", "") == find_program("tool", str(tmp_path)) == str(tool)
    with pytest.raises(AgentError, match=f"there is no program {tmp_path}/none"):
        find_program("./none", "")
