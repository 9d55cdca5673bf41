"""The rules of this repository that no ordinary linter checks, one function a rule.

Each takes a file and yields findings; none reads the disk, so `test_rules.py` can feed each a bad sample. Rules
about imports are in `pyproject.toml` (import-linter) and `test_imports.py`.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import PurePosixPath

from tests.architecture.sources import Source

MAX_LINES = 600

LONG_FILES: Mapping[str, str] = {}
"""Path → why it may be longer: tables and generated code only."""

BANNED_WORDS = frozenset(
    "base common compat core default helper helpers legacy manager managers misc util utils v2".split()
)

CATCH_ALL: Mapping[str, str] = {
    "src/dragoman/bindings/pipeline.py": "the one place that turns any error into a reply in the negotiated form",
    "src/dragoman/bindings/turn.py": "a fault of the edge itself is logged and answered: nothing above catches it",
    "src/dragoman/gateway/execute.py": "an author's handler may raise anything, and that ends its run as FAILED",
    "src/dragoman/gateway/purge.py": "the next round of purging must come, whatever became of one",
    "src/dragoman/agents/threads.py": "what a handler raised in its thread is raised again where it is awaited",
    "src/dragoman/engines/embedded.py": "a worker loop outlives whatever one run does",
    "src/dragoman/engines/offering.py": "a worker loop outlives whatever one sweep does",
    "src/dragoman/engines/temporal/dispatcher.py": "a worker loop outlives whatever one round does",
    "src/dragoman/outbound/webhooks.py": "what one event does must not end the lane that tells of the others",
    "src/dragoman/stores/postgres/writer.py": "the lane of writes hands any error to the caller whose operation it was",
    "src/dragoman/stores/sqlite/writer.py": "the writer loop hands any error to the caller whose statement it was",
}
"""Path pattern (`*` crosses folders) → why `except Exception` may end there. pyproject.toml has the same for ruff."""

_EVERYTHING = {"Exception", "BaseException"}
_MUTABLE_NODES = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_MUTABLE_CALLS = {"list", "dict", "set", "bytearray", "defaultdict", "deque", "OrderedDict", "Counter"}

_WORD = re.compile(r"[A-Z]+\d*(?![a-z])|[A-Z]?[a-z]+\d*")
_MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home|Users)/\w")
_REGISTRY = re.compile(
    r"\b(?:pypi\.org|pythonhosted\.org|registry\.npmjs\.org|registry\.yarnpkg\.com|(?:deb|security)\.debian\.org"
    r"|archive\.ubuntu\.com|proxy\.golang\.org|static\.crates\.io)\b|--(?:extra-index-url|index-url|find-links)\b"
)


def too_long(source: Source) -> Iterator[str]:
    """Find a file of more than 600 lines."""
    lines = source.text.count("\n")
    if lines > MAX_LINES and source.path not in LONG_FILES:
        yield source.at(MAX_LINES + 1, f"{lines} lines; {MAX_LINES} at most")


def empty_names(source: Source) -> Iterator[str]:
    """Find folders, files and classes whose name says what kind of thing it is instead of which."""

    def banned(name: str) -> list[str]:
        return [word for word in _WORD.findall(name) if word.lower() in BANNED_WORDS]

    for part in PurePosixPath(source.path).with_suffix("").parts:
        for word in banned(part):
            yield source.at(1, f"{part!r} in the path: {word!r} says nothing; name the thing")
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef):
            for word in banned(node.name):
                yield source.at(node.lineno, f"class {node.name}: {word!r} says nothing; name the thing")


def type_checking(source: Source) -> Iterator[str]:
    """Find `TYPE_CHECKING`, which hides an import cycle instead of removing it."""
    for line, name in _names(source.tree):
        if name == "TYPE_CHECKING":
            yield source.at(line, "TYPE_CHECKING hides an import; move the thing to a lower floor")


def casts(source: Source) -> Iterator[str]:
    """Find `typing.cast`, which asserts a type that nobody checks."""
    for node in ast.walk(source.tree):
        imported = isinstance(node, ast.ImportFrom) and any(alias.name == "cast" for alias in node.names)
        named = (
            isinstance(node, ast.Attribute) and node.attr == "cast" and _name(node.value) in {"typing", "t"}
        )
        if imported or named:
            yield source.at(
                node.lineno, "cast: narrow the type with a check, or give it to whoever makes the value"
            )


def catches_all(source: Source) -> Iterator[str]:
    """Find handlers that swallow every exception. One that ends in `raise` swallows nothing."""
    if any(fnmatch(source.path, pattern) for pattern in CATCH_ALL):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler):
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            everything = any(one is None or _name(one) in _EVERYTHING for one in caught)
            if everything and not isinstance(node.body[-1], ast.Raise):
                yield source.at(node.lineno, "catches everything; name what can happen here (see CATCH_ALL)")
        elif (
            isinstance(node, ast.Call)
            and _name(node.func) == "suppress"
            and _EVERYTHING & set(map(_name, node.args))
        ):
            yield source.at(node.lineno, "suppresses everything; name what can happen here")


def module_state(source: Source) -> Iterator[str]:
    """Find module-level lists, dicts and sets under a name that is not a constant's."""
    for node in source.tree.body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign):
            targets, value = [node.target], node.value
        else:
            continue
        mutable = isinstance(value, _MUTABLE_NODES) or (
            isinstance(value, ast.Call) and _name(value.func) in _MUTABLE_CALLS
        )
        for target in targets:
            name = _name(target)
            if mutable and name and name.islower() and not name.startswith("__"):
                yield source.at(node.lineno, f"{name}: mutable state of a module; give it to an object")


@dataclass(frozen=True)
class ClassDocs:
    """The names of a class's bases, and of the methods it documents itself."""

    bases: frozenset[str]
    methods: frozenset[str]


def class_docs(sources: Iterable[Source]) -> dict[str, ClassDocs]:
    """Return what each class documents, so that an implementation may rely on the words of its port."""
    found: dict[str, ClassDocs] = {}
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef):
                bases = {_name(one.value if isinstance(one, ast.Subscript) else one) for one in node.bases}
                methods = {one.name for one in node.body if _is_function(one) and ast.get_docstring(one)}
                found[node.name] = ClassDocs(frozenset(bases - {""}), frozenset(methods))
    return found


def undocumented(source: Source, classes: Mapping[str, ClassDocs]) -> Iterator[str]:
    """Find public modules, classes, functions and methods without a docstring.

    Not asked of: names with an underscore, what is nested in a function, overloads, property setters, and
    methods that a base class (or the Protocol a class names as its base) documents.
    """
    if _is_public(PurePosixPath(source.path).stem) or source.path.endswith("__init__.py"):
        if source.text.strip() and not ast.get_docstring(source.tree):
            yield source.at(1, "the module has no docstring")
        yield from _undocumented_in(source, source.tree, "", classes)


def _undocumented_in(
    source: Source, parent: ast.Module | ast.ClassDef, prefix: str, classes: Mapping[str, ClassDocs]
) -> Iterator[str]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.ClassDef):
            if _is_public(node.name):
                if not ast.get_docstring(node):
                    yield source.at(node.lineno, f"class {prefix}{node.name} has no docstring")
                yield from _undocumented_in(source, node, f"{prefix}{node.name}.", classes)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not _is_public(node.name) or ast.get_docstring(node) or _needs_no_words(node):
                continue
            if isinstance(parent, ast.ClassDef) and _inherits_words(parent.name, node.name, classes):
                continue
            yield source.at(node.lineno, f"{prefix}{node.name} has no docstring")


def _inherits_words(class_name: str, method: str, classes: Mapping[str, ClassDocs]) -> bool:
    seen: set[str] = set()
    ahead = [class_name]
    while ahead:
        name = ahead.pop()
        if name in seen or name not in classes:
            continue
        seen.add(name)
        if method in classes[name].methods:
            return True
        ahead += classes[name].bases
    return False


def _needs_no_words(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(_name(one) in {"overload", "setter", "deleter"} for one in node.decorator_list)


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def machine_paths(source: Source) -> Iterator[str]:
    """Find absolute paths of somebody's machine."""
    yield from _matches(source, _MACHINE_PATH, "an absolute path of one machine")


def registry_hosts(source: Source) -> Iterator[str]:
    """Find package registries by host name, and index options: which registry to use is the reader's choice."""
    yield from _matches(source, _REGISTRY, "names a package registry or index")


def _matches(source: Source, pattern: re.Pattern[str], finding: str) -> Iterator[str]:
    for number, line in enumerate(source.text.splitlines(), 1):
        if match := pattern.search(line):
            yield source.at(number, f"{finding}: {match.group()}")


def foreign_imports(source: Source, home: str, packages: frozenset[str]) -> Iterator[str]:
    """Find imports of anything but the standard library, the file's own room and the given packages."""
    for line, name in source.imports():
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top in packages or f"{name}.".startswith(f"{home}."):
            continue
        yield source.at(line, f"{home} may not import {name}")


def crossed_versions(source: Source) -> Iterator[str]:
    """Find a protocol version that imports another one; conversion goes through the model."""
    own = re.match(r"src/dragoman/protocol/(v\d+_\d+)/", source.path)
    if own is None:
        return
    for line, name in source.imports():
        other = re.match(r"dragoman\.protocol\.(v\d+_\d+)\b", name)
        if other and other[1] != own[1]:
            yield source.at(line, f"{own[1]} imports {other[1]}; conversion goes through the model")


def _name(node: ast.AST | None) -> str:
    """Return the last part of a (dotted) name, or nothing."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of every name, attribute and imported name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            yield node.lineno, _name(node)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, alias.name) for alias in node.names)
