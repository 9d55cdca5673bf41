"""The version-neutral A2A domain: values and pure rules, no wire, no I/O. Everything else builds on it."""

from dragoman.model.approval import Approval, Decision
from dragoman.model.card import AgentCard, AgentInterface, Capabilities, Extension, Provider, Skill
from dragoman.model.event import (
    ArtifactChunk,
    Change,
    Received,
    Reply,
    Resumed,
    StatusChange,
    TaskEvent,
    TaskFold,
    Used,
)
from dragoman.model.message import Artifact, DataPart, Message, Part, RawPart, Role, TextPart, UrlPart
from dragoman.model.page import Cursor, Filters, TaskPage
from dragoman.model.principal import ANONYMOUS, LOCAL, Principal, Right, Scope
from dragoman.model.push import PushConfig, PushConfigs
from dragoman.model.task import RunFacts, Task, TaskState, TaskStatus

__all__ = [
    "ANONYMOUS",
    "LOCAL",
    "AgentCard",
    "AgentInterface",
    "Approval",
    "Artifact",
    "ArtifactChunk",
    "Capabilities",
    "Change",
    "Cursor",
    "DataPart",
    "Decision",
    "Extension",
    "Filters",
    "Message",
    "Part",
    "Principal",
    "Provider",
    "PushConfig",
    "PushConfigs",
    "RawPart",
    "Received",
    "Reply",
    "Resumed",
    "Right",
    "Role",
    "RunFacts",
    "Scope",
    "Skill",
    "StatusChange",
    "Task",
    "TaskEvent",
    "TaskFold",
    "TaskPage",
    "TaskState",
    "TaskStatus",
    "TextPart",
    "UrlPart",
    "Used",
]
