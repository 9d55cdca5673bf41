"""The reference of the admin surface lists what the surface serves, and nothing else."""

import re

from dragoman.admin.surface import AdminSurface
from dragoman.gateway.tenants import Declared
from tests.harness.paths import CHECKOUT

ROW = re.compile(r"\| `([^`]+)` \| ([^|]+) \|")


def test_every_path_and_method_is_in_the_reference_and_no_other() -> None:
    text = (CHECKOUT / "docs" / "reference" / "admin.md").read_text(encoding="utf-8")
    shown = {
        path: set(re.findall(r"\b(?:GET|POST|PUT|DELETE)\b", words))
        for path, words in ROW.findall(text.partition("## Paths")[2])
    }
    surface = AdminSurface(None, None, Declared(), agents=list, cancel=None, apply=None)
    assert shown == {path: set(handlers) for path, handlers in surface._table().items()}
