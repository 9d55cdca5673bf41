"""The one way out: requests to URLs that somebody else chose, within one policy of where they may go."""

from dragoman.egress.policy import EgressPolicy, Refused, Target

__all__ = ["EgressPolicy", "Refused", "Target"]
