"""A server whose demo agent sends push notifications to this machine, for tests that drive official clients."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness.server import ServerProcess

CONFIG = """
[outbound]
allow = ["127.0.0.0/8"]
ports = "any"
schemes = ["https", "http"]
[agents.demo]
python = "dragoman.agents.demo:demo"
push = true
"""


@contextmanager
def pushing_server(folder: Path) -> Iterator[ServerProcess]:
    """Run it."""
    config = folder / "dragoman.toml"
    config.write_text(CONFIG, encoding="utf-8")
    with ServerProcess(folder / "data", config=config) as running:
        yield running
