"""`dragoman conformance`: run an upstream conformance kit on an agent, and keep what came of it."""

import datetime
import json
import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.kits import OUTCOMES, Kit, KitError, Report, kit_at, python_of, revision_of, run_kit
from dragoman.cli.output import print_table, tame
from dragoman.cli.settings import JsonOption, refuse

LEVELS = ("must", "should", "may")


def conformance(
    tck: Annotated[Path, typer.Option("--tck", help="A checkout of a2aproject/a2a-tck, for A2A 1.0 or 0.3.")],
    url: Annotated[str, typer.Option("--url", help="The agent's base URL, such as .../agents/tck.")],
    out: Annotated[Path, typer.Option("--out", help="The folder for reports; made if it is not there.")],
    python: Annotated[
        Path | None,
        typer.Option("--python", help="The Python that the kit is installed for; its own .venv if left out."),
    ] = None,
    transport: Annotated[
        list[str] | None,
        typer.Option(
            "--transport", help="One by the kit's name; may be repeated. All that we serve if left out."
        ),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option("--level", help="Of the 1.0 kit: the only level to run: must, should or may."),
    ] = None,
    further: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGS]", help="Arguments for pytest, to the 1.0 kit.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run an upstream conformance kit on an agent.

    Keeps all that the kit writes (HTML, JUnit, compatibility), and summary.md on one page with the exact revisions.
    Exits 1 if a test failed. The kit's agents are served by `dragoman serve --conformance`.
    """
    if level is not None and level not in LEVELS:
        refuse(f"--level {level}: there is {', '.join(LEVELS)}")
    if not url.startswith(("http://", "https://")):
        refuse(f"--url {url} is no URL of an agent; write one such as http://127.0.0.1:8080/agents/tck")
    try:
        kit = kit_at(tck.absolute())
        runs = kit.runs(url.rstrip("/"), transport or (), level, further or ())
        program = python_of(tck, python)
        out.mkdir(parents=True, exist_ok=True)
    except (KitError, OSError) as error:
        refuse(error)
    reports: list[Report] = []
    try:
        for name, arguments in runs.items():
            typer.echo(f"running the kit: {' '.join(arguments)}", err=True)
            reports += list(run_kit(kit, program, name, arguments, out))
    except KitError as error:
        refuse(error, 1)
    facts = _facts(kit, url, runs)
    summary = out / "summary.md"
    summary.write_text("".join(f"{line}\n" for line in _summary(facts, reports)), encoding="utf-8")
    if as_json:
        print(json.dumps({**facts, "reports": [_document(report) for report in reports]}, indent=2))
    else:
        rows = [
            {"run": report.name, **{outcome: str(count) for outcome, count in report.counts.items()}}
            for report in reports
        ]
        print_table(rows)
        typer.echo(f"{summary} tells what failed and what was skipped", err=True)
    raise typer.Exit(1 if any(report.counts["failed"] for report in reports) else 0)


def _facts(kit: Kit, url: str, runs: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return what was run on what, exactly."""
    import dragoman

    package = Path(dragoman.__file__)
    own = revision_of(package)
    return {
        "kit": f"a2aproject/a2a-tck for A2A {kit.generation}",
        "kit_revision": revision_of(kit.checkout / "run_tck.py") or "unknown: the checkout has no history",
        "agent": url,
        "dragoman": f"{dragoman.__version__}{f', revision {own}' if own else ''}",
        "python": platform.python_version(),
        "when": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "arguments": "; ".join(" ".join(arguments) for arguments in runs.values()),
    }


def _summary(facts: dict[str, str], reports: Sequence[Report]) -> Iterator[str]:
    yield from ("# Conformance", "", "| | |", "|---|---|")
    yield from (f"| {name.replace('_', ' ')} | {_cell(text)} |" for name, text in facts.items())
    yield from ("", f"| run | {' | '.join(OUTCOMES)} |", f"|---|{'---|' * len(OUTCOMES)}")
    for report in reports:
        yield f"| {report.name} | {' | '.join(str(count) for count in report.counts.values())} |"
    yield from ("", "## Failed", "")
    failed = [
        (report.name, result) for report in reports for result in report.results if result.outcome == "failed"
    ]
    yield from (f"- {name}: `{result.test}`: {_cell(result.why)}" for name, result in failed)
    if not failed:
        yield "Nothing."
    for outcome, title in (("xfailed", "Failed as the kit expects"), ("skipped", "Skipped")):
        why = Counter(
            (report.name, result.why)
            for report in reports
            for result in report.results
            if result.outcome == outcome
        )
        if why:
            yield from ("", f"## {title}", "", "| run | tests | what the kit says |", "|---|---|---|")
            yield from (
                f"| {name} | {count} | {_cell(text)} |" for (name, text), count in sorted(why.items())
            )


def _cell(text: str) -> str:
    """Return text on one line, as a cell of a table holds it."""
    return tame(text).replace("|", "\\|")


def _document(report: Report) -> dict[str, Any]:
    return {
        "run": report.name,
        "folder": str(report.folder),
        "counts": dict(report.counts),
        "failed": [result.test for result in report.results if result.outcome == "failed"],
    }
