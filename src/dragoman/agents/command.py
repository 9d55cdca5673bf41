"""Agents that are a command: the message on its standard input, its standard output as the answer, and no code."""

import asyncio
import codecs
import logging
import shutil
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

from dragoman.agents.agent import AgentError
from dragoman.agents.child import GRACE, Child
from dragoman.agents.pipe import Pipe
from dragoman.agents.run import Run
from dragoman.agents.spoken import NotText, spoken

_LOG = logging.getLogger("dragoman.command")

PASSED_ON = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "TMPDIR", "TZ")
"""The variables of the server's environment that a command is given, where they are set."""

LONGEST_LINE = 500
"""Characters of a line of standard error that are logged."""

MOST_LINES = 1000
"""Lines of standard error of one run that are logged."""


class _Failure(Exception):
    """The run is to end as FAILED; the message says why, to the caller."""


def find_program(name: str, path: str) -> str:
    """Return the absolute path of a program: a path of its own, or a name that is looked for in the folders of `path`.

    Raises:
        AgentError: it is not there, or may not be executed.
    """
    found = shutil.which(name, path=path)
    if found is not None:
        return str(Path(found).absolute())
    if "/" not in name:
        raise AgentError(f"there is no program {name!r} that may be executed in {path or 'an empty PATH'}")
    place = Path(name).absolute()
    if not place.is_file():
        raise AgentError(f"there is no program {place}")
    raise AgentError(f"{place} may not be executed; allow it with `chmod +x`")


class Command:
    """The handler of an agent that is a command."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], *, max_output: int) -> None:
        """Prepare to run a command for each message.

        Args:
            command: the absolute path of a program, and its arguments.
            environment: the variables that it is given beside those that tell of the run.
            max_output: bytes of output that it may give.
        """
        self._command = tuple(command)
        self._environment = dict(environment)
        self._max_output = max_output
        self._children: set[Child] = set()

    async def answer(self, run: Run) -> AsyncIterator[str]:
        """Run the command for a message, and give what it writes, as it comes."""
        try:
            sent = spoken(run.message.parts).encode()
        except NotText as refusal:
            await run.reject(str(refusal))
            return
        facts = {"task_id": run.task_id, "attempt": run.attempt}
        try:
            child = Child(self._command, self._environment | _told(run))
        except OSError as error:
            _LOG.error("the command cannot be started: %s", error, extra=facts)
            await run.fail("The agent's program could not be started.")
            return
        self._children.add(child)
        failure, pipes = "", _Pipes(child, sent, facts)
        try:
            async with aclosing(self._output(child, pipes)) as output:
                async for text in output:
                    yield text
        except _Failure as error:
            failure = str(error)
        finally:
            try:
                # Its pipes stay open meanwhile: it may have a last word for the log.
                await child.end()
            finally:
                pipes.close()
                self._children.discard(child)
        if failure:
            _LOG.warning("the command failed: %s", failure, extra=facts)
            await run.fail(failure)

    async def shutdown(self) -> None:
        """Kill at once what still runs: the loop is about to end."""
        for child in self._children:
            child.kill()

    async def _output(self, child: Child, pipes: "_Pipes") -> AsyncGenerator[str, None]:
        """Yield what a program writes, until it has ended well.

        Raises:
            _Failure: it has not, or has written too much, or something else than text.
        """
        decoder = codecs.getincrementaldecoder("utf-8")()
        left = self._max_output
        while True:
            piece = await pipes.stdout.read()
            left -= len(piece)
            if left < 0:
                raise _Failure(f"The agent gave more than {self._max_output} bytes.")
            try:
                text = decoder.decode(piece, final=not piece)
            except UnicodeDecodeError:
                raise _Failure("The agent gave something that is not UTF-8 text.") from None
            if text:
                yield text
            if not piece:
                break
        code = await asyncio.shield(child.exited)
        await pipes.logged
        if code:
            raise _Failure(_told_end(code))


class _Pipes:
    """This side of a child's pipes, and what goes on with them beside reading its output.

    Attributes:
        stdout: what it writes; ends when nobody has it open any more, or `GRACE` seconds after the child has ended.
        logged: done when all of its standard error is logged.
    """

    def __init__(self, child: Child, sent: bytes, facts: Mapping[str, object]) -> None:
        """Begin to send, and to log."""
        self.stdout = Pipe(child.stdout)
        self._stdin, self._stderr = Pipe(child.stdin), Pipe(child.stderr)
        self.logged = asyncio.ensure_future(_log_lines(self._stderr, facts))
        self._beside = [
            self.logged,
            asyncio.ensure_future(self._stdin.write(sent)),
            asyncio.ensure_future(self._cut(child)),
        ]

    def close(self) -> None:
        """Close them all."""
        for task in self._beside:
            task.cancel()
        for pipe in (self._stdin, self.stdout, self._stderr):
            pipe.close()

    async def _cut(self, child: Child) -> None:
        await asyncio.wait([child.exited])
        await asyncio.sleep(GRACE)
        for pipe in (self.stdout, self._stderr):
            pipe.close()


def _told(run: Run) -> dict[str, str]:
    """Return the variables that tell a command of its run; one that no environment can hold is left out."""
    told = {
        "DRAGOMAN_TASK_ID": run.task_id,
        "DRAGOMAN_RUN_ID": run.id,
        "DRAGOMAN_CONTEXT_ID": run.context_id,
        "DRAGOMAN_ATTEMPT": str(run.attempt),
    }
    return {name: value for name, value in told.items() if "\0" not in value}


def _told_end(code: int) -> str:
    if code > 0:
        return f"The agent's program ended with exit code {code}."
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"The agent's program was ended by {name}."


async def _log_lines(errors: Pipe, facts: Mapping[str, object]) -> None:
    """Log what a program says on standard error, line by line, and read on when that is enough."""
    lines, line, cut = 0, bytearray(), 4 * LONGEST_LINE
    while piece := await errors.read():
        *ended, rest = piece.split(b"\n")
        for one in ended:
            line += one[: cut - len(line)]
            lines = _log_line(bytes(line), lines, facts)
            line.clear()
        line += rest[: cut - len(line)]
    _log_line(bytes(line), lines, facts)


def _log_line(line: bytes, lines: int, facts: Mapping[str, object]) -> int:
    """Log one line unless there were enough; return how many there were."""
    text = line.decode(errors="replace").strip()
    if not text:
        return lines
    if lines < MOST_LINES:
        _LOG.info("stderr: %s", text[:LONGEST_LINE], extra=facts)
    elif lines == MOST_LINES:
        _LOG.warning("stderr: further lines of this run are not logged", extra=facts)
    return lines + 1
