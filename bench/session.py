"""What every scenario is given: the options, the servers that can run, and a way to take rounds.

Servers are started anew for each round and are alone while they run: each round
begins with the same empty store, so what one round leaves behind (a peer's
memory, our database) cannot tax the next, and no idle server takes CPU from the
one under load. The order turns by one each round, so that a slow drift of the
machine favours nobody. Ratios are taken within a round.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from bench.arguments import Options
from bench.environments import Unavailable
from bench.replies import WrongReply
from bench.results import Sample
from bench.servers import OURS, PEERS, SERVERS, Server
from bench.wire import Operation

FAULTS = (Unavailable, WrongReply, OSError)
"""What can go wrong with a server in a round; it becomes an error of the sample."""


@dataclass
class Session:
    """One run of the benchmark."""

    options: Options
    say: Callable[[str], None]
    notes: list[str] = field(default_factory=list)
    refused: bool = False
    """Whether a server that was asked for by name cannot run."""
    _prepared: dict[str, bool] = field(default_factory=dict)

    def servers(self, operation: Operation, peers: tuple[str, ...] = PEERS) -> list[Server]:
        """Those that can do `operation`, set up: ours, and the peers named, else `peers`."""
        named = self.options.peers
        chosen = [OURS] if self.options.ours else []
        chosen += peers if named is None else named
        servers = [SERVERS[name] for name in chosen if self._can(name, operation) and self._prepare(name)]
        if not servers:
            self.note("no server is left to measure here")
        return servers

    def rounds(self, servers: list[Server]) -> Iterator[tuple[int, Server]]:
        """Each round's number and each of its servers in turn."""
        for number in range(self.options.rounds):
            shift = number % len(servers) if servers else 0
            for server in servers[shift:] + servers[:shift]:
                yield number, server

    def measure(
        self, scenario: str, servers: list[Server], measure: Callable[[Server, int], Sample]
    ) -> list[Sample]:
        """What `measure` gives for each of the servers, by the server and the number of the round."""
        return [
            self.take(scenario, server.name, number, partial(measure, server, number))
            for number, server in self.rounds(servers)
        ]

    def note(self, text: str) -> None:
        """Say `text` now and once more in the report; the same text only once."""
        if text not in self.notes:
            self.notes.append(text)
            self.say(text)

    def take(self, scenario: str, server: str, number: int, measure: Callable[[], Sample]) -> Sample:
        """The sample that `measure` gives, or one that tells why there is none."""
        try:
            sample = measure()
        except FAULTS as error:
            return self.failed(scenario, server, number, error)
        self._show(sample)
        return sample

    def failed(self, scenario: str, server: str, number: int, error: Exception) -> Sample:
        """The sample of a round that gave no figures."""
        text = str(error) or type(error).__name__
        sample = Sample(scenario, server, number, {}, errors=1, first_error=text)
        self._show(sample)
        return sample

    def _show(self, sample: Sample) -> None:
        figures = "  ".join(f"{name} {value:.4g}" for name, value in sample.metrics.items())
        case = f" [{sample.case}]" if sample.case else ""
        self.say(f"{sample.scenario}{case} round {sample.round + 1} {sample.server}: {figures}")
        if sample.errors:
            self.say(f"  {sample.errors} errors, first: {sample.first_error}")

    def _can(self, name: str, operation: Operation) -> bool:
        server = SERVERS[name]
        if operation in server.lacks:
            self.note(f"{name}: has no {operation} of this kind, left out")
            return False
        if not server.routes.speaks(self.options.binding) and operation is not Operation.CARD:
            self.note(f"{name}: has no {self.options.binding} binding, left out")
            return False
        return True

    def _prepare(self, name: str) -> bool:
        if name not in self._prepared:
            try:
                SERVERS[name].prepare()
            except Unavailable as error:
                self._prepared[name] = False
                self.note(f"{name}: cannot be set up: {error}")
                # Ours was asked for unless --peers-only; a peer when --peers names it.
                if name == OURS or name in (self.options.peers or ()):
                    self.refused = True
            else:
                self._prepared[name] = True
        return self._prepared[name]
