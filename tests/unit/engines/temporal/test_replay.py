"""Workflows that are under way go on under this version: the histories of earlier ones are replayed."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from dragoman.engines.temporal.workflow import RUN, Order, RunWorkflow

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))


@workflow.defn(name=RUN, sandboxed=False)
class OtherWorkflow:
    """One that does not do what was recorded."""

    @workflow.run
    async def run(self, order: Order) -> None:
        await workflow.sleep(order.lease)


def history_of(file: Path) -> WorkflowHistory:
    return WorkflowHistory.from_json(file.stem, file.read_text(encoding="utf-8"))


def replay(file: Path, kind: type) -> None:
    asyncio.run(Replayer(workflows=[kind]).replay_workflow(history_of(file)))


def test_every_kind_of_history_was_recorded() -> None:
    assert [file.stem for file in HISTORIES] == ["ended", "parked", "resumed"]


@pytest.mark.parametrize("file", HISTORIES, ids=lambda file: file.stem)
def test_a_recorded_history_is_replayed(file: Path) -> None:
    replay(file, RunWorkflow)


@pytest.mark.parametrize("file", HISTORIES, ids=lambda file: file.stem)
def test_a_workflow_that_does_something_else_is_found_out(file: Path) -> None:
    with pytest.raises(NondeterminismError):
        replay(file, OtherWorkflow)


def test_a_parked_run_waits_for_a_signal_and_goes_on_in_a_history_of_its_own() -> None:
    kinds = [_kinds(json.loads(file.read_text(encoding="utf-8"))) for file in HISTORIES]
    ended, parked, resumed = kinds
    assert "SIGNALED" not in " ".join(ended)
    assert parked[-1].endswith("CONTINUED_AS_NEW")
    assert resumed[-1].endswith("EXECUTION_COMPLETED")
    assert sum(kind.endswith("ACTIVITY_TASK_SCHEDULED") for one in kinds for kind in one) == 3


def _kinds(document: Any) -> list[str]:
    return [re.sub("^EVENT_TYPE_", "", event["eventType"]) for event in document["events"]]
