"""Messages that the agent's side says in plain text."""

from dragoman.model.ids import new_id
from dragoman.model.message import Message, Role, TextPart


def agent_message(text: str, *, task_id: str, context_id: str) -> Message:
    """Return a message of the agent's side about a task."""
    return Message(
        message_id=new_id(),
        role=Role.AGENT,
        parts=(TextPart(text=text),),
        task_id=task_id,
        context_id=context_id,
    )
