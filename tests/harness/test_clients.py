"""Client environments say clearly what went wrong, and drivers leave nothing running."""

from pathlib import Path

import pytest

from tests.harness import clients
from tests.harness.clients import ClientEnvironment, ClientEnvironmentError, DriverError

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

MADE = ClientEnvironment("a2a-spec-0.6.0")


def _script(folder: Path, source: str) -> Path:
    script = folder / "driver.py"
    script.write_text(source, encoding="utf-8")
    return script


def test_a_driver_sees_the_packages_of_its_client_and_none_of_ours(tmp_path: Path) -> None:
    source = (
        "import importlib.util as found, json\n"
        "print('noise')\n"
        "print(json.dumps([bool(found.find_spec(name)) for name in ('a2a_spec', 'dragoman', 'pytest')]))\n"
    )
    assert MADE.run_driver(_script(tmp_path, source)) == [True, False, False]


def test_a_driver_that_fails_is_reported_with_its_exit_code_and_stderr(tmp_path: Path) -> None:
    with pytest.raises(DriverError, match=r"exit code 3(.|\n)*out of words"):
        MADE.run_driver(_script(tmp_path, "import sys; print('out of words', file=sys.stderr); sys.exit(3)"))


def test_a_driver_that_prints_no_json_last_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DriverError, match="no JSON on the last line"):
        MADE.run_driver(_script(tmp_path, "print('{}'); print('done')"))


def test_a_driver_that_does_not_end_is_killed_and_reported(tmp_path: Path) -> None:
    with pytest.raises(DriverError, match=r"no end within 0\.5 s"):
        MADE.run_driver(_script(tmp_path, "import time; time.sleep(600)"), timeout=0.5)


def test_a_client_without_a_lock_is_an_error_and_no_skip() -> None:
    with pytest.raises(ClientEnvironmentError, match=r"no-such-client: no requirements\.lock"):
        ClientEnvironment("no-such-client").prepare()


def test_a_client_whose_packages_cannot_be_installed_names_the_step_and_leaves_no_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "CLIENT_SPECS", tmp_path / "specs")
    monkeypatch.setattr(clients, "CLIENT_CACHE", tmp_path / "cache")
    broken = ClientEnvironment("broken")
    broken.spec.mkdir(parents=True)
    (broken.spec / "requirements.lock").write_text("this is no requirement\n")
    for _ in range(2):
        with pytest.raises(
            ClientEnvironmentError, match="client broken: could not install the locked packages"
        ):
            broken.prepare()
    assert not (broken.root / "made-from").exists()


def test_a_made_environment_is_kept_until_its_lock_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "CLIENT_SPECS", tmp_path / "specs")
    monkeypatch.setattr(clients, "CLIENT_CACHE", tmp_path / "cache")
    empty = ClientEnvironment("empty")
    empty.spec.mkdir(parents=True)
    lock = empty.spec / "requirements.lock"
    lock.write_text("# nothing\n")
    empty.prepare()
    marker = empty.root / "marker"
    marker.touch()
    empty.prepare()
    assert marker.exists()
    lock.write_text("# nothing else\n")
    empty.prepare()
    assert not marker.exists()
