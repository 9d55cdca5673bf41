"""A run whose handler passes on what another agent does: in that agent's words, not in its own."""

from dragoman.agents.run import Run
from dragoman.model import Change, Message, StatusChange, Task, TaskState


class PassingRun(Run):
    """The acts of such a handler, beside those that every handler has."""

    @classmethod
    def of(cls, run: Run) -> "PassingRun":
        """Return a run with these acts too."""
        return cls(run._execution)

    async def relay(self, *changes: Change) -> None:
        """Commit changes of the model as they are, all or none.

        Inside of a `step` they are part of the step; elsewhere each call is an act. They can end the run in any way
        that the lifecycle allows.
        """
        await self._execution.act(*changes)

    async def relay_question(self, question: StatusChange, *, name: str) -> Message:
        """Have the caller answer what another agent asks, in the state that it says: as `ask`."""
        kind = "require_auth" if question.state is TaskState.AUTH_REQUIRED else "ask"
        return await self._execution.ask(kind, name, question)

    async def stored(self) -> Task:
        """Return the task as it stands in the store, whoever wrote it: also once the run was stopped."""
        return await self._execution.stored()
