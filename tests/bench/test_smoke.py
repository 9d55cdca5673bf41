"""The benchmark itself, short: it runs, no reply is an error, and nothing has become several times slower.

The real bounds stand in `bench/bounds.py` and are held by `./dev bench --gate`, on a quiet machine and with more
rounds. These here are half as strict, because tests share their machine.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

LEAST_RATE = 3.0
MOST_CPU = 0.25


def measured(scenario: str, report: Path) -> dict[str, Any]:
    """Measure one round against the official SDK and return the report."""
    command = [
        sys.executable,
        "-m",
        "bench",
        scenario,
        "--rounds",
        "1",
        "--seconds",
        "2",
        "--peers",
        "a2a-sdk",
    ]
    environment = os.environ | {"PYTHONPATH": f"src{os.pathsep}."}
    ended = subprocess.run(
        [*command, "--json", str(report)],
        check=False,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    document: dict[str, Any] = json.loads(report.read_text())
    return document


@pytest.mark.needs("wrk")
@pytest.mark.timeout(400)
def test_a_durable_send_costs_a_fraction_of_one_in_the_memory_of_the_official_sdk(tmp_path: Path) -> None:
    report = measured("send", tmp_path / "send.json")
    assert [sample["errors"] for sample in report["samples"]] == [0, 0]
    ratios = {ratio["metric"]: ratio["median"] for ratio in report["ratios"]}
    assert ratios["rate"] >= LEAST_RATE, ratios
    assert ratios["cpu_us"] <= MOST_CPU, ratios
