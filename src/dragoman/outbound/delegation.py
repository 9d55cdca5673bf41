"""Speaking to remote agents: one JSON-RPC request, in A2A 1.0, over a connection of its own.

What is said of a failure tells how far it came: before the first byte of the request had left nothing can have
happened, and afterwards anything may have.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import Raw, structs

from dragoman.egress import Refused
from dragoman.egress.client import Egress, EgressFailed, NotSent, Received
from dragoman.gateway.delegate import Sender
from dragoman.gateway.remotes import FAILED, UNKNOWN, Outcome, Remote, came_back
from dragoman.model import Message
from dragoman.model.errors import NotReconcilable, Unavailable
from dragoman.model.ids import new_id
from dragoman.outbound.replies import Unreadable, read_sent, read_task
from dragoman.outbound.vault import Vault, VaultError
from dragoman.protocol.media import JSON
from dragoman.protocol.v1_0.encode import encode_answer

T = TypeVar("T")

_INTERNAL_ERROR = -32603

HEAVY = 64 * 1024
"""Bytes of a reply from which on it is read in a thread."""

_NOWHERE = "its host stands for an address that requests may not go to"
"""Which address a name has here is nothing that whoever registered it has to know."""

_CAME_BACK = "the reply holds the bearer token, so nothing of it is kept"


class RemoteAgents(Sender):
    """Sends through one client, which must not use connections again."""

    def __init__(self, egress: Egress, vault: Callable[[], Vault]) -> None:
        """Take the client, and what gives the vault that opens bearer tokens."""
        self._egress = egress
        self._vault = vault

    async def send(self, remote: Remote, delegation_id: str, message: Message, *, at_once: bool) -> Outcome:
        """See `Sender.send`."""
        params = encode_answer(message)
        if at_once:
            params = params[:-1] + b',"configuration":{"returnImmediately":true}}'
        try:
            token = self._token(remote)
            reply = await self._post(remote, token, "SendMessage", delegation_id, params)
        except (Refused, NotSent, VaultError) as error:
            # Not a byte of the request has left.
            return Outcome(status=FAILED, error=_NOWHERE if isinstance(error, Refused) else str(error))
        except EgressFailed as error:
            return Outcome(status=UNKNOWN, error=str(error))
        outcome = await _read(reply, lambda: read_sent(reply.status, reply.body, delegation_id))
        return _without(outcome, token, reply)

    async def ask(self, remote: Remote, task_id: str) -> Outcome:
        """See `Sender.ask`."""
        request_id, params = new_id(), msgspec.json.encode({"id": task_id})
        try:
            token = self._token(remote)
            reply = await self._post(remote, token, "GetTask", request_id, params)
            outcome = await _read(reply, lambda: read_task(reply.status, reply.body, request_id, task_id))
        except Refused:
            raise Unavailable(f"The remote agent cannot be asked: {_NOWHERE}") from None
        except (EgressFailed, VaultError, Unreadable) as error:
            raise Unavailable(f"The remote agent gave no answer that counts: {error}") from error
        outcome = _without(outcome, token, reply)
        refused = outcome.status == FAILED and not outcome.remote_task_id
        if outcome.status == UNKNOWN or (refused and _may_pass(reply.status, outcome)):
            raise Unavailable(f"The remote agent gave no answer that counts: {outcome.error}")
        if refused:
            raise NotReconcilable(
                f"The remote agent does not tell: {outcome.error} ({outcome.code}). The outcome stays as it is recorded"
            )
        return outcome

    async def close(self) -> None:
        """Let go of connections."""
        await self._egress.close()

    def _token(self, remote: Remote) -> str:
        """Return the bearer token for a remote agent; empty if it has none.

        Raises:
            VaultError: it cannot be read any more.
        """
        if not remote.sealed:
            return ""
        return self._vault().open(remote.sealed, remote.tenant, remote.origin).decode()

    async def _post(
        self, remote: Remote, token: str, method: str, request_id: str, params: bytes
    ) -> Received:
        body = msgspec.json.encode(
            {"jsonrpc": "2.0", "id": request_id, "method": method, "params": Raw(params)}
        )
        headers = [("Content-Type", JSON), ("Accept", JSON), ("A2A-Version", "1.0")]
        if token:
            headers.append(("Authorization", f"Bearer {token}"))
        return await self._egress.send("POST", remote.endpoint_url, headers=headers, body=body)


def _may_pass(status: int, outcome: Outcome) -> bool:
    """Tell whether a refusal is one of the moment: too early, too many, or a fault over there."""
    return status in (408, 425, 429) or outcome.code == _INTERNAL_ERROR


async def _read(reply: Received, read: Callable[[], T]) -> T:
    return await asyncio.to_thread(read) if len(reply.body) > HEAVY else read()


def _without(outcome: Outcome, token: str, reply: Received) -> Outcome:
    """Return an outcome with nothing of a reply in which the bearer token came back: it would be stored, and shown."""
    if not came_back(token, reply.body):
        return outcome
    if outcome.status == FAILED and not outcome.remote_task_id:
        return structs.replace(outcome, error=_CAME_BACK)
    return Outcome(status=UNKNOWN, error=_CAME_BACK)
