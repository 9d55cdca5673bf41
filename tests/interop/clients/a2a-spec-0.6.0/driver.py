"""Calls an agent with the JSON-RPC client of a2a-spec, which has no official SDK inside.

driver.py AGENT_URL
"""

import asyncio
import json
import sys
from dataclasses import asdict
from typing import Any

from a2a_spec.adapters.a2a_adapter import A2AAdapter
from a2a_spec.exceptions import AdapterError

agent_url = sys.argv[1]


async def answer(adapter: A2AAdapter, value: dict[str, Any]) -> Any:
    """The adapter's response, or the text of its refusal."""
    try:
        return asdict(await adapter.call(value))
    except AdapterError as error:
        return {"refused": str(error)}


async def main() -> None:
    adapter = A2AAdapter(agent_url, "demo", text_field="text")
    report = {
        "healthy": await adapter.health_check(),
        "metadata": asdict(adapter.get_metadata()),
        **{
            text: await answer(adapter, {"text": text})
            for text in ("spoken words", "data", "message hello", "fail")
        },
        "sent data": await answer(A2AAdapter(agent_url, "demo"), {"count": 3, "names": ["a", "b"]}),
    }
    print(json.dumps(report))


asyncio.run(main())
