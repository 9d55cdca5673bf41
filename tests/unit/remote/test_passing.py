"""The acts of a handler that passes on what another agent does."""

from dragoman.agents import Run
from dragoman.model import Artifact, ArtifactChunk, StatusChange, TaskState, TextPart
from dragoman.remote.passing import PassingRun
from tests.unit.agents.acted import done

CHANGES = (
    ArtifactChunk(Artifact(artifact_id="theirs", parts=(TextPart(text="x"),))),
    StatusChange(TaskState.CANCELED),
)


async def relaying(own: Run) -> None:
    run = PassingRun.of(own)
    await run.step("follow", lambda: run.relay(StatusChange(TaskState.WORKING)))
    await run.relay(*CHANGES)
    assert (await run.stored()).status.state is TaskState.CANCELED


def test_changes_of_another_agent_are_committed_as_they_are_and_may_end_the_run() -> None:
    assert done(relaying) == ["WORKING", "artifact x", "CANCELED"]
