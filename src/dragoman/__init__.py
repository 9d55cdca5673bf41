"""Dragoman: serve any agent to the A2A (Agent2Agent) network.

The names below are all that an agent author needs; everything else is internal.
"""

from dragoman.agents import Agent, BlockingRun, Called, Run, Skill
from dragoman.model import Artifact, DataPart, Extension, Message, Part, RawPart, TextPart, UrlPart
from dragoman.model.payload import unpack

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Artifact",
    "BlockingRun",
    "Called",
    "DataPart",
    "Extension",
    "Message",
    "Part",
    "RawPart",
    "Run",
    "Skill",
    "TextPart",
    "UrlPart",
    "__version__",
    "unpack",
]
