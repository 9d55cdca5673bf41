"""Push notifications: where somebody wants to be told of a task's events (A2A 1.0 §4.3.1)."""

from collections.abc import Sequence

from msgspec import Struct

MOST_CONFIGS = 16
"""Configurations that a task may have."""


class PushConfig(Struct, frozen=True, kw_only=True):
    """A push notification configuration.

    `task_id` is empty as long as it is that of the message which it came with. `generation` is the protocol generation
    that notifications are to speak. `token` and `credentials` are secrets: they are empty in whatever is shown, and
    absent from the text of this value. `scheme` is that of the Authorization header, such as `Bearer`. `place` is where
    a request holds it, for refusals.
    """

    generation: str
    url: str
    id: str = ""
    task_id: str = ""
    token: str = ""
    scheme: str = ""
    credentials: str = ""
    place: str = ""

    def __repr__(self) -> str:
        return f"PushConfig(id={self.id!r}, task_id={self.task_id!r}, generation={self.generation!r})"

    def at(self, field: str) -> str:
        """Return the path of a field in the request that holds this."""
        return f"{self.place}.{field}" if self.place else field


class PushConfigs(Struct, frozen=True, kw_only=True):
    """A page of a task's configurations, and the token of the next page; empty after the last one."""

    configs: Sequence[PushConfig]
    next_token: str = ""
