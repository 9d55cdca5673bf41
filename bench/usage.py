"""What a server's process and its descendants have used, read from /proc."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Memory:
    """Memory of a process tree, in KiB.

    `rss` counts mapped files too; `anonymous` is the share that belongs to the
    process alone (Pss_Anon), which a memory-mapped database cannot inflate.
    """

    rss: int
    anonymous: int


def process_tree(pid: int) -> list[int]:
    """`pid` and its living descendants."""
    found, waiting = [], [pid]
    while waiting:
        current = waiting.pop()
        found.append(current)
        try:
            for thread in Path(f"/proc/{current}/task").iterdir():
                waiting += [int(child) for child in (thread / "children").read_text().split()]
        except FileNotFoundError:
            continue  # ended meanwhile
    return found


def cpu_seconds(pid: int) -> float:
    """User and system time of the tree under `pid`, its reaped children included."""
    ticks = 0
    for member in process_tree(pid):
        try:
            stat = Path(f"/proc/{member}/stat").read_text()
        except FileNotFoundError:
            continue
        # The command name may hold spaces; utime, stime, cutime, cstime are fields 14 to 17.
        ticks += sum(int(field) for field in stat.rpartition(")")[2].split()[11:15])
    return ticks / _TICKS_PER_SECOND


def memory(pid: int) -> Memory:
    """Memory of the tree under `pid`, shared pages counted by their share in `anonymous`."""
    rss = anonymous = 0
    for member in process_tree(pid):
        try:
            rollup = Path(f"/proc/{member}/smaps_rollup").read_text()
        except FileNotFoundError:
            continue
        fields = dict(re.findall(r"^(\w+):\s+(\d+) kB", rollup, re.MULTILINE))
        rss += int(fields["Rss"])
        anonymous += int(fields["Pss_Anon"])
    return Memory(rss, anonymous)
