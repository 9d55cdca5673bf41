"""Verifies cards with the official Python SDK of A2A 0.3, and prints one JSON document.

    signing.py verify AGENT_URL JWKS_FILE    fetches each form of a card and verifies it, as it came and changed
    signing.py extended AGENT_URL JWKS_FILE  asks for the extended card over each binding and verifies it

The variable AGENT_BEARER is a token to ask with.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import AgentCard
from a2a.utils.signing import SignatureVerificationError, create_signature_verifier
from jwt.api_jwk import PyJWK
from jwt.exceptions import PyJWKError

FORMS = {"unnamed": {}, "0.3": {"A2A-Version": "0.3"}}


def _outcome(verifier: Callable[[AgentCard], None], card: AgentCard) -> str:
    try:
        verifier(card)
    except SignatureVerificationError as error:
        return type(error).__name__
    return "good"


def _verifier(jwks: str) -> Callable[[AgentCard], None]:
    members = {one["kid"]: one for one in json.loads(Path(jwks).read_text(encoding="utf-8"))["keys"]}

    def find(kid: str | None, jku: str | None) -> PyJWK:
        if kid not in members:
            raise PyJWKError(f"{kid} is not pinned")
        return PyJWK(members[kid])

    return create_signature_verifier(find, ["ES256", "EdDSA"])


async def extended(agent_url: str, jwks: str) -> dict[str, Any]:
    report = {}
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {os.environ['AGENT_BEARER']}"}) as http:
        public = await A2ACardResolver(http, agent_url).get_agent_card()
        for binding in ("JSONRPC", "HTTP+JSON"):
            config = ClientConfig(httpx_client=http, supported_transports=[binding])
            card = await ClientFactory(config).create(public).get_card(signature_verifier=_verifier(jwks))
            report[binding] = [skill.id for skill in card.skills]
    return report


async def verify(agent_url: str, jwks: str) -> dict[str, Any]:
    verifier = _verifier(jwks)
    report: dict[str, Any] = {}
    async with httpx.AsyncClient() as http:
        for name, headers in FORMS.items():
            card = await A2ACardResolver(http, agent_url).get_agent_card(http_kwargs={"headers": headers})
            report[name] = {"as it came": _outcome(verifier, card), "name": card.name}
            card.url += "/elsewhere"
            report[name]["changed"] = _outcome(verifier, card)
    return report


print(json.dumps(asyncio.run({"verify": verify, "extended": extended}[sys.argv[1]](*sys.argv[2:]))))
