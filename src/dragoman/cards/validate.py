"""What is wrong with an agent card, member by member, against A2A 1.0 and, where a card speaks it too, A2A 0.3.

Pure: takes the text of a card and judges nothing but that. A card is judged by A2A 0.3 if it has one of the members
that only 0.3 reads, and by A2A 1.0 unless it is a 0.3 card and nothing else. Signatures are verified in `cards.verify`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, assert_never

from msgspec import Struct

from dragoman.cards.shapes import (
    CARD_0_3,
    CARD_1_0,
    Flag,
    Free,
    Kind,
    Many,
    Named,
    Shape,
    Tagged,
    Text,
    is_absolute,
    is_web_url,
)
from dragoman.model.errors import MalformedJson
from dragoman.protocol.protojson import kind_of, parse

CORE_BINDINGS = ("JSONRPC", "GRPC", "HTTP+JSON")
ONLY_0_3 = ("url", "preferredTransport", "protocolVersion", "additionalInterfaces")
"""Top-level members that A2A 0.3 reads and A2A 1.0 does not know."""

_MEANT: Mapping[str, str] = MappingProxyType(
    {"jsonrpc": "JSONRPC", "grpc": "GRPC", "httpjson": "HTTP+JSON", "rest": "HTTP+JSON", "http": "HTTP+JSON"}
)
"""Core bindings by what is left of a name, in lower case, without signs."""

_JSON_TYPES: Mapping[type[Kind], type] = MappingProxyType(
    {Text: str, Flag: bool, Free: dict, Many: list, Named: dict, Shape: dict, Tagged: dict}
)

_I_JSON = "JSON that every reader understands alike (RFC 7493)"


class Finding(Struct, frozen=True):
    """One thing that is wrong: where (empty: the card as a whole), what, and what is wanted, by which document."""

    path: str
    problem: str
    wanted: str


class ShownInterface(Struct, frozen=True):
    """An interface as a card lists it; `place` is the member that does. What is missing or no text is empty."""

    version: str
    binding: str
    url: str
    tenant: str
    place: str


class CardReport(Struct, frozen=True):
    """A card and what is to be said of it.

    `card` is empty if the text holds no object. `generations` are those it was judged by, newest first. Of an
    ambiguous one not every reader has the same, because it gives a member twice, say.
    """

    card: Mapping[str, Any]
    generations: tuple[str, ...]
    interfaces: tuple[ShownInterface, ...]
    findings: tuple[Finding, ...]
    is_signed: bool
    is_ambiguous: bool = False


def validate(text: bytes) -> CardReport:
    """Judge the text of a card."""
    try:
        parsed = parse(text)
    except MalformedJson as error:
        problem = error.message.removeprefix("The body ")
        return _unreadable(Finding("", problem, "a JSON object (A2A 1.0 §4.4.1)"))
    card = parsed.value
    if not isinstance(card, dict):
        return _unreadable(Finding("", f"is {kind_of(card)}", "a JSON object (A2A 1.0 §4.4.1)"))
    is_old = any(name in card for name in ONLY_0_3)
    is_new = "supportedInterfaces" in card or not is_old
    findings = [Finding(flaw.field, flaw.description, _I_JSON) for flaw in parsed.violations]
    findings += _repeated_skills(card)
    if is_new:
        findings += _check(CARD_1_0, card, "", "")
        findings += _interfaces_1_0(card)
        findings += _requirements_1_0(card)
    if is_old:
        findings += _check(CARD_0_3, card, "", "")
        findings += _interfaces_0_3(card)
        findings += _requirements_0_3(card)
    return CardReport(
        card=card,
        generations=("1.0",) * is_new + ("0.3",) * is_old,
        interfaces=tuple(interfaces(card)),
        findings=_unique(findings),
        is_signed=bool(card.get("signatures")),
        is_ambiguous=bool(parsed.violations),
    )


def interfaces(card: Mapping[str, Any]) -> Iterator[ShownInterface]:
    """Yield the interfaces of a card in both generations' way of listing them, as far as they can be read."""
    for index, entry in enumerate(_objects(card.get("supportedInterfaces"))):
        yield ShownInterface(
            version=_text(entry.get("protocolVersion")),
            binding=_text(entry.get("protocolBinding")),
            url=_text(entry.get("url")),
            tenant=_text(entry.get("tenant")),
            place=f"supportedInterfaces[{index}]",
        )
    version = _text(card.get("protocolVersion"))
    if "url" in card:
        # What a 0.3 card does not say is JSONRPC.
        transport = _text(card.get("preferredTransport")) or "JSONRPC"
        yield ShownInterface(version, transport, _text(card["url"]), "", "url")
    for index, entry in enumerate(_objects(card.get("additionalInterfaces"))):
        transport, url = _text(entry.get("transport")), _text(entry.get("url"))
        yield ShownInterface(version, transport, url, "", f"additionalInterfaces[{index}]")


def _unreadable(finding: Finding) -> CardReport:
    return CardReport({}, (), (), (finding,), is_signed=False)


def _unique(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Leave out what both generations say: the first one, 1.0, is heard."""
    return tuple({(finding.path, finding.problem): finding for finding in reversed(findings)}.values())[::-1]


def _check(kind: Kind, value: Any, path: str, source: str) -> Iterator[Finding]:
    """Yield what is wrong with a value; `source` is where the shape around it is described."""
    if not _has_type(kind, value):
        yield Finding(path, f"is {kind_of(value)}", f"{kind.wanted} ({source})")
        return
    match kind:
        case Text():
            if kind.test is not None and not kind.test(value):
                yield Finding(path, f"is {_shown(value)}", f"{kind.wanted} ({source})")
        case Many():
            if len(value) < kind.least:
                yield Finding(path, "is empty", f"{kind.wanted} ({source})")
            for index, item in enumerate(value):
                yield from _check(kind.item, item, f"{path}[{index}]", source)
        case Named():
            for name, member in value.items():
                yield from _check(kind.item, member, f"{path}.{name}", source)
        case Shape():
            yield from _check_shape(kind, value, path)
        case Tagged():
            yield from _check_tagged(kind, value, path)
        case Flag() | Free():
            return
        case _:
            assert_never(kind)


def _has_type(kind: Kind, value: Any) -> bool:
    return isinstance(value, _JSON_TYPES[type(kind)])


def _check_shape(shape: Shape, value: Mapping[str, Any], path: str) -> Iterator[Finding]:
    misspelt = _misspelt(shape, value)
    for wrong, right in misspelt.items():
        yield Finding(_at(path, wrong), "is not read", f"the name {right}, in camelCase (A2A 1.0 §5.5)")
    for name, kind in shape.members.items():
        member = value.get(name)
        if name in shape.required and _is_absent(member) and name not in misspelt.values():
            problem = "is missing" if name not in value else "is null" if member is None else "is empty"
            yield Finding(_at(path, name), problem, f"{kind.wanted} ({shape.source})")
        elif member is not None and not (member == "" and isinstance(kind, Text)):
            yield from _check(kind, member, _at(path, name), shape.source)
    if shape.one_of:
        found = [name for name in shape.one_of if value.get(name) is not None or name in misspelt.values()]
        if len(found) != 1:
            has = " and ".join(found) if found else "none of them"
            yield Finding(path, f"has {has}", f"exactly one of {', '.join(shape.one_of)} ({shape.source})")


def _check_tagged(kind: Tagged, value: Mapping[str, Any], path: str) -> Iterator[Finding]:
    tag = value.get(kind.tag)
    shape = kind.shapes.get(tag) if isinstance(tag, str) else None
    if shape is not None:
        yield from _check_shape(shape, value, path)
        return
    problem = "is missing" if tag is None else f"is {_shown(tag) if isinstance(tag, str) else kind_of(tag)}"
    yield Finding(_at(path, kind.tag), problem, f"one of {', '.join(kind.shapes)} ({kind.source})")


def _misspelt(shape: Shape, value: Mapping[str, Any]) -> dict[str, str]:
    """Return unknown members that have a member's name in another case or with underscores, and that name."""
    plain = {_plain(name): name for name in shape.members}
    unknown = [name for name in value if name not in shape.members]
    pairs = ((name, plain.get(_plain(name), "")) for name in unknown)
    return {name: right for name, right in pairs if right and right not in value}


def _interfaces_1_0(card: Mapping[str, Any]) -> Iterator[Finding]:
    seen: dict[tuple[str, ...], str] = {}
    listed = [shown for shown in interfaces(card) if shown.place.startswith("supportedInterfaces")]
    for shown in listed:
        yield from _check_url(shown.binding, shown.url, f"{shown.place}.url", "A2A 1.0 §4.4.6")
        yield from _check_binding(shown.binding, f"{shown.place}.protocolBinding", "A2A 1.0 §4.4.6")
        entry = (shown.url, shown.binding, shown.version, shown.tenant)
        if all(entry[:3]) and entry in seen:
            yield Finding(shown.place, f"repeats {seen[entry]}", "each interface once (A2A 1.0 §8.3.1)")
        seen.setdefault(entry, shown.place)


def _interfaces_0_3(card: Mapping[str, Any]) -> Iterator[Finding]:
    for shown in interfaces(card):
        if shown.place == "url":
            yield from _check_url(shown.binding, shown.url, "url", "A2A 0.3 §5.5")
            yield from _check_binding(shown.binding, "preferredTransport", "A2A 0.3 §5.5.5")
        elif shown.place.startswith("additionalInterfaces"):
            yield from _check_url(shown.binding, shown.url, f"{shown.place}.url", "A2A 0.3 §5.5.5")
            yield from _check_binding(shown.binding, f"{shown.place}.transport", "A2A 0.3 §5.5.5")


def _check_url(binding: str, url: str, path: str, source: str) -> Iterator[Finding]:
    if not url:
        return
    if binding == "GRPC":
        wanted, good = "an absolute URL or HOST:PORT", is_absolute(url) or is_absolute(f"grpc://{url}")
    elif binding in CORE_BINDINGS:
        wanted, good = "an absolute http or https URL", is_web_url(url)
    else:
        wanted, good = "an absolute URL", is_absolute(url)
    if not good:
        yield Finding(path, f"is {_shown(url)}", f"{wanted} ({source})")


def _check_binding(binding: str, path: str, source: str) -> Iterator[Finding]:
    """Find a core binding under a name that clients, which compare exactly, do not know."""
    right = _MEANT.get(re.sub("[^a-z]", "", binding.lower()))
    if right is not None and binding != right:
        yield Finding(path, f"is {_shown(binding)}", f"{right}, written exactly so ({source})")


def _requirements_1_0(card: Mapping[str, Any]) -> Iterator[Finding]:
    source = "A2A 1.0 §4.5"
    for place, requirement in _requirements(card, "securityRequirements"):
        schemes = requirement.get("schemes")
        if schemes is None and requirement:
            wanted = f'the form {{"schemes": {{NAME: {{"list": [SCOPE, …]}}}}}} ({source})'
            yield Finding(place, "has no schemes", wanted)
        yield from _undeclared(card, schemes if isinstance(schemes, dict) else (), place, source)


def _requirements_0_3(card: Mapping[str, Any]) -> Iterator[Finding]:
    for place, requirement in _requirements(card, "security"):
        yield from _undeclared(card, requirement, place, "A2A 0.3 §5.5")


def _requirements(card: Mapping[str, Any], member: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the requirements of a card and of its skills, each with its place."""
    holders = [("", card)]
    holders += [(f"skills[{index}]", skill) for index, skill in enumerate(_objects(card.get("skills")))]
    for path, holder in holders:
        for index, requirement in enumerate(_objects(holder.get(member))):
            yield f"{_at(path, member)}[{index}]", requirement


def _undeclared(card: Mapping[str, Any], names: Iterable[str], place: str, source: str) -> Iterator[Finding]:
    declared = card.get("securitySchemes")
    for name in names:
        if not isinstance(declared, dict) or name not in declared:
            yield Finding(
                place, f"names {_shown(name)}", f"a scheme that securitySchemes declares ({source})"
            )


def _repeated_skills(card: Mapping[str, Any]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for index, skill in enumerate(_objects(card.get("skills"))):
        name, path = _text(skill.get("id")), f"skills[{index}].id"
        if name and name in seen:
            yield Finding(path, f"repeats {seen[name]}", "an id that no other skill has (A2A 1.0 §4.4.5)")
        seen.setdefault(name, path)


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    for item in value if isinstance(value, list) else ():
        yield item if isinstance(item, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _is_absent(value: Any) -> bool:
    """Tell whether a value counts as absent: `null`, and text that is empty (A2A 1.0 §5.7)."""
    return value is None or value == ""


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _shown(value: str) -> str:
    return f'"{value[:80]}{"…" if len(value) > 80 else ""}"'
