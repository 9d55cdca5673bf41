"""What the markers of pyproject.toml mean. Fixtures live beside the tests that use them."""

import os
import shutil

import pytest

from tests.harness.paths import CHECKOUT, ENGINE_VARIABLE, STORE_VARIABLE

ALONE = (CHECKOUT / "tests" / "durability", CHECKOUT / "tests" / "bench")
LEFT_OUT = {"postgres": ("sqlite", "own_store"), "temporal": ("embedded", "own_store")}
"""Which tests there are not with a store or an engine."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--soak`, `--store` and `--engine`."""
    parser.addoption(
        "--soak", action="store_true", help="also run the tests marked soak (long loads, repetitions)"
    )
    parser.addoption(
        "--store",
        choices=["sqlite", "postgres"],
        default="sqlite",
        help="what store servers have; with postgres, leaves out the tests marked sqlite",
    )
    parser.addoption(
        "--engine",
        choices=["embedded", "temporal"],
        default="embedded",
        help="what executes runs; with temporal, leaves out the tests marked embedded",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Tell the harness what store and what engine servers have."""
    os.environ[STORE_VARIABLE] = config.getoption("--store")
    os.environ[ENGINE_VARIABLE] = config.getoption("--engine")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what has to run alone, and leave out what was not asked for."""
    for item in items:
        if any(map(item.path.is_relative_to, ALONE)):
            item.add_marker("alone")
    if not config.getoption("--soak"):
        _leave_out(config, items, "soak")
    for option in ("--store", "--engine"):
        for marker in LEFT_OUT.get(config.getoption(option), ()):
            _leave_out(config, items, marker)


def _leave_out(config: pytest.Config, items: list[pytest.Item], marker: str) -> None:
    marked = [item for item in items if item.get_closest_marker(marker)]
    if marked:
        config.hook.pytest_deselected(items=marked)
        items[:] = [item for item in items if not item.get_closest_marker(marker)]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose programs are missing; where everything is required (CI), fail it."""
    programs = [program for marker in item.iter_markers("needs") for program in marker.args]
    missing = [program for program in programs if shutil.which(program) is None]
    if not missing:
        return
    reason = f"not on PATH: {', '.join(missing)}"
    if os.environ.get("DRAGOMAN_REQUIRE_ALL") == "1":
        pytest.fail(f"{reason} (DRAGOMAN_REQUIRE_ALL=1)", pytrace=False)
    pytest.skip(reason)
