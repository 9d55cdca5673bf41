"""Each rule holds for the tree, and each can fail: a bad sample a rule."""

import tomllib
from collections.abc import Callable, Iterator

import pytest

from tests.architecture import rules
from tests.architecture.sources import CODE, ROOT, Source, python, texts

Rule = Callable[[Source], Iterator[str]]


def documented(source: Source) -> Iterator[str]:
    """`rules.undocumented` for a sample that stands alone."""
    return rules.undocumented(source, rules.class_docs([source]))


def findings(rule: Rule, sources: list[Source]) -> str:
    return "\n".join(finding for source in sources for finding in rule(source))


@pytest.mark.parametrize("rule", [rules.too_long, rules.empty_names], ids=lambda rule: rule.__name__)
def test_all_code_keeps_the_rule(rule: Rule) -> None:
    assert not findings(rule, python(*CODE))


@pytest.mark.parametrize(
    "rule",
    [rules.type_checking, rules.casts, rules.catches_all, rules.module_state, rules.crossed_versions],
    ids=lambda rule: rule.__name__,
)
def test_the_package_keeps_the_rule(rule: Rule) -> None:
    assert not findings(rule, python("src"))


def test_everything_public_is_documented() -> None:
    sources = python("src")
    classes = rules.class_docs(sources)
    assert not findings(lambda source: rules.undocumented(source, classes), sources)


def test_the_model_imports_the_standard_library_and_msgspec_only() -> None:
    allowed = frozenset({"msgspec"})
    sources = python("src/dragoman/model")
    assert not findings(lambda source: rules.foreign_imports(source, "dragoman.model", allowed), sources)


@pytest.mark.parametrize("rule", [rules.machine_paths, rules.registry_hosts], ids=lambda rule: rule.__name__)
def test_every_text_keeps_the_rule(rule: Rule) -> None:
    assert not findings(rule, texts())


def test_ruff_and_this_folder_allow_the_same_files_to_catch_everything() -> None:
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]["per-file-ignores"]
    assert {path for path, codes in ruff.items() if "BLE001" in codes} == set(rules.CATCH_ALL)


# Assembled, so that this file keeps the rules that it tests.
REGISTRY = "https://pypi" + ".org/simple"
INDEX = "--index" + "-url x"
WORK = "/" + "work/main"
HOME = "/" + "home/alice/agents.py"

BAD: list[tuple[Rule, str, str]] = [
    (rules.too_long, "src/a.py", "\n" * 601),
    (rules.empty_names, "src/dragoman/utils.py", ""),
    (rules.empty_names, "src/dragoman/core/task.py", ""),
    (rules.empty_names, "src/dragoman/task_helpers.py", ""),
    (rules.empty_names, "src/a.py", "class TaskManager: ..."),
    (rules.empty_names, "src/a.py", "class HTTPBase: ..."),
    (rules.empty_names, "src/a.py", "class GatewayV2: ..."),
    (rules.empty_names, "src/a.py", "class DefaultHandler: ..."),
    (rules.type_checking, "src/a.py", "from typing import TYPE_CHECKING"),
    (rules.type_checking, "src/a.py", "import typing\nif typing.TYPE_CHECKING: ..."),
    (rules.casts, "src/a.py", "from typing import cast"),
    (rules.casts, "src/a.py", "import typing\nx = typing.cast(int, y)"),
    (rules.catches_all, "src/a.py", "try: ...\nexcept Exception: ..."),
    (rules.catches_all, "src/a.py", "try: ...\nexcept: ..."),
    (rules.catches_all, "src/a.py", "try: ...\nexcept (ValueError, BaseException): ..."),
    (rules.catches_all, "src/a.py", "try: ...\nexcept* Exception: ..."),
    (rules.catches_all, "src/a.py", "with contextlib.suppress(Exception): ..."),
    (rules.module_state, "src/a.py", "seen = []"),
    (rules.module_state, "src/a.py", "_cache: dict[str, int] = {}"),
    (rules.module_state, "src/a.py", "waiting = collections.defaultdict(list)"),
    (documented, "src/a.py", "X = 1"),
    (documented, "src/a/__init__.py", "X = 1"),
    (documented, "src/a.py", '"""Doc."""\nclass Task: ...'),
    (documented, "src/a.py", '"""Doc."""\nasync def send(): ...'),
    (documented, "src/a.py", '"""Doc."""\nclass Task:\n    """Doc."""\n    def act(self): ...'),
    (rules.machine_paths, "README.md", f"cd {WORK}"),
    (rules.machine_paths, "README.md", f"see `{HOME}`"),
    (rules.registry_hosts, "README.md", REGISTRY),
    (rules.registry_hosts, "requirements/serve.lock", INDEX),
    (rules.crossed_versions, "src/dragoman/protocol/v0_3/a.py", "import dragoman.protocol.v1_0.decode"),
    (rules.crossed_versions, "src/dragoman/protocol/v0_3/a.py", "from dragoman.protocol import v1_0"),
]


@pytest.mark.parametrize(("rule", "path", "text"), BAD)
def test_the_rule_finds_a_bad_sample(rule: Rule, path: str, text: str) -> None:
    found = list(rule(Source(path, text)))
    assert len(found) == 1
    assert found[0].startswith(f"{path}:")


GOOD: list[tuple[Rule, str, str]] = [
    (rules.too_long, "src/a.py", "\n" * 600),
    (rules.empty_names, "src/dragoman/database.py", "class Scorer: ..."),
    (rules.empty_names, "src/dragoman/protocol/v1_0/http.py", "class TaskV1: ..."),
    (rules.casts, "src/a.py", "rows = db.execute('SELECT cast(x AS text)')"),
    (rules.catches_all, "src/a.py", "try: ...\nexcept BaseException:\n    undo()\n    raise"),
    (rules.catches_all, "src/a.py", "try: ...\nexcept (ValueError, OSError): ..."),
    (rules.catches_all, "src/dragoman/bindings/pipeline.py", "try: ...\nexcept Exception: ..."),
    (rules.catches_all, "src/dragoman/engines/embedded.py", "try: ...\nexcept Exception: ..."),
    (rules.catches_all, "src/dragoman/stores/sqlite/writer.py", "try: ...\nexcept Exception: ..."),
    (rules.module_state, "src/a.py", "TABLE = {}\n__all__ = []\ndef f():\n    seen = []"),
    (documented, "src/a/__init__.py", ""),
    (
        documented,
        "src/a.py",
        '"""Doc."""\ndef _inner(): ...\ndef outer():\n    """Doc."""\n    def nested(): ...',
    ),
    (rules.machine_paths, "README.md", "GET https://example.org/home/work/root/x, ../work/x, /tasks"),
    (rules.crossed_versions, "src/dragoman/protocol/v0_3/a.py", "from dragoman.protocol.v0_3 import decode"),
]


@pytest.mark.parametrize(("rule", "path", "text"), GOOD)
def test_the_rule_lets_a_good_sample_pass(rule: Rule, path: str, text: str) -> None:
    assert not list(rule(Source(path, text)))


def test_a_method_may_rely_on_the_words_of_its_port() -> None:
    port = Source(
        "src/ports.py",
        '"""Doc."""\nclass Store(Protocol):\n    """Doc."""\n    def get(self):\n        """Doc."""',
    )
    store = Source(
        "src/sqlite.py",
        '"""Doc."""\nclass Sqlite(Store):\n    """Doc."""\n    def get(self): ...\n    def put(self): ...',
    )
    found = list(rules.undocumented(store, rules.class_docs([port, store])))
    assert found == ["src/sqlite.py:5: Sqlite.put has no docstring"]


@pytest.mark.parametrize(
    "statement", ["import httpx2", "from dragoman import gateway", "import dragoman.modelling"]
)
def test_a_foreign_import_in_the_model_is_found(statement: str) -> None:
    source = Source("src/dragoman/model/a.py", statement)
    assert len(list(rules.foreign_imports(source, "dragoman.model", frozenset({"msgspec"})))) == 1


def test_the_models_own_imports_pass() -> None:
    text = (
        "import json\nimport msgspec\nfrom dragoman.model.task import Task\nfrom dragoman.model import task"
    )
    source = Source("src/dragoman/model/a.py", text)
    assert not list(rules.foreign_imports(source, "dragoman.model", frozenset({"msgspec"})))
