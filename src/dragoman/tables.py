"""Reading tables: TOML and environment variables into typed Structs and durations, with every wrong key named."""

import difflib
import re
from collections.abc import Mapping
from typing import Any, get_args, get_origin

import msgspec
from msgspec import Struct

ENVIRONMENT_PREFIX = "DRAGOMAN_"

Sections = Mapping[str, type[Struct]]
"""Sections by their dotted paths, with the keys that each has: those that the environment can set too."""


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


class ConfigError(Exception):
    """A configuration is wrong; the message names the key and what would be right."""


def seconds(text: str, key: str) -> float:
    """Return a duration such as "500ms", "30s", "1h" or "7d" in seconds.

    Raises:
        ConfigError: it is none; `key` is named.
    """
    form = _DURATION.fullmatch(text)
    if form is None:
        raise ConfigError(
            f'{key} = "{text}" is no duration; write a number and a unit: "500ms", "30s", "5m", "1h", "7d"'
        )
    return float(form[1]) * _UNITS[form[2]]


def from_environment(environment: Mapping[str, str], sections: Sections) -> dict[str, dict[str, Any]]:
    """Return what `DRAGOMAN_<SECTION>_<KEY>` variables set, by section.

    Raises:
        ConfigError: a variable names a section or a key that there is none of, or has a value of another type.
    """
    found: dict[str, dict[str, Any]] = {}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        section = max((one for one in sections if name.startswith(_prefix(one))), key=len, default=None)
        if section is None:
            _check_foreign(variable, name.partition("_")[0], sections)
            continue
        kind, key = sections[section], name.removeprefix(_prefix(section))
        check_names({key: text}, kind, f"the environment variable {variable}: {section}.")
        value = _typed(kind, key, text)
        convert({key: value}, kind, f"the environment variable {variable}", section)
        found.setdefault(section, {})[key] = value
    return found


def _prefix(section: str) -> str:
    """Return how the names of a section's variables begin, in lower case."""
    return section.replace(".", "_") + "_"


def _check_foreign(variable: str, word: str, sections: Sections) -> None:
    """Refuse a variable that begins like ours but names no section of ours, if that looks like a slip."""
    if word in ("agents", "tenants"):
        raise ConfigError(f"{variable}: {word} cannot be configured in the environment; use the TOML file")
    # Other programs may have variables of this prefix, but not ones that differ from ours by a slip.
    near = difflib.get_close_matches(word, [one.partition(".")[0] for one in sections], n=1, cutoff=0.75)
    if near:
        whole = next(one for one in sections if one.partition(".")[0] == near[0])
        raise ConfigError(f"{variable}: there is no section {word}; did you mean {whole}?")


def table_at(document: Mapping[str, Any], path: str) -> Any:
    """Return the table at a dotted path; one that is not there is empty."""
    table: Any = document
    for name in path.split("."):
        table = table.get(name, {})
    return table


def convert(table: Any, kind: type[Struct], source: str, path: str) -> None:
    """Make sure that a table's values have their types.

    Raises:
        ConfigError: one has not; its key is named.
    """
    try:
        msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        form = re.fullmatch(r"Expected `(.*)`, got `(.*)` - at `\$\.?(.*)`", str(error))
        if form is None:
            raise ConfigError(f"{source}: {path}: {error}") from error
        wanted, got = (_KINDS.get(name.split(" ")[0], name) for name in form.groups()[:2])
        raise ConfigError(f"{source}: {path}.{form[3]} must be {wanted}, not {got}") from error


_KINDS: Mapping[str, str] = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


def check_table(table: Any, kind: type[Struct], source: str, path: str) -> None:
    """Make sure that something is a table, and that its keys are there in `kind`.

    Raises:
        ConfigError: it is none, or one is not.
    """
    if not isinstance(table, Mapping):
        raise ConfigError(f"{source}: {path} must be a table: [{path}]")
    check_names(table, kind, f"{source}: {path}.")


def check_names(table: Mapping[str, Any], kind: type[Struct], place: str) -> None:
    """Make sure that the keys of a table are there in `kind`; `place` stands before the name of one that is not.

    Raises:
        ConfigError: one is not; the nearest that is there is named.
    """
    for name in table:
        if name not in kind.__struct_fields__:
            near = difflib.get_close_matches(name, kind.__struct_fields__, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(kind.__struct_fields__)}"
            raise ConfigError(f"{place}{name} is not a key of this Dragoman; {hint}")


def _typed(kind: type[Struct], key: str, text: str) -> Any:
    """Return an environment variable's text in the type of its key."""
    field = next(field for field in msgspec.structs.fields(kind) if field.encode_name == key)
    if get_origin(field.type) is tuple:
        return [piece.strip() for piece in text.split(",") if piece.strip()]
    wanted = [field.type, *get_args(field.type)]
    if bool in wanted:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    return int(text) if int in wanted and re.fullmatch(r"\d{1,18}", text, re.ASCII) else text
