"""What agent authors touch: Agent, Run, and the demo agents that ship with the server."""

from dragoman.agents.agent import Agent, AgentError
from dragoman.agents.called import Called
from dragoman.agents.run import BlockingRun, Run
from dragoman.model.card import Provider, Skill

__all__ = ["Agent", "AgentError", "BlockingRun", "Called", "Provider", "Run", "Skill"]
