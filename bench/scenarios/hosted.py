"""`hosted`: what a blocking send by the hosted profile costs, beside the same send to a server where all is open.

For each round two servers of ours are started. One wants no credential. The other has tenants, and its agent is hosted
too; it is sent to openly with a token, and by the profile: with a token, scopes, the grant on a workspace, limits, a
place for the wait, and a result that is gathered and verified. Each way gets a turn of the same length. So does
a2a-sdk's server, which wants no credential either.
"""

import secrets
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from bench.processes import Running, running
from bench.replies import WrongReply
from bench.results import Sample
from bench.servers import ECHO, OURS, Server
from bench.session import Session
from bench.usage import cpu_seconds
from bench.wire import Binding, Operation
from bench.wrk import load

PEER = "a2a-sdk"
_WARM_UP = 1  # seconds
_CONFIGURATION = f"""
[hosted]
enabled = true
observers = {{ principal = 256, tenant = 256 }}
[agents.echo]
python = "{ECHO}:agent"
tenant = "bench"
workspace = "lab"
[tenants.bench]
features = ["agent_api"]
[tenants.bench.principals.caller]
workspaces = ["lab"]
sources = ["wiki"]
tokens = [{{ file = "{{folder}}/token", scopes = ["ai:answer", "a2a:read", "a2a:delegate"] }}]
"""


def hosted(session: Session) -> list[Sample]:
    """Load our servers in the three ways and a2a-sdk's in its only one, round by round."""
    servers = [one for one in session.servers(Operation.SEND, (PEER,)) if one.name in (OURS, PEER)]
    return session.measure("hosted", servers, partial(_compare, session))


def _compare(session: Session, server: Server, number: int) -> Sample:
    options = session.options
    with ExitStack() as stack:
        ways = _ways(stack, server)
        for served, request in ways.values():
            load(served, Operation.SEND, [request], options.connections, _WARM_UP)
        costs, errors, first_error = {}, 0, ""
        for way in sorted(ways, reverse=number % 2 == 0):
            served, request = ways[way]
            before = cpu_seconds(served.pid)
            counted = load(served, Operation.SEND, [request], options.connections, options.seconds)
            if counted.requests == 0:
                raise WrongReply(f"no reply at all to a send that is {way}: {counted.first_error}")
            costs[way] = (cpu_seconds(served.pid) - before) / counted.requests * 1e6
            errors += counted.errors
            first_error = first_error or counted.first_error
    if server.name == PEER:
        return Sample(
            "hosted", PEER, number, {"cpu_us": costs["open"]}, errors=errors, first_error=first_error
        )
    metrics = {
        "cpu_us": costs["hosted"],
        "cpu_us_open": costs["open"],
        "cpu_us_token": costs["open with a token"],
        "cpu_ratio": costs["hosted"] / costs["open"],
    }
    return Sample("hosted", server.name, number, metrics, errors=errors, first_error=first_error)


def _ways(stack: ExitStack, server: Server) -> dict[str, tuple[Running, bytes]]:
    """Start the servers; how each way is called → the server that it goes to, and the request."""
    alone = stack.enter_context(running(server))
    openly = alone, alone.wire(Binding.JSONRPC).send()
    if server.name == PEER:
        return {"open": openly}
    token = "dgm_" + secrets.token_urlsafe(32)
    tenants = stack.enter_context(running(replace(server, configuration=_CONFIGURATION, token=token)))
    open_wire = tenants.wire(Binding.JSONRPC)
    routes = replace(server.routes, rpc="/v1/a2a/agents/echo/rpc")
    return {
        "open": openly,
        "open with a token": (tenants, replace(open_wire, bearer=token).send()),
        "hosted": (tenants, replace(open_wire, bearer=token, routes=routes).send()),
    }
