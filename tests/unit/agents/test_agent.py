"""Agents: what they declare, and what is refused with its place."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.agents import Agent, AgentError, Provider, Run, Skill
from dragoman.gateway.extensions import IDEMPOTENCY, RUN_FACTS
from dragoman.model import AgentInterface, Extension

HERE = Path(__file__).name


def test_an_agent_needs_nothing_but_an_id() -> None:
    agent = Agent(id="greeter")
    assert (agent.name, agent.description, agent.version) == ("greeter", "The agent greeter.", "1.0.0")
    (skill,) = agent.skills
    assert (skill.id, skill.name, skill.tags) == ("greeter", "greeter", ("greeter",))
    assert not agent.has_handler
    settings = agent.settings
    assert (settings.replies, settings.idempotency, settings.on_lost_worker) == ("task", "always", "retry")
    assert (settings.max_attempts, settings.deadline) == (3, 3600.0)
    assert (settings.max_runs, settings.max_waiting) == (100, 1000)
    assert (settings.strict_input_modes, settings.input_modes) == (True, ("text/plain",))


def test_an_agent_knows_where_it_was_made() -> None:
    assert Path(Agent(id="a").place.rpartition(":")[0]).name == HERE


@pytest.mark.parametrize("id_", ["a", "0", "a-b_c", "a" * 63])
def test_ids_are_made_of_what_urls_and_files_take(id_: str) -> None:
    assert Agent(id=id_).id == id_


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"id": ""}, "id"),
        ({"id": "A"}, "id"),
        ({"id": "-a"}, "id"),
        ({"id": "_a"}, "id"),
        ({"id": "a b"}, "id"),
        ({"id": "a/b"}, "id"),
        ({"id": "a.b"}, "id"),
        ({"id": "ä"}, "id"),
        ({"id": "a\n"}, "id"),
        ({"id": "a" * 64}, "id"),
        ({"version": ""}, "version"),
        ({"skills": [Skill(id="", name="n", description="d", tags=["t"])]}, "skill"),
        ({"extended_skills": [Skill(id="", name="n", description="d", tags=["t"])]}, "skill"),
        ({"replies": "tasks"}, "replies"),
        ({"idempotency": "never"}, "idempotency"),
        ({"on_lost_worker": "ignore"}, "on_lost_worker"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"deadline": 0}, "deadline"),
        ({"deadline": -1}, "deadline"),
        ({"max_runs": 0}, "max_runs"),
        ({"max_waiting": -1}, "max_waiting"),
        ({"input_modes": ()}, "input_modes"),
        ({"output_modes": []}, "output_modes"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused_with_place_and_rule(wrong: dict[str, Any], rule: str) -> None:
    with pytest.raises(AgentError, match=rule) as refusal:
        Agent(**({"id": "a"} | wrong))
    assert f"{HERE}:" in str(refusal.value)
    assert repr(wrong.get("id", "a")) in str(refusal.value)


def test_an_agent_that_was_loaded_before_keeps_its_settings_when_the_configuration_is_wrong() -> None:
    agent = Agent(id="a")
    agent.configure(max_runs=7, deadline=5.0, max_waiting=0)
    assert (agent.settings.max_runs, agent.settings.deadline, agent.settings.max_attempts) == (7, 5.0, 3)
    assert agent.settings.max_waiting == 0
    with pytest.raises(AgentError, match="max_runs"):
        agent.configure(max_runs=0)


def test_the_idempotency_extension_is_declared_where_callers_must_ask_for_it() -> None:
    assert Agent(id="a").settings.capabilities.extensions == ()
    asked = Agent(id="a", idempotency="requested")
    assert asked.settings.capabilities.extensions == (IDEMPOTENCY,)


def test_the_idempotency_extension_is_declared_when_the_configuration_says_so() -> None:
    agent = Agent(id="a")
    agent.configure(idempotency="requested")
    assert agent.settings.capabilities.extensions == (IDEMPOTENCY,)
    agent.configure(idempotency="always")
    assert agent.settings.capabilities.extensions == ()


def test_extensions_are_declared_as_they_are_given_and_those_of_ours_by_their_uri() -> None:
    own = Extension.of("https://a.example/ext/v1", required=True, params={"most": 3})
    agent = Agent(id="a", extensions=[own, RUN_FACTS.uri, "urn:data"], idempotency="requested")
    declared = agent.settings.capabilities.extensions
    assert declared == (own, RUN_FACTS, Extension(uri="urn:data"), IDEMPOTENCY)
    agent.configure(max_runs=3)
    assert agent.settings.capabilities.extensions == declared
    required = Extension(uri=IDEMPOTENCY.uri, required=True)
    agent.configure(extensions=[required])
    (only,) = agent.settings.capabilities.extensions
    assert only == Extension(uri=IDEMPOTENCY.uri, description=IDEMPOTENCY.description, required=True)
    agent.configure(extensions=[], idempotency="always")
    assert agent.settings.capabilities.extensions == ()


@pytest.mark.parametrize("wrong", ["", "timing", "urn:a,urn:b", "urn:a b", "urn:", "urn:\xe9", "urn:a\r\nx"])
def test_an_extension_that_no_header_can_name_is_refused_with_its_place(wrong: str) -> None:
    with pytest.raises(AgentError, match="must be a URI") as refusal:
        Agent(id="a", extensions=[wrong])
    assert f"{HERE}:" in str(refusal.value)
    with pytest.raises(AgentError, match="declared twice"):
        Agent(id="a", extensions=["urn:a", Extension(uri="urn:a", required=True)])


@pytest.mark.parametrize("params", [{"a": 2**53}, {"a": [{"b": -(2**53)}]}])
def test_params_with_a_number_that_readers_would_not_agree_on_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(AgentError, match="urn:a: params: a card holds whole numbers up to"):
        Agent(id="a", extensions=[Extension.of("urn:a", params=params)])
    good = Extension.of("urn:a", params={"a": [2**53 - 1, -(2**53) + 1, 1e300, True, None, "x"]})
    assert Agent(id="a", extensions=[good]).settings.capabilities.extensions == (good,)


def test_a_card_says_what_the_agent_declares() -> None:
    skill = Skill(id="s", name="S", description="d", tags=["t"])
    agent = Agent(
        id="a",
        name="A",
        description="d",
        version="2",
        skills=[skill],
        input_modes=["*/*"],
        output_modes=["text/html"],
        streaming=False,
        provider=Provider(organization="o", url="u"),
        documentation_url="docs",
        icon_url="icon",
    )
    interfaces = (AgentInterface(url="u", binding="JSONRPC", version="1.0"),)
    card = agent.card(interfaces)
    assert (card.name, card.description, card.version) == ("A", "d", "2")
    assert (card.interfaces, card.skills) == (interfaces, (skill,))
    assert (card.input_modes, card.output_modes) == (("*/*",), ("text/html",))
    assert (card.capabilities.streaming, card.capabilities.push_notifications) == (False, False)
    assert card.provider == Provider(organization="o", url="u")
    assert (card.documentation_url, card.icon_url) == ("docs", "icon")


def test_a_skill_has_no_empty_member_in_a_card() -> None:
    agent = Agent(id="a", skills=[Skill(id="s", name="", description="", tags=["", "t"])])
    bare = Skill(id="b", name="B", description="", tags=[])
    assert agent.card(()).skills == (Skill(id="s", name="s", description="s", tags=["t"]),)
    agent = Agent(id="a", skills=[bare])
    assert agent.card(()).skills == (Skill(id="b", name="B", description="B", tags=["b"]),)


def test_an_extended_card_has_more_skills_and_is_declared_for_that() -> None:
    plain, more = (Skill(id=one, name=one, description="d", tags=["t"]) for one in "ab")
    agent = Agent(id="a", skills=[plain], extended_skills=[more])
    card, extended = agent.card(()), agent.card((), extended=True)
    assert (card.skills, extended.skills) == ((plain,), (plain, more))
    assert card.capabilities.extended_card and extended.capabilities.extended_card
    agent.configure(extended_card=False)
    assert not agent.card(()).capabilities.extended_card
    other = Agent(id="a", skills=[plain])
    assert not other.card(()).capabilities.extended_card
    other.configure(extended_card=True)
    assert other.card(()).capabilities.extended_card


def count_words(text: str) -> str:
    """Count the words
    of a text.

    Not in the card.
    """
    return str(len(text.split()))


def test_a_function_is_an_agent_whose_name_and_docstring_make_the_card() -> None:
    agent = Agent.from_function(count_words)
    assert (agent.id, agent.name) == ("count_words", "count words")
    assert agent.description.split() == "Count the words of a text.".split()
    assert agent.has_handler
    file, _, line = agent.place.rpartition(":")
    assert (Path(file).name, int(line)) == (HERE, count_words.__code__.co_firstlineno)


def test_what_is_said_about_a_function_goes_over_what_it_says_itself() -> None:
    agent = Agent.from_function(count_words, id="words", name="Words", description="d", replies="message")
    assert (agent.id, agent.name, agent.description, agent.settings.replies) == (
        "words",
        "Words",
        "d",
        "message",
    )


def _hidden(text: str) -> str:
    return text


@pytest.mark.parametrize("function", [_hidden, lambda text: text])
def test_a_function_whose_name_is_no_id_is_refused_at_its_own_place(function: Any) -> None:
    with pytest.raises(AgentError, match="id") as refusal:
        Agent.from_function(function)
    assert f"{HERE}:" in str(refusal.value)
    assert Agent.from_function(function, id="shown").id == "shown"


def test_a_handler_stays_the_function_that_it_is() -> None:
    agent = Agent(id="a")

    @agent.handler
    async def answer(run: Run) -> str:
        return run.text

    assert agent.has_handler
    assert answer.__name__ == "answer"
