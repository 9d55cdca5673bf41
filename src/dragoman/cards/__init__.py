"""Agent cards: building them, and the bytes that are served."""

from dragoman.cards.build import combined, interfaces
from dragoman.cards.serve import CardFile

__all__ = ["CardFile", "combined", "interfaces"]
