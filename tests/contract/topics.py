"""The nine topics that seed B wants tested on PostgreSQL, and the tests that do so.

A topic has families of clauses of the hosted profile (`tests/interaction/hosted/requirements.py`): every test of theirs
runs on PostgreSQL with `--store postgres`. Beside them stand tests that are on PostgreSQL in every run.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.harness.paths import CHECKOUT
from tests.interaction.hosted.requirements import ELSEWHERE, REQUIREMENTS


@dataclass(frozen=True)
class Topic:
    """One topic.

    Attributes:
        name: in the words of the seed.
        about: what has to hold.
        families: the clauses of the hosted profile that are about it, by what stands before the point of their ids.
        tests: what proves it on PostgreSQL in every run, as `file::name`.
    """

    name: str
    about: str
    families: tuple[str, ...]
    tests: tuple[str, ...]

    @property
    def clauses(self) -> list[str]:
        """The ids of its clauses."""
        return [one for one in REQUIREMENTS if one.split(".")[0] in self.families]


TOPICS = (
    Topic(
        "duplicates",
        "a message that is sent again, also to another server, is one run",
        ("identity",),
        (
            "tests/contract/test_accepting.py::test_fifty_equal_messages_at_once_are_one_task_and_one_run",
            "tests/contract/test_accepting.py::test_another_message_under_a_used_id_is_refused_and_stores_nothing",
            "tests/durability/test_replicas.py::test_a_message_that_is_sent_to_both_is_one_task",
        ),
    ),
    Topic(
        "reconstruction",
        "what was committed is told again by any server, after a crash too",
        ("get", "stream", "subscribe", "send"),
        (
            "tests/contract/test_taking_over.py::test_the_journal_keeps_its_order_and_values_over_attempts",
            "tests/durability/test_replicas.py::test_a_run_in_flight_goes_on_after_its_only_server_was_killed",
            "tests/durability/test_replicas.py::test_whoever_observes_at_one_server_sees_what_runs_at_the_other",
            "tests/deploy/test_fleet.py::test_a_stream_goes_on_at_the_other_server_when_its_own_is_stopped",
        ),
    ),
    Topic(
        "artifacts",
        "results are whole, verified, and those of the attempt that counts",
        ("output", "damage", "json"),
        (
            "tests/contract/test_taking_over.py::test_artifacts_after_the_last_journaled_point_no_longer_count",
            "tests/contract/test_pages.py::test_history_and_artifacts_come_as_far_as_they_are_asked_for",
            "tests/contract/test_evidence.py::test_the_journal_keeps_what_a_step_gave_of_a_gathered_result",
        ),
    ),
    Topic(
        "pagination",
        "pages join without a gap, by cursors that outlive their task",
        ("list",),
        (
            "tests/contract/test_pages.py::test_pages_are_full_but_the_last_which_says_that_it_is",
            "tests/contract/test_pages.py::test_a_cursor_outlives_the_task_it_was_made_from",
            "tests/contract/test_pages.py"
            "::test_tasks_that_stay_where_they_are_come_exactly_once_while_others_come_and_move",
        ),
    ),
    Topic(
        "cancellation",
        "a cancel at any server is kept at once and stops the handler",
        ("cancel",),
        (
            "tests/contract/test_ending.py::test_of_many_cancels_at_once_one_counts",
            "tests/contract/test_ending.py::test_the_first_ending_of_a_task_stays_whoever_races_for_it",
            "tests/durability/test_replicas.py::test_a_cancel_at_one_server_stops_the_handler_at_the_other",
        ),
    ),
    Topic(
        "ownership",
        "a task is one principal's with one agent, and a run one server's",
        ("strangers", "workspace"),
        (
            "tests/contract/test_scopes.py::test_a_task_of_another_scope_does_not_exist_in_any_operation",
            "tests/contract/test_taking_over.py::test_of_many_that_take_a_run_over_one_gets_it",
            "tests/durability/test_replicas.py"
            "::test_the_runs_of_a_frozen_server_are_taken_over_and_it_can_write_nothing_to_them",
        ),
    ),
    Topic(
        "revocation",
        "what is taken from somebody holds at every server within seconds",
        ("evidence", "token", "tenant"),
        (
            "tests/contract/test_tenants.py::test_a_revoked_token_counts_no_more_and_is_still_told_of",
            "tests/contract/test_evidence.py::test_a_run_with_a_withheld_source_is_neither_listed_nor_counted",
            "tests/durability/test_replicas.py"
            "::test_what_a_command_changes_of_tenants_counts_at_both_at_once",
        ),
    ),
    Topic(
        "approvals",
        "a decision is made once, about what was shown, by no message",
        ("approval", "resume"),
        (
            "tests/contract/test_approvals.py::test_of_decisions_at_once_one_counts",
            "tests/contract/test_approvals.py::test_what_was_shown_must_be_what_is_there",
            "tests/contract/test_approvals.py::test_no_message_decides_and_none_is_stored",
        ),
    ),
    Topic(
        "ambiguous dispatch",
        "a start or a send whose outcome nobody knows is never done twice",
        (),
        (
            "tests/contract/test_dispatching.py"
            "::test_what_one_server_is_about_to_tell_no_other_gets_for_a_while",
            "tests/durability/test_temporal.py::test_a_start_whose_reply_is_lost_is_one_start",
            "tests/durability/test_temporal.py"
            "::test_a_run_that_temporal_has_forgotten_fails_and_is_never_started_again",
            "tests/contract/test_shared_delegating.py"
            "::test_whoever_waits_for_a_server_that_dies_is_told_that_nobody_knows",
        ),
    ),
)

BESIDE = frozenset(
    "admin audit auth card client deadline input limits observers profile retired rpc scope sdk unsupported version"
    " window".split()
)
"""Families of clauses that are of no topic: the surface itself, and who may use how much of it."""

STORE_FIXTURES = frozenset({"home", "store", "tenants"})
"""What tests of `tests/contract` have one of for each store."""


DATABASES = ("databases()", "PostgresServer()", "with Fleet()", "url: str")
"""How tests of other folders come by a database; the last is the fixture of `tests/durability`."""


def function(test: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Return the definition of a test.

    Raises:
        StopIteration: there is none.
    """
    path, _, name = test.partition("::")
    module = ast.parse((CHECKOUT / path).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return next(node for node in module.body if isinstance(node, functions) and node.name == name)


def is_always_on_postgres(test: str) -> bool:
    """Tell whether a test has a PostgreSQL database in every run, whatever `--store` says."""
    path = CHECKOUT / test.partition("::")[0]
    source = path.read_text(encoding="utf-8")
    if path.parent.name == "contract":
        return not STORE_FIXTURES.isdisjoint(argument.arg for argument in function(test).args.args)
    return any(one in source for one in DATABASES)


def is_for_sqlite_alone(path: Path) -> bool:
    """Tell whether any test of a file is left out with `--store postgres`."""
    return "mark.sqlite" in path.read_text(encoding="utf-8")


def hosted_files() -> Iterator[Path]:
    """Give the files that prove clauses of the topics."""
    yield from (CHECKOUT / "tests" / "interaction" / "hosted").glob("test_*.py")
    clauses = {one for topic in TOPICS for one in topic.clauses}
    yield from (CHECKOUT / path for one, (path, _) in ELSEWHERE.items() if one in clauses)
