"""Dragoman: serve any agent to the A2A (Agent2Agent) network.

The names below are all that an agent author needs; everything else is internal.
"""

from dragoman.agents import Agent, Run, Skill
from dragoman.model import Artifact, DataPart, Message, Part, RawPart, TextPart, UrlPart

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Artifact",
    "DataPart",
    "Message",
    "Part",
    "RawPart",
    "Run",
    "Skill",
    "TextPart",
    "UrlPart",
    "__version__",
]
