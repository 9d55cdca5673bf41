"""The command line: `python -m bench SCENARIO [options]`."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.servers import PEERS
from bench.wire import Binding

SCENARIOS = {
    "send": "blocking sends, closed loop",
    "generations": "CPU of a blocking send in A2A 0.3 beside one in 1.0 (Dragoman only)",
    "hosted": "CPU of a blocking send by the hosted profile beside open ones, ours and a2a-sdk's",
    "postgres": "blocking sends over PostgreSQL beside those over SQLite (Dragoman only)",
    "immediate": "sends with returnImmediately, closed loop",
    "get": "GetTask, closed loop",
    "card": "agent card, closed loop",
    "stream": "SendStreamingMessage, closed loop",
    "exact": "runs of a message that is sent twice; whether a task is there after SIGKILL",
    "first-event": "time from a streaming request to its first event, one caller, idle server",
    "list": "page of 50 of ListTasks by number of stored tasks, one caller",
    "idle-streams": "memory of open streams on which nothing happens",
    "start": "start to first good agent card; memory of the idle server",
    "restart": "the same with many stored tasks, after SIGTERM and after SIGKILL (Dragoman only)",
    "open-loop": "blocking sends at a fixed rate of arrival, beside idle streams",
}
"""Every scenario, in the order in which `all` runs them."""


@dataclass(frozen=True)
class Options:
    """What the command line asked for."""

    scenarios: tuple[str, ...]
    binding: Binding
    rounds: int
    seconds: int
    connections: int
    peers: tuple[str, ...] | None
    """Peers by name; None: those that belong to each scenario, as far as they can be set up."""
    ours: bool
    gate: bool
    json: Path | None
    sizes: tuple[int, ...]
    peers_up_to: int
    store: str
    """Where Dragoman's tasks are when they are listed."""
    samples: int
    streams: int
    own_tasks: bool
    rate: int
    idle: int
    stored: int


def parse(arguments: Sequence[str]) -> Options:
    """Read the command line; ends the process with code 2 if it is wrong."""
    chosen = _parser().parse_args(arguments)
    if chosen.peers_only and chosen.peers == ():
        raise SystemExit("--peers-only and no peer: nothing to measure")
    return Options(
        scenarios=tuple(SCENARIOS) if chosen.scenario == "all" else (chosen.scenario,),
        binding=chosen.binding,
        rounds=chosen.rounds,
        seconds=chosen.seconds,
        connections=chosen.connections,
        peers=chosen.peers,
        ours=not chosen.peers_only,
        gate=chosen.gate,
        json=chosen.json,
        sizes=chosen.sizes,
        peers_up_to=chosen.peers_up_to,
        store=chosen.store,
        samples=chosen.samples,
        streams=chosen.streams,
        own_tasks=chosen.own_tasks,
        rate=chosen.rate,
        idle=chosen.idle,
        stored=chosen.stored,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench",
        description="Measure Dragoman and its peers in turn, on loopback. "
        "Exit code 1: errors were seen, a named peer cannot run, or --gate and a bound is broken.",
    )
    scenarios = parser.add_subparsers(dest="scenario", required=True, metavar="SCENARIO")
    for name, text in {**SCENARIOS, "all": "every scenario"}.items():
        scenario = scenarios.add_parser(name, help=text, description=text)
        _add_shared(scenario)
        _add_special(scenario, name)
    return parser


def _add_shared(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--rounds", type=_count, default=3, help="rounds; the median is reported (3)")
    add("--seconds", type=_count, default=5, help="length of a counted run under load (5)")
    add("--connections", type=_count, default=32, help="callers of a closed loop (32)")
    add("--binding", type=Binding, choices=list(Binding), default=Binding.JSONRPC)
    add("--peers", type=_peers, help=f"names from {','.join(PEERS)}, or none (each scenario's own)")
    add("--peers-only", action="store_true", help="leave Dragoman out")
    add("--json", type=Path, metavar="FILE", help="write every figure there")
    add("--gate", action="store_true", help="exit with 1 if a bound of bench/bounds.py is broken")


def _add_special(parser: argparse.ArgumentParser, scenario: str) -> None:
    """Options of some scenarios only; the others take the defaults."""

    def add(of: tuple[str, ...], name: str, kind: object, value: object, text: str) -> None:
        if scenario in (*of, "all"):
            action = {"action": "store_true"} if kind is bool else {"type": kind, "default": value}
            parser.add_argument(name, help=f"{text} ({value})", **action)
        else:
            parser.set_defaults(**{name.removeprefix("--").replace("-", "_"): value})

    add(("list",), "--sizes", _sizes, (1_000, 100_000), "numbers of stored tasks, by commas")
    add(("list",), "--peers-up-to", _count, 1_000, "largest size that peers are filled to")
    add(("list",), "--store", _store, "sqlite", "Dragoman's store, sqlite or postgres")
    add(("list", "first-event"), "--samples", _count, 200, "timed requests a round")
    add(("idle-streams",), "--streams", _count, 500, "streams to open")
    add(("idle-streams",), "--own-tasks", bool, False, "a working task for each stream")
    add(("open-loop",), "--rate", _count, 1_000, "sends a second")
    add(("open-loop",), "--idle", int, 1_000, "idle streams beside")
    add(("restart",), "--stored", _count, 100_000, "tasks stored before the restart")


def _count(text: str) -> int:
    number = int(text.replace("_", ""))
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _store(text: str) -> str:
    if text not in ("sqlite", "postgres"):
        raise argparse.ArgumentTypeError("must be sqlite or postgres")
    return text


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted({_count(size) for size in text.split(",")}))


def _peers(text: str) -> tuple[str, ...]:
    if text == "none":
        return ()
    names = tuple(dict.fromkeys(text.split(",")))
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no peer {', '.join(unknown)}; there are {', '.join(PEERS)}")
    return names
