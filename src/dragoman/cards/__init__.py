"""Agent cards: building, signing and verifying them, and the bytes that are served.

What makes or checks signatures is imported where it is needed (`cards.build`, `cards.verify`): `validate` needs none.
"""

from dragoman.cards.serve import CardFile

__all__ = ["CardFile"]
