"""Agent: a card plus a handler."""

import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec

from dragoman.agents.handler import Runner, runner
from dragoman.gateway.execute import Execution
from dragoman.gateway.extensions import IDEMPOTENCY, SHIPPED
from dragoman.gateway.ports import AgentSettings
from dragoman.model.card import AgentCard, AgentInterface, Capabilities, Extension, Provider, Skill
from dragoman.model.payload import unpack

H = TypeVar("H", bound=Callable[..., Any])
Hook = Callable[[], Awaitable[None] | None]
Apply = Callable[[], None]

ID_PATTERN = r"[a-z0-9][a-z0-9_-]{0,62}"

LARGEST_INTEGER = 2**53 - 1

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-+\--~]+")
"""A URI as it stands in a header whose values commas part."""


class AgentError(Exception):
    """An agent is not fit to be served; the message names the agent, the place and the remedy.

    Attributes:
        rule: what is wrong, without the place.
    """

    def __init__(self, rule: str, place: str = "") -> None:
        super().__init__(f"{place}: {rule}" if place else rule)
        self.rule = rule


class Agent:
    """An agent: what its card says, and the handler that answers messages.

    A handler takes a Run and may be `async def` or `def`, return its result or yield it in chunks:

        agent = Agent(id="greeter", name="Greeter", description="Greets.", skills=[...])

        @agent.handler
        async def greet(run: Run) -> str:
            return f"Hello, {run.text}!"
    """

    def __init__(
        self,
        *,
        id: str,
        name: str = "",
        description: str = "",
        version: str = "1.0.0",
        skills: Sequence[Skill] = (),
        extended_skills: Sequence[Skill] = (),
        replies: str = "task",
        input_modes: Sequence[str] = ("text/plain",),
        output_modes: Sequence[str] = ("text/plain",),
        streaming: bool = True,
        push: bool = False,
        extensions: Sequence[Extension | str] = (),
        provider: Provider | None = None,
        documentation_url: str = "",
        icon_url: str = "",
        strict_input_modes: bool = True,
        idempotency: str = "always",
        on_lost_worker: str = "retry",
        max_attempts: int = 3,
        deadline: float = 3600.0,
        parked_deadline: float = 7 * 86400.0,
        max_runs: int = 100,
        max_waiting: int = 1000,
        legacy_card: bool = True,
        place: str = "",
    ) -> None:
        """Describe an agent.

        Args:
            id: its name in URLs: lower-case letters, digits, `_` and `-`, at most 63.
            name: its name for people; the id if left out.
            description: what it does.
            version: the agent's own version.
            skills: what it can do; one made from name and description if left out. A skill's name, description and
                tags are made from its id where they are left empty.
            extended_skills: what it can do besides, which only the extended card says, to authenticated callers.
            replies: "task" (every message becomes a task), "message" (a bare message each) or "either".
            input_modes: media types of parts that it takes; `*/*` for all.
            output_modes: media types that it may answer with.
            streaming: whether callers may stream.
            push: whether callers may have a URL told of a task's events.
            extensions: those that callers may activate: whole, or the URI alone of one that comes with Dragoman.
            provider, documentation_url, icon_url: shown in the card.
            strict_input_modes: refuse parts of other media types.
            idempotency: "always" (a repeated messageId is the same message) or "requested".
            on_lost_worker: "retry" enters a run again that a crash interrupted; "fail" ends it as FAILED.
            max_attempts: how often a run is entered at most, if crashes interrupt it.
            deadline: seconds after which a run is ended as FAILED; those that it waits for its caller do not count.
            parked_deadline: seconds that a run may wait for its caller before it is ended as FAILED.
            max_runs: runs at a time; further ones wait.
            max_waiting: runs that may wait; messages that would begin further ones are refused.
            legacy_card: let a card that is asked for without a version have the members that A2A 0.3 callers need.
            place: file and line to name in messages; those of the call if left out.

        Raises:
            AgentError: a value is not allowed.
        """
        frame = sys._getframe(1)
        self.place = place or f"{frame.f_code.co_filename}:{frame.f_lineno}"
        self.id = id
        for modes, named in ((input_modes, "input_modes"), (output_modes, "output_modes")):
            if isinstance(modes, str):
                raise AgentError(f'{self.place}: agent {id!r}: {named} must be a list, such as ["{modes}"]')
        for duration, named in ((deadline, "deadline"), (parked_deadline, "parked_deadline")):
            if not isinstance(duration, int | float):
                raise AgentError(f"{self.place}: agent {id!r}: {named} must be a number of seconds")
        self.name = name or id
        self.description = description or f"The agent {self.name}."
        self.version = version
        self.skills = self._skills(skills)
        self.output_modes = tuple(output_modes)
        self._extensions = self._declared(extensions)
        self.provider = provider
        self.documentation_url = documentation_url
        self.icon_url = icon_url
        self.settings = AgentSettings(
            replies=replies,
            capabilities=_capabilities(
                streaming, push, idempotency, self._extensions, extended=bool(extended_skills)
            ),
            input_modes=tuple(input_modes),
            strict_input_modes=strict_input_modes,
            idempotency=idempotency,
            on_lost_worker=on_lost_worker,
            max_attempts=max_attempts,
            deadline=deadline,
            parked_deadline=parked_deadline,
            max_runs=max_runs,
            max_waiting=max_waiting,
            legacy_card=legacy_card,
            extended_card=bool(extended_skills),
            extended_skills=tuple(map(_whole, extended_skills)),
        )
        self._runner: Runner | None = None
        self._startup: list[Hook] = []
        self._shutdown: list[Hook] = []
        self._changing: Callable[[Apply], object] | None = None
        self.check()

    @classmethod
    def from_function(cls, function: Callable[[str], Any], *, id: str = "", **card: Any) -> "Agent":
        """Return an agent of a plain function from text to an answer. Its name and docstring make the card.

        Raises:
            AgentError: as `Agent`.
        """
        code = getattr(inspect.unwrap(function), "__code__", None)
        frame = sys._getframe(1)
        place = (
            f"{code.co_filename}:{code.co_firstlineno}"
            if code
            else f"{frame.f_code.co_filename}:{frame.f_lineno}"
        )
        named = getattr(function, "__name__", "")
        if not id and not re.fullmatch(ID_PATTERN, named.lower()):
            raise AgentError(f'{place}: a function named {named!r} gives no agent id; say id="..." as well')
        summary = (function.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")
        card = {"name": named.replace("_", " ") or id, "description": summary, **card}
        agent = cls(id=id or named.lower(), place=place, **card)
        agent._runner = runner(function, takes_text=True)
        return agent

    def handler(self, function: H) -> H:
        """Make `function` the agent's handler (a decorator)."""
        self._runner = runner(function, takes_text=False)
        return function

    def on_startup(self, hook: Hook) -> Hook:
        """Have `hook` called on the agent's loop before the first run (a decorator)."""
        self._startup.append(hook)
        return hook

    def on_shutdown(self, hook: Hook) -> Hook:
        """Have `hook` called on the agent's loop after the last run (a decorator)."""
        self._shutdown.append(hook)
        return hook

    @property
    def home(self) -> str:
        """See `gateway.execute.AgentRuntime`."""
        return self.id

    @property
    def has_handler(self) -> bool:
        """Whether there is a handler."""
        return self._runner is not None

    def card(
        self, interfaces: tuple[AgentInterface, ...], *, bearer: bool = False, extended: bool = False
    ) -> AgentCard:
        """Return the agent's card, or its extended one, with the interfaces that it is served at.

        `bearer` if callers must show a token.
        """
        return AgentCard(
            name=self.name,
            description=self.description,
            version=self.version,
            interfaces=interfaces,
            capabilities=self.settings.capabilities,
            skills=(*self.skills, *(self.settings.extended_skills if extended else ())),
            input_modes=self.settings.input_modes,
            output_modes=self.output_modes,
            provider=self.provider,
            documentation_url=self.documentation_url,
            icon_url=self.icon_url,
            bearer=bearer,
        )

    def describe(
        self,
        *,
        name: str,
        description: str,
        version: str,
        skills: Sequence[Skill],
        output_modes: Sequence[str],
        provider: Provider | None,
        documentation_url: str,
        icon_url: str,
    ) -> None:
        """Have the card say something else from now on. To be called by `change` once the agent is served."""
        self.name, self.description, self.version = name, description, version
        self.skills = self._skills(skills)
        self.output_modes = tuple(output_modes)
        self.provider = provider
        self.documentation_url, self.icon_url = documentation_url, icon_url

    def change(self, apply: Apply) -> None:
        """Have the card changed by `apply`: where it is read, or at once if nobody serves the agent."""
        if self._changing is None:
            apply()
        else:
            self._changing(apply)

    def on_change(self, hook: Callable[[Apply], object]) -> None:
        """Have `hook` called, on the agent's loop, with what changes the card, to call it where that is read."""
        self._changing = hook

    def configure(self, *, extensions: Sequence[Extension | str] | None = None, **changes: Any) -> None:
        """Replace settings by those of the configuration.

        Raises:
            AgentError: a value is not allowed.
        """
        if extensions is not None:
            self._extensions = self._declared(extensions)
        before = self.settings.capabilities
        push = changes.pop("push", before.push_notifications)
        settings = msgspec.structs.replace(self.settings, **changes)
        capabilities = _capabilities(
            before.streaming,
            push,
            settings.idempotency,
            self._extensions,
            extended=settings.extended_card,
        )
        self.settings = msgspec.structs.replace(settings, capabilities=capabilities)
        self.check()

    def check(self) -> None:
        """Make sure that the agent can be served.

        Raises:
            AgentError: it cannot.
        """
        settings = self.settings
        rules = [
            (bool(re.fullmatch(ID_PATTERN, self.id)), f"id {self.id!r} must match {ID_PATTERN}"),
            (
                settings.replies in ("task", "message", "either"),
                'replies must be "task", "message" or "either"',
            ),
            (settings.idempotency in ("always", "requested"), 'idempotency must be "always" or "requested"'),
            (settings.on_lost_worker in ("retry", "fail"), 'on_lost_worker must be "retry" or "fail"'),
            (settings.max_attempts >= 1, "max_attempts must be at least 1"),
            (settings.deadline > 0, "deadline must be above 0 seconds"),
            (settings.parked_deadline > 0, "parked_deadline must be above 0 seconds"),
            (settings.max_runs >= 1, "max_runs must be at least 1"),
            (settings.max_waiting >= 0, "max_waiting must be at least 0"),
            (
                bool(settings.input_modes and self.output_modes),
                "input_modes and output_modes must not be empty",
            ),
            (bool(self.version), "version must not be empty"),
            (
                all(skill.id for skill in (*self.skills, *settings.extended_skills)),
                "every skill must have an id",
            ),
        ]
        for holds, rule in rules:
            if not holds:
                raise AgentError(f"agent {self.id!r}: {rule}", self.place)

    def _skills(self, skills: Sequence[Skill]) -> tuple[Skill, ...]:
        made = Skill(id=self.id, name=self.name, description=self.description, tags=(self.id,))
        return tuple(map(_whole, skills)) or (made,)

    def _declared(self, extensions: Sequence[Extension | str]) -> tuple[Extension, ...]:
        declared: dict[str, Extension] = {}
        for given in extensions:
            uri = given if isinstance(given, str) else given.uri
            if not _URI.fullmatch(uri):
                rule = f"extension {uri!r} must be a URI, such as urn:example:ext:timing:v1, without a comma"
                raise AgentError(f"agent {self.id!r}: {rule}", self.place)
            if uri in declared:
                raise AgentError(f"agent {self.id!r}: the extension {uri} is declared twice", self.place)
            extension = Extension(uri=uri) if isinstance(given, str) else given
            if _has_large_number(unpack(extension.params)):
                rule = f"extension {uri}: params: a card holds whole numbers up to 2**53 - 1; write larger ones as text"
                raise AgentError(f"agent {self.id!r}: {rule}", self.place)
            if uri in SHIPPED and not extension.description:
                description = SHIPPED[uri].declaration.description
                extension = msgspec.structs.replace(extension, description=description)
            declared[uri] = extension
        return tuple(declared.values())

    async def startup(self) -> None:
        """See `gateway.execute.AgentRuntime`.

        Raises:
            AgentError: a hook failed.
        """
        try:
            await _call(self._startup)
        except Exception as error:
            raise AgentError(
                f"{self.place}: agent {self.id!r}: its startup hook raised {type(error).__name__}: {error}"
            ) from error

    async def shutdown(self) -> None:
        """See `gateway.execute.AgentRuntime`."""
        await _call(self._shutdown)

    def run(self, execution: Execution) -> Awaitable[None]:
        """See `gateway.execute.AgentRuntime`."""
        if self._runner is None:
            raise AgentError(f"{self.place}: agent {self.id!r} has no handler")
        return self._runner(execution)


def _capabilities(
    streaming: bool, push: bool, idempotency: str, extensions: tuple[Extension, ...], *, extended: bool
) -> Capabilities:
    if idempotency == "requested" and IDEMPOTENCY.uri not in {extension.uri for extension in extensions}:
        extensions = (*extensions, IDEMPOTENCY)
    return Capabilities(
        streaming=streaming, push_notifications=push, extended_card=extended, extensions=extensions
    )


def _whole(skill: Skill) -> Skill:
    """Return a skill without empty members, which are required in a card (A2A 1.0 §5.7)."""
    name, tags = skill.name or skill.id, [tag for tag in skill.tags if tag] or [skill.id]
    return msgspec.structs.replace(skill, name=name, description=skill.description or name, tags=tags)


def _has_large_number(value: Any) -> bool:
    """Tell whether a JSON value holds an integer that not every reader takes for the same one (RFC 7493 §2.2)."""
    if isinstance(value, dict):
        return any(map(_has_large_number, value.values()))
    if isinstance(value, list):
        return any(map(_has_large_number, value))
    return isinstance(value, int) and abs(value) > LARGEST_INTEGER


async def _call(hooks: Sequence[Hook]) -> None:
    for hook in hooks:
        pending = hook()
        if pending is not None:
            await pending
