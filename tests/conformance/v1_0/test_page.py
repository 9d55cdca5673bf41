"""`docs/reference/conformance.md` says what the 1.0 kit is expected to find, and `test_kit.py` that it does."""

import re

from tests.conformance.page import PAGE, table
from tests.conformance.v1_0.expected import REVISION, RUNS
from tests.harness.paths import CHECKOUT

COLUMNS = ("agent", "statuses", "transport", "tests", "passed", "failed", "skipped")
SKIPPED = {
    f"{agent} {transport}": (agent, transport)
    for agent in ("tck", "tck-min")
    for transport in ("http_json", "jsonrpc")
}


def test_the_table_of_results_is_what_is_expected() -> None:
    shown = [
        ((agent, statuses, transport, tests), [int(count) for count in counts])
        for agent, statuses, transport, tests, *counts in table(*COLUMNS)
    ]
    assert shown == [
        (
            (run.agent, run.table, run.transport, run.tests),
            [run.counts.get(outcome, 0) for outcome in ("passed", "failed", "skipped")],
        )
        for run in RUNS
    ]
    assert all(set(run.counts) <= {"passed", "failed", "skipped"} for run in RUNS)


def test_each_test_that_fails_is_explained() -> None:
    failures = PAGE.partition("#### Each failure in 1.0\n")[2].partition("\n#### ")[0]
    explained = set(re.findall(r"^\*\*`(\w+)`\*\*", failures, re.MULTILINE))
    assert explained == {name.partition("::")[2] for run in RUNS for name in run.failed}
    assert all(len(run.failed) == run.counts.get("failed", 0) for run in RUNS)


def test_skips_add_up() -> None:
    rows = list(table("tests that are skipped", *SKIPPED))
    for place, (agent, transport) in enumerate(SKIPPED.values(), 1):
        (run,) = (
            run
            for run in RUNS
            if (run.agent, run.table, run.transport, run.tests) == (agent, "1.0.0", transport, "all")
        )
        assert sum(int(row[place]) for row in rows if row[place]) == run.counts["skipped"]


def test_what_passes_anywhere_is_no_more_than_what_passes() -> None:
    passed = {
        run.transport: run.counts["passed"]
        for run in RUNS
        if (run.agent, run.table, run.tests) == ("tck", "1.0.0", "all")
    }
    rows = list(table("transport", "passed here", "also there", "of these, about the card"))
    assert {transport: int(here) for transport, here, _, _ in rows} == passed
    assert all(int(here) > int(there) >= int(card) for _, here, there, card in rows)


def test_every_difference_has_its_reason() -> None:
    rows = list(table("", "the kit, for 1.0.0", "here", "what is done"))
    assert [row[0] for row in rows] == ["C1", "C2", "C3", "C4", "C5"]
    assert all(all(row) for row in rows)


def test_the_page_and_continuous_integration_name_the_revision() -> None:
    assert PAGE.count(REVISION) == 2
    script = (CHECKOUT / ".ci" / "conformance").read_text(encoding="utf-8")
    wanted, taken = re.findall(r"^    pins=\((\w{40}) (\w{40})\)$", script, re.MULTILINE)[0]
    assert taken == REVISION
    assert PAGE.count(wanted) == 1
    workflow = (CHECKOUT / ".github" / "workflows" / "conformance.yml").read_text(encoding="utf-8")
    assert 'generation: ["1.0", "0.3"]' in workflow and ".ci/conformance" in workflow
