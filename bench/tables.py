"""Shows a report: tables on a terminal, plain aligned lines anywhere else."""

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from bench.results import Check, Ratio, Report, Spread, Summary

_LABELS = {
    "rate": "replies/s",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "longest_ms": "max ms",
    "late_p99_ms": "late p99 ms",
    "cpu_us": "CPU µs/reply",
    "rate_sqlite": "SQLite replies/s",
    "rate_ratio": "PostgreSQL / SQLite",
    "cpu_us_sqlite": "SQLite CPU µs/reply",
    "cpu_us_database": "database CPU µs/reply",
    "client_busy": "load gen. busy",
    "kib_per_stream": "KiB/stream",
    "runs_of_two": "runs of a message sent twice",
    "held_after_kill": "held after SIGKILL",
    "start_s": "start s",
    "rss_mib": "RSS MiB",
    "anon_mib": "anon MiB",
}


def show(report: Report) -> None:
    """Print the whole report to stdout."""
    for scenario in dict.fromkeys(summary.scenario for summary in report.summaries):
        chosen = [summary for summary in report.summaries if summary.scenario == scenario]
        _show_summaries(scenario, chosen)
        ratios = [ratio for ratio in report.ratios if ratio.scenario == scenario]
        if ratios:
            _show_ratios(scenario, ratios)
    if report.checks:
        _show_checks(report.checks)
    for note in report.notes:
        print(f"note: {note}")


def _show_summaries(scenario: str, summaries: Sequence[Summary]) -> None:
    metrics = list(dict.fromkeys(name for one in summaries for name in one.metrics))
    cases = any(one.case for one in summaries)
    head = [*(["case"] if cases else []), "server"]
    head += [_LABELS.get(name, name) for name in metrics] + ["errors"]
    rows = [
        [
            *([one.case] if cases else []),
            one.server,
            *(_spread(one.metrics.get(name)) for name in metrics),
            str(one.errors),
        ]
        for one in summaries
    ]
    _show(f"{scenario}: median [least-most] of the rounds", head, rows)


def _show_ratios(scenario: str, ratios: Sequence[Ratio]) -> None:
    rows = [
        [
            *([one.case] if any(other.case for other in ratios) else []),
            f"dragoman / {one.peer}",
            _LABELS.get(one.metric, one.metric),
            _spread(Spread(one.median, one.least, one.most)),
        ]
        for one in ratios
    ]
    head = ["ratio", "of", "median [least-most]"]
    _show(f"{scenario}: same-round ratios", ["case", *head] if len(rows[0]) == 4 else head, rows)


def _show_checks(checks: Iterable[Check]) -> None:
    rows = [[one.verdict, one.bound, "-" if one.value is None else _number(one.value)] for one in checks]
    _show("bounds", ["verdict", "bound", "measured"], rows)


def _show(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if sys.stdout.isatty():
        table = Table(title=title, title_justify="left")
        for name in head:
            table.add_column(name)
        for row in rows:
            table.add_row(*row)
        Console().print(table)
        return
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    print(f"\n{title}")
    for row in [head, *rows]:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    if spread.least == spread.most:
        return _number(spread.median)
    return f"{_number(spread.median)} [{_number(spread.least)}-{_number(spread.most)}]"


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"
