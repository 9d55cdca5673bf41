"""The places of runs: how many go on at once, in each agent and in all, and how many more may wait for one.

All of it is counted here, under one lock, because it is asked for on the serving loop and on the loop of every agent.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from dragoman.gateway.ports import AgentSettings, RunRef
from dragoman.model import Scope


class _Share:
    """One agent's part of the places.

    Attributes:
        running: its runs that have a place.
        expected: its runs that want one: those that wait, are on their way to its loop, or may come of a message that
            is being accepted.
        reserved: how many of the expected ones may still come of a message.
        callers: the expected runs by whose they are.
        in_line: whether it stands in line for a place.
        offered: whether a place is held for it that it has not taken yet.
        is_late: whether it has not taken it for a while.
    """

    __slots__ = (
        "callers",
        "expected",
        "in_line",
        "is_late",
        "offered",
        "reserved",
        "running",
        "settings",
        "wake",
    )

    def __init__(self, settings: AgentSettings, wake: Callable[[], None]) -> None:
        self.settings = settings
        self.wake = wake
        self.running = 0
        self.expected = 0
        self.reserved = 0
        self.callers: dict[Scope, int] = {}
        self.in_line = False
        self.offered = False
        self.is_late = False

    def expect(self, scope: Scope) -> None:
        self.expected += 1
        self.callers[scope] = self.callers.get(scope, 0) + 1

    def expect_no_more(self, scope: Scope) -> None:
        self.expected -= 1
        left = self.callers.pop(scope) - 1
        if left:
            self.callers[scope] = left

    @property
    def wanted(self) -> int:
        """How many places it would take at once if there were enough, beside one that is held for it."""
        return max(0, min(self.expected, self.settings.max_runs - self.running) - self.offered)


class Places:
    """Gives places to runs. An agent that finds none stands in line, and agents in line take turns.

    A place that comes free is held for the agent whose turn it is. One that does not come for it, because a handler
    blocks its loop, loses its turn: see `pass_over`.
    """

    def __init__(self, max_runs: int, on_left: Callable[[], object] = lambda: None) -> None:
        """Prepare `max_runs` places for all agents together; `on_left` is called, on any thread, after each run."""
        self._on_left = on_left
        self._free = max_runs
        self._shares: dict[str, _Share] = {}
        self._line: deque[_Share] = deque()
        self._homes: dict[str, str] = {}
        self._reserved: dict[str, Scope] = {}
        self._lock = threading.Lock()

    def add(
        self,
        agent_id: str,
        settings: AgentSettings,
        wake: Callable[[], None],
        variants: Iterable[str] = (),
    ) -> None:
        """Make an agent known, and its `variants`, whose runs take its places.

        `wake` is called, on any thread, when a place is held for it; it must not block.
        """
        self._shares[agent_id] = _Share(settings, wake)
        self._homes[agent_id] = agent_id
        self._homes.update(dict.fromkeys(variants, agent_id))

    def reserve(self, scope: Scope, task_id: str) -> bool:
        """Expect a run of a new task; false if its agent's queue is full.

        A full queue still takes one run of each caller who has none in it, until it is twice as long: nobody can fill
        it for the others.
        """
        with self._lock:
            share = self._share(scope)
            most = share.settings.max_waiting
            if share.expected >= most:
                if scope not in share.callers:
                    most *= 2
                if share.expected >= most + self._room(share):
                    return False
            share.expect(scope)
            share.reserved += 1
            self._reserved[task_id] = scope
            return True

    def release(self, task_id: str) -> None:
        """Expect no run of a task any more, unless it has come."""
        with self._lock:
            scope = self._reserved.pop(task_id, None)
            if scope is not None:
                share = self._share(scope)
                share.reserved -= 1
                share.expect_no_more(scope)

    def arrive(self, runs: Sequence[RunRef]) -> None:
        """Note that runs have come, expected or not: what was accepted is never refused."""
        with self._lock:
            for run in runs:
                share = self._share(run.scope)
                if self._reserved.pop(run.lease.task_id, None) is None:
                    share.expect(run.scope)
                else:
                    share.reserved -= 1

    def take(self, run: RunRef) -> bool:
        """Give a run that has come a place; false if it must wait. Its agent is woken when there is one."""
        with self._lock:
            share = self._share(run.scope)
            if share.running >= share.settings.max_runs:
                return False
            if share.offered:
                share.offered = False
            elif self._free:
                self._free -= 1
            else:
                if not share.in_line:
                    share.in_line = True
                    self._line.append(share)
                return False
            share.running += 1
            share.expect_no_more(run.scope)
            return True

    def leave(self, agent_id: str) -> None:
        """Take the place of a run back, for the next agent in line."""
        with self._lock:
            self._shares[agent_id].running -= 1
            self._pass_on()
        self._on_left()

    def drop(self, run: RunRef) -> None:
        """Note that a run that has come wants no place any more."""
        with self._lock:
            self._share(run.scope).expect_no_more(run.scope)

    def decline(self, agent_id: str) -> None:
        """Pass on a place that is held for an agent that has no run for it."""
        with self._lock:
            share = self._shares[agent_id]
            if share.offered:
                share.offered = False
                self._pass_on()

    def pass_over(self) -> None:
        """Pass on the places that were held since the last call already: their agents do not come.

        They stand in line again as soon as their loops go on.
        """
        with self._lock:
            late = [share for share in self._shares.values() if share.offered and share.is_late]
            for share in self._shares.values():
                share.is_late = share.offered
            for share in late:
                share.offered = share.is_late = False
                self._pass_on()

    def room(self) -> tuple[int, dict[str, int]]:
        """Return how many more runs could go on at once, in all and of each agent that has room, by all its ids."""
        with self._lock:
            free = max(0, self._free - sum(share.expected for share in self._shares.values()))
            own = {
                agent_id: share.settings.max_runs - share.running - share.expected
                for agent_id, share in self._shares.items()
            }
            return free, {one: own[home] for one, home in self._homes.items() if own[home] > 0}

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return, for each agent, how many runs are running and how many wait."""
        with self._lock:
            return {
                agent_id: (share.running, share.expected - share.reserved)
                for agent_id, share in self._shares.items()
            }

    def _share(self, scope: Scope) -> _Share:
        return self._shares[self._homes[scope.agent]]

    def _pass_on(self) -> None:
        if self._line:
            share = self._line.popleft()
            share.in_line, share.offered, share.is_late = False, True, False
            share.wake()
        else:
            self._free += 1

    def _room(self, share: _Share) -> int:
        """Return how many places an agent can have at once, if the others take what they want first."""
        own = share.settings.max_runs - share.running
        free = self._free + share.offered
        if not own or not free:
            return 0
        others = sum(other.wanted for other in self._shares.values() if other is not share)
        return max(0, min(own, free - others))
