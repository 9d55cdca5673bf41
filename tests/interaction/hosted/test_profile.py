"""The profile as its operator sees it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.paths import SOURCE
from tests.harness.server import ServerDidNotStartError
from tests.interaction.hosted.callers import TOKENS
from tests.interaction.hosted.conftest import AGENTS, HOSTED, TENANTS, prepared
from tests.interaction.hosted.requirements import covers


def checked(folder: Path, config: str) -> subprocess.CompletedProcess[str]:
    """What `dragoman check` says of a configuration."""
    file = folder / "dragoman.toml"
    file.write_text(config, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "dragoman", "check", "--config", str(file)],
        cwd=folder,
        env={"PYTHONPATH": str(SOURCE), **TOKENS},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@covers("profile.store", "profile.off", "profile.workspace")
def test_checking_a_configuration_says_whom_the_profile_serves_and_on_what(tmp_path: Path) -> None:
    on = checked(tmp_path, HOSTED + AGENTS + TENANTS)
    assert on.returncode == 0, on.stderr
    (line,) = [line for line in on.stdout.splitlines() if line.startswith("hosted profile:")]
    assert line == (
        "hosted profile: on, for demo, second, probe, bare, mixed, vault, theirs, plain; "
        "on SQLite and the embedded engine, not on PostgreSQL and Temporal"
    )
    off = checked(tmp_path, AGENTS + TENANTS)
    assert (off.returncode, "hosted profile" in off.stdout) == (0, False)


@covers("profile.off")
@pytest.mark.parametrize(
    ("config", "key"),
    [
        ('[hosted]\nenabled = true\ndeadline = "soon"\n', "hosted.deadline"),
        ('[hosted]\nenabled = true\ndeadline = "0s"\n', "hosted.deadline"),
        ('[hosted]\nenabled = true\nobservers = { window = "x" }\n', "hosted.observers.window"),
        ('[hosted]\nenabled = true\nobservers = { window = "0s" }\n', "hosted.observers.window"),
        ("[hosted]\nenabled = true\nobservers = { principal = 0 }\n", "hosted.observers.principal"),
        ("[hosted]\nenabled = true\nobservers = { global = -1 }\n", "hosted.observers.global"),
    ],
)
def test_what_cannot_work_is_refused_by_its_key(tmp_path: Path, config: str, key: str) -> None:
    said = checked(tmp_path, config + AGENTS + TENANTS)
    assert said.returncode == 2
    assert key in said.stderr, said.stderr


@covers("profile.off", "tenant.nowhere")
def test_a_server_does_not_start_with_a_profile_or_an_agent_that_nobody_can_call(tmp_path: Path) -> None:
    ours = '[agents.demo]\npython = "dragoman.agents.demo:demo"\ntenant = "acme"\n'
    for config, key in ((HOSTED, "hosted.enabled"), (ours, "agents.demo.tenant")):
        server = prepared(tmp_path, config)
        with pytest.raises(ServerDidNotStartError, match=f"dragoman: {key}: there is no tenant"):
            server.start()
        assert not server.data.exists(), "nothing was made"


@covers("profile.off")
def test_a_profile_that_nobody_can_call_is_told_of_because_a_tenant_may_come_later(tmp_path: Path) -> None:
    said = checked(tmp_path, "[hosted]\nenabled = true\n")
    assert said.returncode == 0
    assert said.stderr.startswith(
        "dragoman: hosted.enabled: there is no tenant, so nobody can call hosted agents;"
    )
