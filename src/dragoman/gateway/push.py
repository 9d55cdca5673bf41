"""Push notification configurations: keeping, showing and deleting them (A2A 1.0 §3.1.7-§3.1.10)."""

from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from dragoman.gateway.call import Call
from dragoman.gateway.hooks import Hook, HookStore, KeptConfig
from dragoman.model import PushConfig, PushConfigs
from dragoman.model.errors import FieldViolation, InvalidParams, TaskNotFound
from dragoman.model.ids import new_id
from dragoman.model.operation import CreatePushConfig, DeletePushConfig, GetPushConfig, ListPushConfigs


class Secrets(Struct, frozen=True, omit_defaults=True):
    """What of a configuration is kept sealed."""

    token: str = ""
    credentials: str = ""

    def __repr__(self) -> str:
        return "Secrets(…)"


class Sealer(Protocol):
    """Keeps secrets unreadable for whoever reads the store (see `outbound.vault`)."""

    def seal(self, secret: bytes, tenant: str, origin: str) -> bytes:
        """Return a secret as it may be kept; it can be opened for this tenant and origin alone."""
        ...


class Places(Protocol):
    """Knows where requests may go (see `outbound.ways`)."""

    def place_of(self, url: str, agent: str) -> str:
        """Return the origin of a URL that requests may go to for an agent.

        Raises:
            ValueError: they may not; the message says why, for whoever named it.
        """
        ...


class PushConfigurer:
    """The four operations on configurations, and what comes with a message.

    Whether the agent sends notifications at all was looked at before; without the parts none does.
    """

    def __init__(self, store: HookStore | None, sealer: Sealer | None, places: Places | None) -> None:
        self._store = store
        self._sealer = sealer
        self._places = places

    def prepare(self, call: Call, config: PushConfig) -> KeptConfig:
        """Return a configuration as it is to be kept, under an id of ours if it has none.

        Raises:
            InvalidParams: its URL is none that notifications may go to.
        """
        if self._sealer is None or self._places is None:
            raise _not_built()
        try:
            origin = self._places.place_of(config.url, call.scope.agent)
        except ValueError as error:
            field = config.at("url")
            raise InvalidParams([FieldViolation(field, str(error))]) from None
        secrets = Secrets(config.token, config.credentials)
        return KeptConfig(
            id=config.id or new_id(),
            generation=config.generation,
            url=config.url,
            scheme=config.scheme,
            sealed=self._sealer.seal(msgspec.json.encode(secrets), call.scope.tenant, origin),
        )

    async def create(self, call: Call, request: CreatePushConfig) -> PushConfig:
        """Keep a configuration, and return it as it is shown.

        Raises:
            TaskNotFound: there is no such task, or it is not the caller's.
            InvalidParams: its URL is none that notifications may go to.
            QuotaExceeded: the task has as many as it may.
        """
        kept = self.prepare(call, request.config)
        task_id = request.config.task_id
        await self._kept_in().set_hook(call.scope, task_id, kept, audit=call.audit)
        return _shown(task_id, kept)

    async def get(self, call: Call, request: GetPushConfig) -> PushConfig:
        """Return a configuration without its secrets.

        Raises:
            TaskNotFound: there is no such task, it is not the caller's, or it has no such configuration.
        """
        task_id, hooks = request.task_id, await self._kept_in().hooks(call.scope, request.task_id)
        found = _find(hooks, request.config_id) if request.config_id else _unnamed(hooks, task_id)
        if found is None:
            raise TaskNotFound(task_id)
        return _shown(task_id, found.config)

    async def list(self, call: Call, request: ListPushConfigs) -> PushConfigs:
        """Return a page of a task's configurations without their secrets.

        Raises:
            TaskNotFound: there is no such task, or it is not the caller's.
        """
        hooks = await self._kept_in().hooks(call.scope, request.task_id)
        rest = [hook for hook in hooks if hook.config.id > request.page_token]
        page = rest[: request.page_size or None]
        return PushConfigs(
            configs=tuple(_shown(request.task_id, hook.config) for hook in page),
            next_token=page[-1].config.id if len(page) < len(rest) else "",
        )

    async def delete(self, call: Call, request: DeletePushConfig) -> None:
        """Delete a configuration, if it is there.

        Raises:
            TaskNotFound: there is no such task, or it is not the caller's.
        """
        await self._kept_in().delete_hook(call.scope, request.task_id, request.config_id, audit=call.audit)

    def _kept_in(self) -> HookStore:
        if self._store is None:
            raise _not_built()
        return self._store


def _not_built() -> RuntimeError:
    return RuntimeError("an agent declares push notifications, but this gateway was made without them")


def _find(hooks: Sequence[Hook], config_id: str) -> Hook | None:
    return next((hook for hook in hooks if hook.config.id == config_id), None)


def _unnamed(hooks: Sequence[Hook], task_id: str) -> Hook | None:
    """Return what is meant where no id is given: that of the task's own id, which some servers use, or the only one."""
    return _find(hooks, task_id) or (hooks[0] if len(hooks) == 1 else None)


def _shown(task_id: str, kept: KeptConfig) -> PushConfig:
    """Return a configuration without its secrets."""
    return PushConfig(
        id=kept.id, task_id=task_id, url=kept.url, scheme=kept.scheme, generation=kept.generation
    )
