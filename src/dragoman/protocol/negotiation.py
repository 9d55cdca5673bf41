"""Version negotiation: which protocol version a request speaks. Pure, and done before anything else.

HTTP+JSON takes exactly `Major.Minor`; JSON-RPC takes patch revisions of it as well. No version at all means 0.3
(A2A 1.0 §3.6.2). Nothing is ever downgraded: what is not served is refused by name.
"""

import re
from collections.abc import Collection, Sequence

from dragoman.model.errors import VersionNotSupported

UNNAMED = "0.3"
"""The version of a request that names none."""

HEADER = "A2A-Version"

_EXACT = re.compile(r"(?:0|[1-9]\d{0,3})\.(?:0|[1-9]\d{0,3})", re.ASCII)
_WITH_PATCH = re.compile(rf"({_EXACT.pattern})(?:\.(?:0|[1-9]\d{{0,3}}))?", re.ASCII)


def requested_version(headers: Sequence[bytes], query: Sequence[str], served: Collection[str]) -> str | None:
    """Return the version that a request names, or `None` if it names none.

    Args:
        headers: the values of every A2A-Version header.
        query: the values of every `A2A-Version` query parameter.
        served: the versions that are served, to be named in a refusal.

    Raises:
        VersionNotSupported: it names several that differ, or one that is no ASCII text.
    """
    if not headers and not query:
        return None
    try:
        if len(headers) == 1 and not query:
            return headers[0].strip(b" \t").decode("ascii") or None
        named = {value.strip(b" \t").decode("ascii") for value in headers} | set(query)
    except UnicodeDecodeError:
        raise unsupported("\N{REPLACEMENT CHARACTER}", served) from None
    if len(named) > 1:
        asked = "Several versions were asked for at once"
        raise _refusal(asked, served, " ".join(sorted(_shown(value) for value in named))[:128])
    return named.pop() or None


def http_version(requested: str | None, served: Collection[str]) -> str:
    """Return the version to serve an HTTP+JSON request in: exactly the one it names.

    Raises:
        VersionNotSupported: it is not served here, or no version in `Major.Minor` form.
    """
    version = UNNAMED if requested is None else requested
    if version not in served:
        raise unsupported(requested, served)
    return version


def jsonrpc_version(requested: str | None, served: Collection[str]) -> str:
    """Return the version to serve a JSON-RPC request in; a patch revision counts as its `Major.Minor`.

    Raises:
        VersionNotSupported: it is not served here.
    """
    if requested is not None:
        if requested in served:
            return requested
        form = _WITH_PATCH.fullmatch(requested)
        if form is not None and form[1] in served:
            return form[1]
    elif UNNAMED in served:
        return UNNAMED
    raise unsupported(requested, served)


def unsupported(requested: str | None, served: Collection[str]) -> VersionNotSupported:
    """Return the refusal of a version, which names what was asked for and what is served."""
    if requested is None:
        asked = f"This request has no {HEADER} header, which means version {UNNAMED}"
        return _refusal(asked, served, UNNAMED)
    asked = f"Version {_shown(requested)!r} was asked for"
    if _EXACT.fullmatch(requested) is None:
        asked += ", and a version has the form Major.Minor"
    return _refusal(asked, served, _shown(requested))


def _shown(requested: str) -> str:
    return requested[:32] if requested.isascii() and requested.isprintable() else "not printable ASCII"


def _refusal(asked: str, served: Collection[str], requested: str) -> VersionNotSupported:
    advice = (
        f"served here: {', '.join(served)}. Send the header {HEADER} with one of these"
        if served
        else "no version is served at this path. The agent card lists the interfaces"
    )
    message = f"{asked}; {advice}"
    return VersionNotSupported(message, metadata={"requested": requested, "supported": ",".join(served)})
