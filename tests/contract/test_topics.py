"""The table of seed B's topics and the tests say the same: each is proved on PostgreSQL, and no clause is left out."""

import pytest

from tests.contract.conftest import HOMES
from tests.contract.homes import PostgresHome
from tests.contract.topics import (
    BESIDE,
    TOPICS,
    Topic,
    function,
    hosted_files,
    is_always_on_postgres,
    is_for_sqlite_alone,
)
from tests.interaction.hosted.requirements import REQUIREMENTS

SEED = (
    "duplicate submissions, reconstruction, artifacts, pagination, cancellation, ownership, revocation, approvals and "
    "ambiguous dispatch"
)


def test_the_topics_are_those_of_the_seed_in_its_order() -> None:
    said = [one.removesuffix(" submissions") for one in SEED.replace(" and ", ", ").split(", ")]
    said = ["duplicates" if one == "duplicate" else one for one in said]
    assert [topic.name for topic in TOPICS] == said


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_every_test_that_a_topic_names_is_on_postgresql_in_every_run(topic: Topic) -> None:
    assert PostgresHome in HOMES
    assert len(topic.tests) == len(set(topic.tests)) >= 3
    for test in topic.tests:
        assert function(test).name.startswith("test_"), test
        assert is_always_on_postgres(test), test


def test_every_family_of_clauses_is_of_one_topic_or_of_none_by_name() -> None:
    families = [family for topic in TOPICS for family in topic.families]
    assert len(families) == len(set(families))
    assert BESIDE.isdisjoint(families)
    assert {one.split(".")[0] for one in REQUIREMENTS} == BESIDE | set(families)


def test_no_test_of_a_topics_clauses_is_for_sqlite_alone() -> None:
    files = set(hosted_files())
    assert len(files) > 15
    assert not [path.name for path in files if is_for_sqlite_alone(path)]
