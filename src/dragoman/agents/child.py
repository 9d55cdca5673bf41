"""A program in a process group of its own, which is killed whole, and which does not outlive this process.

The leader of the group is a keeper: a shell that does nothing but wait for the end of a pipe whose other end this
process holds. When this process dies, however it dies, the pipe ends, and the keeper kills its group, itself included.
The keeper is there before the program is, and the program cannot run outside of the group, so no moment is left in
which a death would go unnoticed. As long as the keeper is not waited for, nobody else can get the group's number.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO

GRACE = 5.0
"""Seconds that a program has to end when it is asked to, and that others may keep its output open after its end."""

_KEEPER = ("/bin/sh", "-c", "trap '' HUP INT TERM; echo; read -r _; kill -KILL 0")


class Child:
    """A program that was started, in a group of its own. Used on the loop that started it.

    Attributes:
        stdin, stdout, stderr: this side of its pipes; who uses them closes them.
        exited: done with its exit code when it has ended, or with a signal's number below 0.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a program: its path and its arguments, no shell, and no variables but those of `environment`.

        Raises:
            OSError: it cannot be started.
        """
        self._keeper = subprocess.Popen(  # noqa: S603 - its words are constant
            _KEEPER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            process_group=0,
        )
        try:
            self._await_keeper()
            self._process = subprocess.Popen(  # noqa: S603 - the operator's words alone, and no shell reads them
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                process_group=self._keeper.pid,
            )
        except BaseException:
            self._dismiss()
            raise
        self.stdin, self.stdout, self.stderr = _pipes(self._process)
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = loop.run_in_executor(None, self._process.wait)

    def _await_keeper(self) -> None:
        """Wait, for about a millisecond, until the keeper is deaf to what its group will be sent."""
        if self._keeper.stdout is None:
            raise AssertionError("it is a pipe")
        with self._keeper.stdout as told:
            if not told.read(1):
                raise OSError("the keeper of its process group did not start")

    async def end(self) -> None:
        """End what is left: ask the group with SIGTERM, and kill it once the program has ended, or after `GRACE`.

        If this is cancelled, the group is killed at once.
        """
        try:
            if not self.exited.done():
                self._signal(signal.SIGTERM)
                await asyncio.wait([self.exited], timeout=GRACE)
        finally:
            self.kill()
            self._dismiss()
        await asyncio.wait([self.exited])

    def kill(self) -> None:
        """Kill the program and its group at once."""
        self._signal(signal.SIGKILL)
        # It may have left its group.
        self._process.kill()

    def _signal(self, number: int) -> None:
        if self._keeper.returncode is None:
            # There may be nobody but those who have ended, or who became somebody else.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._keeper.pid, number)

    def _dismiss(self) -> None:
        """Kill the group, the keeper too, and let go of its number."""
        if self._keeper.returncode is None:
            # Leaving it waits for its end, and closes the pipe that it waited at.
            with self._keeper:
                self._signal(signal.SIGKILL)


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise AssertionError("all three are pipes")
    return process.stdin, process.stdout, process.stderr
