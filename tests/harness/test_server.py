"""The harness starts, freezes, kills and cleans up a real `dragoman serve`."""

import os
from pathlib import Path

import pytest

from tests.harness.polling import until
from tests.harness.server import ServerDidNotStartError, ServerProcess
from tests.harness.wire import call


def _process_state(pid: int) -> str:
    """The state letter of /proc: T is stopped by a signal."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]


def test_a_started_server_answers_and_is_gone_on_leaving(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        pid = server.pid
        assert call("GET", f"{server.url}/agents/demo/.well-known/agent-card.json").status == 200
        assert server.rss_bytes() > 1024 * 1024
        assert server.thread_count() >= 1
    assert not Path(f"/proc/{pid}").exists()


def test_a_restarted_server_can_keep_its_address(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        address, pid = server.url, server.pid
        server.kill()
        server.restart(keep_port=True)
        assert (server.url, server.pid != pid) == (address, True)


def test_a_frozen_server_stands_still_until_it_is_continued(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        server.stop_process()
        until(lambda: _process_state(server.pid) == "T", what="the server is stopped")
        server.continue_process()
        until(lambda: _process_state(server.pid) in "SR", what="the server runs again")
        assert call("GET", f"{server.url}/agents/demo/.well-known/agent-card.json").status == 200


def test_a_server_that_cannot_start_is_reported_with_what_it_printed(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", agents=[tmp_path / "no_such_agents.py"])
    with pytest.raises(ServerDidNotStartError, match=r"no_such_agents\.py"), server:
        pass


def test_a_child_that_outlives_a_killed_server_does_not_outlive_the_harness(tmp_path: Path) -> None:
    """A stand-in for `dragoman` that starts a sleeper, as a command agent would."""
    package = tmp_path / "source" / "dragoman"
    package.mkdir(parents=True)
    (package / "__main__.py").write_text(
        "import subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "print(f'{child.pid} listening on http://127.0.0.1:1', flush=True)\n"
        "time.sleep(600)\n"
    )
    with ServerProcess(tmp_path / "data", environment={"PYTHONPATH": str(package.parent)}) as server:
        child = int(server.stdout_lines[0].split()[0])
        server.kill()
        os.kill(child, 0)
    until(lambda: not Path(f"/proc/{child}").exists() or _process_state(child) == "Z", what="the child ended")
