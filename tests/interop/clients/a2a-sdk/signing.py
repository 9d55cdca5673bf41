"""Verifies and signs cards with the official Python SDK of A2A 1.0, and prints one JSON document.

    signing.py verify AGENT_URL JWKS_FILE    fetches each form of a card and verifies it, as it came and changed
    signing.py extended AGENT_URL JWKS_FILE  asks for the extended card over each binding and verifies it
    signing.py sign CARD_FILE KEY_FILE       signs a card with a private JWK, and prints it as the SDK writes it

A key counts if the JWKS file has it under its name; where a card says that keys are is noted and not asked.
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
from a2a.client import A2ACardResolver, ClientConfig, create_client
from a2a.types import AgentCard, GetExtendedAgentCardRequest
from a2a.utils.signing import (
    SignatureVerificationError,
    create_agent_card_signer,
    create_signature_verifier,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from jwt.api_jwk import PyJWK
from jwt.exceptions import PyJWKError

FORMS = {"unnamed": {}, "1.0": {"A2A-Version": "1.0"}}


def _keys(file: str, asked: set[str]) -> Callable[[str | None, str | None], PyJWK]:
    members = {one["kid"]: one for one in json.loads(Path(file).read_text(encoding="utf-8"))["keys"]}

    def find(kid: str | None, jku: str | None) -> PyJWK:
        asked.add(jku or "")
        if kid not in members:
            raise PyJWKError(f"{kid} is not pinned")
        return PyJWK(members[kid])

    return find


def _outcome(verifier: Callable[[AgentCard], None], card: AgentCard) -> str:
    try:
        verifier(card)
    except SignatureVerificationError as error:
        return type(error).__name__
    return "good"


async def verify(agent_url: str, jwks: str) -> dict[str, Any]:
    asked: set[str] = set()
    verifier = create_signature_verifier(_keys(jwks, asked), ["ES256", "EdDSA"])
    report: dict[str, Any] = {}
    async with httpx.AsyncClient() as http:
        for name, headers in FORMS.items():
            card = await A2ACardResolver(http, agent_url).get_agent_card(http_kwargs={"headers": headers})
            report[name] = {"as it came": _outcome(verifier, card), "name": card.name}
            card.skills[0].description += "."
            report[name]["changed"] = _outcome(verifier, card)
    return {**report, "jku": sorted(asked)}


async def extended(agent_url: str, jwks: str) -> dict[str, Any]:
    verifier = create_signature_verifier(_keys(jwks, set()), ["ES256", "EdDSA"])
    report = {}
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {os.environ['AGENT_BEARER']}"}) as http:
        for binding in ("JSONRPC", "HTTP+JSON"):
            config = ClientConfig(supported_protocol_bindings=[binding], httpx_client=http)
            client = await create_client(agent_url, config)
            card = await client.get_extended_agent_card(
                GetExtendedAgentCardRequest(), signature_verifier=verifier
            )
            report[binding] = [skill.id for skill in card.skills]
    return report


async def sign(card_file: str, key_file: str) -> dict[str, Any]:
    key = json.loads(Path(key_file).read_text(encoding="utf-8"))
    card = ParseDict(json.loads(Path(card_file).read_text(encoding="utf-8")), AgentCard())
    header = {"alg": key["alg"], "kid": key["kid"], "typ": "JOSE", "jku": None}
    signed: dict[str, Any] = MessageToDict(create_agent_card_signer(PyJWK(key), header)(card))
    return signed


print(
    json.dumps(
        asyncio.run({"verify": verify, "extended": extended, "sign": sign}[sys.argv[1]](*sys.argv[2:]))
    )
)
