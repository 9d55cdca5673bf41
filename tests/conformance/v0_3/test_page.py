"""`docs/reference/conformance.md` says what the kit is expected to find, and `test_kit.py` that it does find that."""

import re

from tests.conformance.page import PAGE, table
from tests.conformance.v0_3.expected import FAILED, REPORTS, REVISION

OUTCOMES = ("passed", "failed", "skipped", "xfailed", "xpassed")


def report(category: str, transport: str) -> str:
    return category if transport == "both" else f"{category}_{transport}"


def test_the_table_of_results_is_what_is_expected() -> None:
    shown = {
        report(category, transport): {
            outcome: int(count) for outcome, count in zip(OUTCOMES, counts, strict=True) if int(count)
        }
        for category, transport, *counts in table("category", "transport", *OUTCOMES)
    }
    assert shown == REPORTS


def test_each_test_that_fails_is_explained() -> None:
    failures = PAGE.partition("#### Each failure\n")[2].partition("\n#### ")[0]
    explained = set(re.findall(r"^\*\*`(\w+)`\*\*", failures, re.MULTILINE))
    assert explained == {name.partition("::")[2] for names in FAILED.values() for name in names}


def test_skips_add_up() -> None:
    columns = ("mandatory", "capabilities jsonrpc", "capabilities rest")
    rows = list(table("tests that are skipped", *columns))
    for place, column in enumerate(columns, 1):
        counted = sum(int(row[place]) for row in rows if row[place])
        name = column.replace(" ", "_") if " " in column else f"{column}_jsonrpc"
        assert counted == REPORTS[name]["skipped"]


def test_what_passes_anywhere_is_no_more_than_what_passes() -> None:
    for category, transport, here, there, card in table(
        "category", "transport", "passed here", "also there", "of these, about the card"
    ):
        assert int(here) == REPORTS[report(category, transport)]["passed"]
        assert int(here) > int(there) >= int(card)


def test_the_page_names_the_revision() -> None:
    assert PAGE.count(REVISION) == 2
