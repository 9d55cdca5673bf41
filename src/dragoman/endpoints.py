"""What the configuration says of endpoints elsewhere that agents are made of: their URLs, and what they are shown."""

import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from dragoman.tables import ConfigError, seconds

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OWN_HEADERS = frozenset(
    "accept accept-encoding connection content-length content-type host transfer-encoding user-agent".split()
)


def check_url(key: str, url: str, *, example: str, secrets: str) -> None:
    """Make sure that a URL is one of an endpoint; `secrets` is the key for those, which have no place in it.

    Raises:
        ConfigError: it is none.
    """
    try:
        parts = urlsplit(url)
        good = bool(parts.hostname) and parts.port != 0 and parts.scheme in ("https", "http")
    except ValueError:
        good = False
    if not good or not re.fullmatch(r"[!-~]+", url) or {"@", "?", "#", "\\"} & set(url):
        # Not shown: it may hold what somebody took for the place of a password.
        raise ConfigError(
            f"{key} must be a URL such as {example}, with neither user, query nor fragment; secrets go into "
            f"{secrets} or headers_env"
        )


def check_longer(path: str, **durations: str) -> None:
    """Make sure that durations are longer than nothing.

    Raises:
        ConfigError: one is not, or is none.
    """
    for key, text in durations.items():
        if seconds(text, f"{path}.{key}") <= 0:
            raise ConfigError(f'{path}.{key} must be longer than "0s"')


def secret_headers(
    path: str,
    headers_env: Mapping[str, str],
    bearer: tuple[str, str],
    environment: Mapping[str, str],
    reserved: Collection[str] = (),
) -> dict[str, str]:
    """Return the headers that an endpoint is shown.

    Args:
        path: the key of the table that describes it.
        headers_env: names of headers and the variables that hold them.
        bearer: the key for a bearer token, and the variable that holds it; empty if there is none.
        environment: the variables.
        reserved: further headers, in lower case, that cannot be set.

    Raises:
        ConfigError: one cannot be set, or there is no such variable.
    """
    key, variable = bearer
    for header in headers_env:
        if not _HEADER.fullmatch(header) or header.lower() in {*_OWN_HEADERS, *reserved}:
            raise ConfigError(f"{path}.headers_env: {header!r} is no header that can be set here")
        if header.lower() == "authorization" and variable:
            raise ConfigError(f"{path}: {key} is the header Authorization already; leave one of them out")
    headers = {
        header: _secret(environment, name, f"{path}.headers_env") for header, name in headers_env.items()
    }
    if variable:
        headers["Authorization"] = f"Bearer {_secret(environment, variable, f'{path}.{key}')}"
    return headers


def _secret(environment: Mapping[str, str], variable: str, key: str) -> str:
    value = environment.get(variable, "").strip()
    if not value:
        raise ConfigError(f"{key}: the environment variable {variable} is not set, or empty")
    if not value.isascii() or not value.isprintable():
        raise ConfigError(f"{key}: {variable} holds something that no header can carry")
    return value
