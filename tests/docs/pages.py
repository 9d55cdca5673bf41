"""The generated parts of the reference, made from the code: one function a part, each gives Markdown."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Struct

from dragoman import config
from dragoman.agents import child
from dragoman.agents.agent import Agent
from dragoman.agents.run import MAX_DETAILS
from dragoman.bindings.connection import HEAD_SECONDS, MAX_HEAD
from dragoman.bindings.cors import PREFLIGHT_SECONDS
from dragoman.bindings.hosted import BODY_LIMIT as HOSTED_BODY
from dragoman.callers import FAILURES_PER_SECOND
from dragoman.cards.serve import MAX_AGE
from dragoman.configured import MAX_OUTPUT
from dragoman.egress.addresses import GLOBAL_V6, SPECIAL_V4, SPECIAL_V6
from dragoman.egress.client import CONNECT_SECONDS, MAX_BYTES, TOTAL_SECONDS
from dragoman.engines.agent_loop import GRACE
from dragoman.engines.settings import EngineTable
from dragoman.engines.showing import SHOW_AFTER
from dragoman.gateway import observe
from dragoman.gateway.delegate import MOST_OF_TENANT, MOST_UNDER_WAY
from dragoman.gateway.extensions import SHIPPED
from dragoman.gateway.policy import HOSTED
from dragoman.gateway.query import HISTORY, MAX_HISTORY
from dragoman.gateway.remotes import LONGEST_TOKEN as LONGEST_BEARER
from dragoman.gateway.remotes import MOST_REMOTES
from dragoman.gateway.send import WINDOW
from dragoman.gateway.subscribe import HEARTBEAT_SECONDS
from dragoman.model import errors
from dragoman.model.operation import ListTasks
from dragoman.model.push import MOST_CONFIGS
from dragoman.outbound.webhooks import AGAIN_AT_ONCE, AT_ONCE, BY_CALLER, BY_ORIGIN, TRIES
from dragoman.protocol.hooks import LONGEST_CREDENTIALS, LONGEST_TOKEN, LONGEST_URL
from dragoman.protocol.pages import MAX_PAGE_BYTES
from dragoman.protocol.protojson import MAX_DEPTH
from dragoman.protocol.requests import LONGEST_ID, MAX_PARTS
from dragoman.protocol.v1_0.errors import TABLE, codes
from dragoman.remote.differences import DIFFERENCES as REMOTE_DIFFERENCES
from dragoman.remote.settings import RemoteTable
from dragoman.serving import KEEP_ALIVE_SECONDS
from dragoman.stores.sqlite.ownership import HEARTBEAT_TIMEOUT_MS
from tests.contract.topics import TOPICS
from tests.docs import commands, generations
from tests.docs.authoring import agents_part
from tests.docs.tables import table
from tests.docs.words import KEYS, REMEDIES, UNSET

_DURATION = re.compile(r"\d+(ms|s|m|h|d)")
_DURATIONS = {
    "agents.ID.deadline",
    "agents.ID.parked_deadline",
    *(f"retention.{state}" for state in ("completed", "failed", "canceled", "rejected")),
}
"""Keys that hold a duration and have no default to tell it by."""


# ------------------------------------------------------------------------------------------------------- configuration


_NAMED: Mapping[str, str] = {"agents": "ID", "tenants": "T", "principals": "P"}
"""Table of tables → how the documents call the name of one."""


def sections(kind: type[Struct] = config.Config, path: str = "") -> Iterator[tuple[str, type[Struct]]]:
    """Yield the sections of the configuration and those below them: `agents.ID` for an agent's table, and so on."""
    for field in msgspec.structs.fields(kind):
        inner = _inner(field)
        if inner is not None:
            place = f"{path}{field.encode_name}"
            if get_origin(field.type) is dict:
                place += f".{_NAMED[field.encode_name]}"
            yield place, inner
            yield from sections(inner, f"{place}.")


def _inner(field: Any) -> type[Struct] | None:
    """Return the kind of the table, or tables, that a field holds."""
    kinds = [field.type, *get_args(field.type)]
    return next((one for one in kinds if isinstance(one, type) and issubclass(one, Struct)), None)


def _keys_of(kind: type[Struct]) -> list[Any]:
    """Return the fields of a section that are keys of its own; a list of tables is one too."""
    fields = msgspec.structs.fields(kind)
    return [
        field
        for field in fields
        if _inner(field) is None or get_origin(field.type) is tuple or _may_be_text(field)
    ]


def _may_be_text(field: Any) -> bool:
    """Tell whether a key is a text where it is no table."""
    return str in get_args(field.type) and get_origin(field.type) is not dict


def keys() -> set[str]:
    """Return every key of the configuration."""
    return {f"{section}.{field.encode_name}" for section, kind in sections() for field in _keys_of(kind)}


def configuration_part() -> str:
    """Return one table of keys a section."""
    pieces = []
    for section, kind in sections():
        if not _keys_of(kind):
            continue
        words = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].replace("\n", " ").partition(": ")[2]
        rows = [
            [
                f"`{field.encode_name}`",
                *_type_and_value(section, field),
                KEYS[f"{section}.{field.encode_name}"],
            ]
            for field in _keys_of(kind)
        ]
        keys_table = table(["key", "type", "default", "meaning"], rows)
        head = f"[[{section}]]" if kind is config.TokenRef else f"[{section}]"
        pieces.append(f"## `{head}`\n\n{words[:1].upper()}{words[1:]}\n\n{keys_table}")
    return "\n".join(pieces)


def _type_and_value(section: str, field: Any) -> list[str]:
    kinds = [kind for kind in (get_args(field.type) or (field.type,)) if kind is not type(None)]
    value = (
        None
        if field.required
        else field.default
        if field.default is not NODEFAULT
        else field.default_factory()
    )
    name = {str: "string", int: "integer", bool: "true or false"}.get(kinds[0], "array of strings")
    if get_origin(field.type) is tuple or any(get_origin(kind) is tuple for kind in kinds):
        inner = str in get_args(next((kind for kind in kinds if get_origin(kind) is tuple), field.type))
        name = (
            "array of tables"
            if _inner(field) is not None
            else f"array of {'strings' if inner else 'integers'}"
        )
    if get_origin(field.type) is dict:
        name = "table of strings"
    if _may_be_text(field) and _inner(field) is not None:
        name = "string or table"
    key = f"{section}.{field.encode_name}"
    if key in _DURATIONS or _DURATION.fullmatch(str(value)):
        name = "duration"
    otherwise = UNSET.get(key, "must be there" if field.required else "the agent's own")
    return [name, otherwise if value is None else f"`{msgspec.json.encode(value).decode()}`"]


# ------------------------------------------------------------------------------------------------------------- commands


def commands_part() -> str:
    """Return the help text of every command."""
    pieces = []
    for path in commands.paths():
        name = f"dragoman {path}".strip()
        info = f'"help={path}"' if " " in path else f"help={path or 'dragoman'}"
        pieces.append(f"## `{name}`\n\n```text {info}\n{commands.help_text(path)}```\n")
    return "\n".join(pieces)


# --------------------------------------------------------------------------------------------------------------- errors


def error_kinds() -> list[type[errors.DragomanError]]:
    """Return the classes of errors that callers can meet, in the order of the tree."""
    found = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.DragomanError) and kind in TABLE
    ]
    return [*found, errors.InternalError]


def errors_part() -> str:
    """Return one table for each branch of the error tree."""
    titles: Mapping[str, tuple[type[errors.DragomanError], ...]] = {
        "Errors of the standard": (errors.A2AError,),
        "The request is wrong": (errors.RequestError,),
        "Refused before it was read as A2A": (errors.TransportError,),
        "Approvals, remote agents and administration": (
            errors.ApprovalNotFound,
            errors.ApprovalClosed,
            errors.RemoteNotFound,
            errors.DelegationNotFound,
            errors.NotReconcilable,
            errors.EntryNotFound,
            errors.EntryConflict,
        ),
        "A result that cannot be shown": (errors.ResultTooLarge, errors.ArtifactUnverified),
        "A fault of the server": (errors.InternalError,),
    }
    pieces = []
    for title, branches in titles.items():
        rows = [_error_row(kind) for kind in error_kinds() if issubclass(kind, branches)]
        head = ["reason", "HTTP", "google.rpc", "JSON-RPC", "meaning", "what to do"]
        pieces.append(f"## {title}\n\n{table(head, rows)}")
    return "\n".join(pieces)


def _error_row(kind: type[errors.DragomanError]) -> list[str]:
    known = codes(kind.__new__(kind))
    meaning = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    row = [f"`{kind.reason}`", str(known.http), f"`{known.status}`", str(known.jsonrpc), meaning]
    return [*row, REMEDIES[kind.__name__]]


# --------------------------------------------------------------------------------------------------------------- limits


def limits_part() -> str:
    """Return the table of all numbers that callers and authors can run into."""
    agent = inspect.signature(Agent.__init__).parameters
    limits = config.Limits()
    page = next(field.default for field in msgspec.structs.fields(ListTasks) if field.name == "page_size")
    rows = [
        ["request line and headers", size(MAX_HEAD), "", "431"],
        ["time for the headers to arrive", f"{HEAD_SECONDS:g} seconds", "", "408"],
        ["request body", size(limits.body), "`limits.body`", "413 `BODY_TOO_LARGE`"],
        [
            "time for the body to arrive",
            spell(limits.body_time),
            "`limits.body_time`",
            "408 `REQUEST_TIMEOUT`",
        ],
        ["objects and arrays inside each other, in a body", str(MAX_DEPTH), "", "400 `INVALID_REQUEST`"],
        ["parts of a message", f"{MAX_PARTS:,}", "", "400 `INVALID_PARAMS`"],
        ["`messageId`, `contextId`, `taskId`", f"{LONGEST_ID} characters", "", "400 `INVALID_PARAMS`"],
        ["wait of a blocking send", f"{WINDOW:g} seconds", "", "the task comes as it stands, and goes on"],
        ["history in a reply, if it does not say", f"{HISTORY} messages", "`historyLength`", ""],
        ["history in a reply", f"{MAX_HISTORY:,} messages", "", "the newest come"],
        ["page of a listing", f"{page} tasks, at most 100", "`pageSize`", "400 `INVALID_PARAMS`"],
        ["bytes of a page", size(MAX_PAGE_BYTES), "", "the page is cut, with one task at least"],
        ["silence on a stream", f"{HEARTBEAT_SECONDS:g} seconds", "`server.heartbeat`", "a comment is sent"],
        [
            "events that wait for a slow reader of a stream",
            f"{observe.MAX_EVENTS}, or {size(observe.MAX_BYTES)}",
            "",
            "it gets the task as it stands, and goes on from there",
        ],
        [
            "time to answer with a bare message, if `replies` is `either`",
            f"{SHOW_AFTER:g} seconds",
            "",
            "it is a task",
        ],
        ["a run", f"{agent['deadline'].default:g} seconds", "`deadline`", "the task is FAILED"],
        [
            "a run's wait for its caller",
            f"{agent['parked_deadline'].default / 86400:g} days",
            "`parked_deadline`",
            "the task is FAILED",
        ],
        ["attempts of a run", str(agent["max_attempts"].default), "`max_attempts`", "the task is FAILED"],
        [
            "a finished task is kept",
            f"{config.seconds(config.Retention().terminal, 'a limit') / 86400:g} days",
            "`retention`",
            "it is purged: 404 `TASK_NOT_FOUND`",
        ],
        [
            "an entry of the audit is kept",
            f"{config.seconds(config.Retention().audit, 'a limit') / 86400:g} days",
            "`retention.audit`",
            "it is deleted",
        ],
        ["runs of one agent at a time", str(agent["max_runs"].default), "`max_runs`", "further ones wait"],
        [
            "runs of all agents at a time",
            f"{EngineTable().max_runs:,}",
            "`engine.max_runs`",
            "further ones wait",
        ],
        [
            "runs of one agent that wait",
            f"{agent['max_waiting'].default:,}",
            "`max_waiting`",
            "429 `QUOTA_EXCEEDED`",
        ],
        ["output of an agent without code", size(MAX_OUTPUT), "`max_output`", "the task is FAILED"],
        [
            "silence of a remote agent",
            spell(RemoteTable().idle),
            "`a2a.idle`",
            "it is asked how its task stands",
        ],
        [
            "search for a remote agent's task that cannot be reached",
            spell(RemoteTable().patience),
            "`a2a.patience`",
            "the task is FAILED",
        ],
        ["silence of a model", spell(config.ModelTable().idle), "`openai.idle`", "the task is FAILED"],
        ["a command's end when it is asked to", f"{child.GRACE:g} seconds", "", "it is killed"],
        ["a stopped or parked handler's cleaning up", f"{GRACE:g} seconds", "", "it is abandoned"],
        [
            "a handler's end when the server stops",
            spell(config.Server().drain),
            "`server.drain`",
            "it is stopped",
        ],
        [
            "a server that hangs",
            f"{HEARTBEAT_TIMEOUT_MS // 1000} seconds",
            "",
            "another one may take its file over",
        ],
        [
            "credentials from one address that are not good",
            f"{limits.failed_auth} at once, then one each {1 / FAILURES_PER_SECOND:g} seconds",
            "`limits.failed_auth`",
            "429 `RATE_LIMITED`",
        ],
        [
            "requests a minute, of a tenant and of a principal",
            "none unless set",
            "`limits.rate`",
            "429 `RATE_LIMITED`",
        ],
        [
            "tasks that are not finished, of a tenant and of a principal",
            "none unless set",
            "`limits.running`",
            "429 `QUOTA_EXCEEDED`",
        ],
        [
            "tasks that are kept, of a tenant and of a principal",
            "none unless set",
            "`limits.stored`",
            "429 `QUOTA_EXCEEDED`",
        ],
        *_push_limits(),
        *_delegation_limits(),
        *_hosted_limits(),
        ["idle HTTP connection", f"{KEEP_ALIVE_SECONDS} seconds", "", "it is closed"],
        ["card kept by a client", f"{MAX_AGE} seconds", "", ""],
        ["preflight kept by a browser", f"{PREFLIGHT_SECONDS} seconds", "", ""],
    ]
    return table(["what", "limit", "changed by", "beyond it"], rows)


def _push_limits() -> list[list[str]]:
    """Return the limits of push notifications."""
    tries = f"{TRIES}, over about {sum(2**number for number in range(TRIES - 1)) / 60:.0f} minutes"
    return [
        ["push configurations of a task", str(MOST_CONFIGS), "", "429 `QUOTA_EXCEEDED`"],
        ["URL of a push configuration", f"{LONGEST_URL:,} characters", "", "400 `INVALID_PARAMS`"],
        [
            "its `token` / `credentials`",
            f"{LONGEST_TOKEN:,} / {LONGEST_CREDENTIALS:,} characters",
            "",
            "400 `INVALID_PARAMS`",
        ],
        [
            "tries of a push notification",
            tries,
            "`outbound.retry`",
            "the configuration is [given up](../how-to/webhooks.md#find-what-was-given-up-and-try-it-again)",
        ],
        [
            "connection to a receiver / its whole answer",
            f"{CONNECT_SECONDS:g} / {TOTAL_SECONDS:g} seconds",
            "",
            "it is a try in vain",
        ],
        [
            "push notifications under way",
            f"{AT_ONCE}, of a caller {BY_CALLER}, to one origin {BY_ORIGIN}; further tries {AGAIN_AT_ONCE}",
            "",
            "further ones wait",
        ],
    ]


def ranges_part() -> str:
    """Return the special ranges of addresses."""
    rows = [[f"`{one.network}`", one.name] for one in (*SPECIAL_V4, *SPECIAL_V6)]
    return table(
        ["range", "what it is"],
        [*rows, [f"outside of `{GLOBAL_V6}`", "IPv6 that was never given out for the public internet"]],
    )


def _delegation_limits() -> list[list[str]]:
    """Return the limits of remote agents and of what is delegated to them."""
    at_once = f"{MOST_OF_TENANT} of a tenant, {MOST_UNDER_WAY} of everybody"
    return [
        ["remote agents of a tenant", f"{MOST_REMOTES:,}", "", "429 `QUOTA_EXCEEDED`"],
        ["bearer token of a remote agent", f"{LONGEST_BEARER:,} characters", "", "400 `INVALID_PARAMS`"],
        ["delegations that are sent at a time", at_once, "", "429 `QUOTA_EXCEEDED`"],
        ["answer of a remote agent", f"{TOTAL_SECONDS:g} seconds, {size(MAX_BYTES)}", "", "`unknown`"],
    ]


def _hosted_limits() -> list[list[str]]:
    """Return the limits of the hosted profile alone."""
    text, observers = HOSTED.text_only, config.Observers()
    assert text is not None and HOSTED.result_bytes is not None
    bounds = f"{observers.everybody}, {observers.tenant} of a tenant, {observers.principal} of a principal"
    return [
        ["hosted: request body", size(HOSTED_BODY), "", "413 `BODY_TOO_LARGE`"],
        ["hosted: parts of a message", str(text.parts), "", "400 `INVALID_PARAMS`"],
        ["hosted: characters of a message", f"{text.characters:,}", "", "400 `INVALID_PARAMS`"],
        ["hosted: a result, as JSON", size(HOSTED.result_bytes), "", "the task is FAILED"],
        ["hosted: a task in a reply", size(HOSTED.result_bytes), "", "its oldest messages are left out"],
        [
            "hosted: a wait or stream",
            spell(observers.window),
            "`hosted.observers.window`",
            "it ends; the run goes on",
        ],
        ["hosted: waits and streams at a time", bounds, "`hosted.observers`", "429 `OBSERVER_LIMIT`"],
        [
            "hosted: a run, waiting included",
            spell(config.Hosted().deadline),
            "`hosted.deadline`",
            "the task is FAILED",
        ],
        ["details of an approval", size(MAX_DETAILS), "", "`ValueError` in the handler"],
    ]


def size(count: int) -> str:
    """Return a number of bytes in the largest unit that fits."""
    for unit, scale in (("MiB", 1024 * 1024), ("KiB", 1024)):
        if count % scale == 0:
            return f"{count // scale} {unit}"
    return f"{count} bytes"


def spell(duration: str) -> str:
    """Return a duration of the configuration in words."""
    return f"{config.seconds(duration, 'a limit'):g} seconds"


def extensions_part() -> str:
    """Return the extensions that come with Dragoman."""
    rows = [[f"`{uri}`", behaviour.declaration.description] for uri, behaviour in SHIPPED.items()]
    return table(["URI", "what it is for"], rows)


def remote_differences_part() -> str:
    """Return what is not the same where a remote agent is served as ours."""
    rows = [[f"`{one.name}`", one.about, one.lost or "nothing", one.done] for one in REMOTE_DIFFERENCES]
    return table(["name", "what it is about", "what is lost", "what is done"], rows)


def topics_part() -> str:
    """Return the topics that are tested on PostgreSQL, each with its tests."""
    rows = [
        [
            topic.name,
            topic.about,
            str(len(topic.clauses)) if topic.clauses else "",
            "<br>".join(f"`{test}`" for test in topic.tests),
        ]
        for topic in TOPICS
    ]
    return table(["topic", "what has to hold", "clauses", "tests in every run"], rows)


PARTS: Mapping[str, Callable[[], str]] = {
    "remote_differences": remote_differences_part,
    "configuration": configuration_part,
    "commands": commands_part,
    "errors": errors_part,
    "limits": limits_part,
    "ranges": ranges_part,
    "agents": agents_part,
    "routes_0_3": generations.routes_part,
    "methods_0_3": generations.methods_part,
    "errors_0_3": generations.errors_part,
    "states": generations.states_part,
    "differences": generations.differences_part,
    "extensions": extensions_part,
    "topics": topics_part,
}
"""Name, as documents have it in `<!-- generated: NAME -->`, → what makes the part."""
