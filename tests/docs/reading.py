"""One reader, who does all that a document says, in order, in a folder of their own."""

import json
import re
import time
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from dragoman.config import read_config
from dragoman.tables import ConfigError
from tests.docs import commands
from tests.docs.comparing import Bindings, Mismatch, compare_json, compare_stream, compare_text, read_stream
from tests.docs.shell import Shell, syntax_error
from tests.docs.snippets import Snippet, SnippetError, shown
from tests.harness.paths import CHECKOUT
from tests.harness.polling import until
from tests.harness.server import ServerDidNotStartError, ServerProcess

ADDRESS = "127.0.0.1:8080"
"""Where the documents say that the server is; commands and outputs are turned to where it really is."""

LOG_SECONDS = 0.2
"""Log lines are gathered for a moment; a command that reads the log waits so long first."""

_DATA = ".dragoman-a2a"
_GREETED = """'{"message":"""
"""How the last line of a server's greeting begins."""

_CALLED = re.compile(r'"operation":"Send(?:Streaming)?Message","agent":"([^":]+)')
_SERVED = re.compile(r"/agents/([^/\s]+)/\.well-known")


class Reading:
    """A document being followed. Use it as a context manager: on leaving, its server is gone."""

    def __init__(self, document: Path, folder: Path) -> None:
        """Prepare a reading.

        Args:
            document: the Markdown file.
            folder: an empty folder, for its files and its server's data.
        """
        self.document = document
        self.bindings = Bindings()
        self.output = ""
        self._folder = folder
        self._shell = Shell(folder, ADDRESS)
        self._server: ServerProcess | None = None
        self._listen = ""
        self._unused: dict[str, Snippet] = {}
        self._served: set[str] = set()
        self._acts: Mapping[tuple[str, str], Callable[[Snippet], None]] = {
            ("sh", "serve"): self._serve,
            ("sh", "kill"): self._kill,
            ("sh", "run"): self._run,
            ("sh", "syntax"): self._check_syntax,
            ("python", "agent"): self._write_agent,
            ("python", "sdk"): self._run_sdk,
            ("python", "sdk-0.3"): self._run_sdk,
            ("python", "signature"): self._compile,
            ("toml", "config"): self._check_config,
            ("json", "file"): self._write_json,
            ("json", "example"): self._parse_json,
            ("json", "output"): self._compare_json,
            ("text", "file"): self._write,
            ("text", "output"): self._compare_text,
            ("text", "stream"): self._compare_stream,
            ("text", "help"): self._compare_help,
            ("text", "diagram"): self._look_at,
            ("text", "example"): self._look_at,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()

    def follow(self, snippet: Snippet) -> None:
        """Do what a snippet says, or hold it against what came.

        Raises:
            SnippetError: it does not work, or something else came.
        """
        for name in [name for name in self._unused if name in snippet.text]:
            del self._unused[name]
        try:
            self._acts[snippet.language, snippet.kind](snippet)
        except Mismatch as error:
            raise snippet.wrong(f"{error}\n--- came\n{self.output}\n--- shown") from None

    def end(self) -> None:
        """Check what only the end can tell: every file was used, and every agent that was served was called.

        Raises:
            SnippetError: one was not.
        """
        for name, snippet in self._unused.items():
            raise snippet.wrong(f"nothing after it in the document uses {name}")
        if self._served and self._server is not None:
            time.sleep(LOG_SECONDS)
            # A hosted agent is the agent itself, served in another way.
            log = self._server.log_file.read_text(encoding="utf-8")
            called = {agent.partition(":")[0] for agent in _CALLED.findall(log)}
            missing = sorted(self._served - called)
            if missing:
                raise SnippetError(
                    f"{shown(self.document)}: serves the agent {missing[0]} and never calls it"
                )

    def _serve(self, snippet: Snippet) -> None:
        wanted = commands.serve_command(snippet)
        listen = self._listen or "127.0.0.1:0"
        if self._server is not None:
            self._server.close() if self._server_ended() else self._server.terminate()
        data = self._folder / (wanted.data or _DATA)
        server = self._server = ServerProcess(
            data,
            agents=wanted.agents,
            config=self._folder / wanted.config if wanted.config else None,
            environment=dict(wanted.environment),
            arguments=wanted.switches,
        )
        server.log_file = self._folder / (wanted.log or ".log")
        try:
            server.start(listen=listen)
        except ServerDidNotStartError as error:
            raise snippet.wrong(f"the server did not start: {error}") from None
        self._listen = server.url.removeprefix("http://")
        self._shell.point_at(self._listen)
        until(
            lambda: _GREETED in "".join(server.stdout_lines), what="the server has said all of its greeting"
        )
        self.output = self._as_shown("".join(server.stdout_lines))
        if wanted.agents or wanted.config or (self._folder / "dragoman.toml").exists():
            self._served |= set(_SERVED.findall(self.output))

    def _server_ended(self) -> bool:
        try:
            return self._server is None or not self._server.pid
        except RuntimeError:
            return True

    def _kill(self, snippet: Snippet) -> None:
        if self._server is None or "kill" not in snippet.text:
            raise snippet.wrong("no server runs that could be killed, or nothing here kills it")
        self._server.kill()

    def _run(self, snippet: Snippet) -> None:
        if self._server is not None and self._server.log_file.name in snippet.text:
            time.sleep(LOG_SECONDS)
        self._expect(snippet, int(snippet.options.get("exit", "0")), self._shell.bash)

    def _run_sdk(self, snippet: Snippet) -> None:
        self._compile(snippet)
        name = snippet.value or ".sdk.py"

        def run(text: str) -> tuple[int, str]:
            (self._folder / name).write_text(text, encoding="utf-8")
            return self._shell.python(name, older=snippet.kind == "sdk-0.3")

        self._expect(snippet, 0, run)

    def _expect(self, snippet: Snippet, code: int, run: Callable[[str], tuple[int, str]]) -> None:
        try:
            came, output = run(self._as_actual(snippet.text))
        except TimeoutError as error:
            raise snippet.wrong(str(error)) from None
        self.output = self._as_shown(output)
        if came != code:
            raise snippet.wrong(f"exit code {came}, not {code}\n--- came\n{self.output}\n--- said")

    def _check_syntax(self, snippet: Snippet) -> None:
        if error := syntax_error(snippet.text):
            raise snippet.wrong(error)

    def _write(self, snippet: Snippet) -> None:
        (self._folder / snippet.value).write_text(self._as_actual(snippet.text), encoding="utf-8")
        self._unused[snippet.value] = snippet

    def _write_agent(self, snippet: Snippet) -> None:
        self._compile(snippet)
        self._write(snippet)
        if "example" in snippet.options:
            example = CHECKOUT / "examples" / snippet.value
            if example.read_text(encoding="utf-8") != snippet.text:
                raise snippet.wrong(f"is not what {shown(example)} holds")

    def _write_json(self, snippet: Snippet) -> None:
        self._parse_json(snippet)
        self._write(snippet)

    def _check_config(self, snippet: Snippet) -> None:
        try:
            read_config(tomllib.loads(snippet.text), {}, snippet.value or "the snippet")
            refusal = ""
        except (ConfigError, tomllib.TOMLDecodeError) as error:
            refusal = str(error)
        if bool(refusal) != ("refused" in snippet.options):
            raise snippet.wrong(refusal or "is not refused")
        if snippet.value:
            self._write(snippet)
            if snippet.value == "dragoman.toml":
                del self._unused[snippet.value]  # it is read without being named

    def _compile(self, snippet: Snippet) -> None:
        try:
            compile(snippet.text, snippet.place, "exec")
        except SyntaxError as error:
            raise snippet.wrong(f"line {error.lineno}: {error.msg}") from None

    def _parse_json(self, snippet: Snippet) -> None:
        try:
            json.loads(snippet.text)
        except ValueError as error:
            raise snippet.wrong(f"is not JSON: {error}") from None

    def _compare_text(self, snippet: Snippet) -> None:
        compare_text(snippet.text, self.output, self.bindings)

    def _compare_json(self, snippet: Snippet) -> None:
        self._parse_json(snippet)
        try:
            came = json.loads(self.output)
        except ValueError:
            raise Mismatch("what came is not JSON") from None
        compare_json(json.loads(snippet.text), came, self.bindings)

    def _compare_stream(self, snippet: Snippet) -> None:
        try:
            expected, came = list(read_stream(snippet.text)), list(read_stream(self.output))
        except ValueError as error:
            raise Mismatch(f"is no event stream: {error}") from None
        compare_stream(expected, came, self.bindings)

    def _compare_help(self, snippet: Snippet) -> None:
        if commands.help_text(snippet.value) != snippet.text:
            raise snippet.wrong("is stale: run `python -m tests.docs.generate`")

    def _look_at(self, snippet: Snippet) -> None:
        if max(map(len, snippet.text.splitlines()), default=0) > 110:
            raise snippet.wrong("is wider than 110 characters")

    def _as_actual(self, text: str) -> str:
        text = self.bindings.to_actual(text)
        return text.replace(ADDRESS, self._listen) if self._listen else text

    def _as_shown(self, text: str) -> str:
        if self._listen:
            text = text.replace(self._listen, ADDRESS)
        return text.replace(f"{self._folder}/", "")
