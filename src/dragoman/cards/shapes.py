"""What the standard wants of an agent card, as data: A2A 1.0 §4.4 and §4.5 with §5.7, and A2A 0.3 §5.5.

A kind says what a value must be; a `Shape` is the kind of an object whose members have names of the standard.
Members that a shape does not name are ignored, as both generations ask (A2A 1.0 §5.7).
"""

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from msgspec import Struct


class Text(Struct, frozen=True):
    """A string; `test` tells whether it has the form that `wanted` describes.

    `explicit`: in A2A 1.0 an empty one says something else than one that is not there (`optional` in its proto).
    """

    wanted: str = "a string"
    test: Callable[[str], bool] | None = None
    explicit: bool = False


class Flag(Struct, frozen=True):
    """A truth value; `explicit` as for `Text`: false says something else than nothing."""

    wanted: str = "true or false"
    explicit: bool = False


class Free(Struct, frozen=True):
    """An object whose members are nobody's business here."""

    wanted: str = "an object"


class Many(Struct, frozen=True):
    """An array."""

    item: "Kind"
    least: int = 0

    @property
    def wanted(self) -> str:
        """What this is, for messages."""
        least = " with at least one item" if self.least else ""
        return f"an array{least}, each {self.item.wanted}"


class Named(Struct, frozen=True):
    """An object whose members have names of the card's own."""

    item: "Kind"

    @property
    def wanted(self) -> str:
        """What this is, for messages."""
        return f"an object, each member {self.item.wanted}"


class Shape(Struct, frozen=True, kw_only=True):
    """An object of the standard.

    `source` is where the standard describes it. Required members must be there and not be empty (A2A 1.0 §5.7).
    Of the members in `one_of`, exactly one must be there.
    """

    wanted: str
    source: str
    members: Mapping[str, "Kind"]
    required: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()


class Tagged(Struct, frozen=True, kw_only=True):
    """An object whose member `tag` says which shape it has."""

    wanted: str
    source: str
    tag: str
    shapes: Mapping[str, Shape]


Kind = Text | Flag | Free | Many | Named | Shape | Tagged

_MEDIA_TYPE = re.compile(r"[\w!#$&^.+*-]+/[\w!#$&^.+*-]+(\s*;.*)?", re.ASCII)
_MAJOR_MINOR = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)", re.ASCII)
_VERSION_0_3 = re.compile(r"0\.\d+(\.\d+)?", re.ASCII)


def is_web_url(text: str) -> bool:
    """Tell whether a text is an absolute URL over http or https."""
    return is_absolute(text) and urlsplit(text).scheme in ("http", "https")


def is_absolute(text: str) -> bool:
    """Tell whether a text is a URL with a scheme and a host."""
    try:
        parts = urlsplit(text)
        return bool(parts.scheme and parts.hostname) and parts.port != 0 and not re.search(r"\s", text)
    except ValueError:
        return False


TEXT = Text()
FLAG = Flag()
STATED = Flag(explicit=True)
FREE = Free()
WEB_URL = Text("an absolute http or https URL", is_web_url)
MEDIA_TYPES = Text("a media type such as text/plain", lambda text: _MEDIA_TYPE.fullmatch(text) is not None)
MAJOR_MINOR = Text(
    'a version as Major.Minor, such as "1.0"', lambda text: _MAJOR_MINOR.fullmatch(text) is not None
)
LOCATION = Text("one of query, header and cookie", lambda text: text in ("query", "header", "cookie"))

_PROVIDER: Mapping[str, Kind] = {"organization": TEXT, "url": WEB_URL}
_EXTENSION: Mapping[str, Kind] = {"uri": TEXT, "description": TEXT, "required": FLAG, "params": FREE}
_SIGNATURE: Mapping[str, Kind] = {"protected": TEXT, "signature": TEXT, "header": FREE}
_SKILL: Mapping[str, Kind] = {
    "id": TEXT,
    "name": TEXT,
    "description": TEXT,
    "tags": Many(TEXT, least=1),
    "examples": Many(TEXT),
    "inputModes": Many(MEDIA_TYPES),
    "outputModes": Many(MEDIA_TYPES),
}
_SCOPES = Named(TEXT)
_FLOWS: Mapping[str, tuple[str, ...]] = {
    "authorizationCode": ("authorizationUrl", "tokenUrl", "scopes"),
    "clientCredentials": ("tokenUrl", "scopes"),
    "implicit": ("authorizationUrl", "scopes"),
    "password": ("tokenUrl", "scopes"),
    "deviceCode": ("deviceAuthorizationUrl", "tokenUrl", "scopes"),
}
"""The members that each OAuth flow cannot do without. `scopes` may be empty, but not missing."""

_DEPRECATED = ("implicit", "password")
"""Flows of which A2A 1.0 requires nothing any more."""


def _flow(name: str, source: str, required: tuple[str, ...]) -> Shape:
    urls: Mapping[str, Kind] = dict.fromkeys((*_FLOWS[name], "refreshUrl"), WEB_URL)
    members = {**urls, "scopes": _SCOPES, "pkceRequired": FLAG}
    return Shape(wanted=f"the {name} flow", source=source, members=members, required=required)


_FLOWS_1_0 = Shape(
    wanted="OAuthFlows",
    source="A2A 1.0 §4.5.7",
    members={
        name: _flow(name, "A2A 1.0 §4.5.7", () if name in _DEPRECATED else required)
        for name, required in _FLOWS.items()
    },
    one_of=tuple(_FLOWS),
)
_FLOWS_0_3 = Shape(
    wanted="OAuthFlows",
    source="A2A 0.3 §5.5.3",
    members={
        name: _flow(name, "A2A 0.3 §5.5.3", required)
        for name, required in _FLOWS.items()
        if name != "deviceCode"
    },
)


_SCHEME_1_0 = Shape(
    wanted="a SecurityScheme",
    source="A2A 1.0 §4.5.1",
    members={
        "apiKeySecurityScheme": Shape(
            wanted="an APIKeySecurityScheme",
            source="A2A 1.0 §4.5.2",
            members={"description": TEXT, "location": LOCATION, "name": TEXT},
            required=("location", "name"),
        ),
        "httpAuthSecurityScheme": Shape(
            wanted="an HTTPAuthSecurityScheme",
            source="A2A 1.0 §4.5.3",
            members={"description": TEXT, "scheme": TEXT, "bearerFormat": TEXT},
            required=("scheme",),
        ),
        "oauth2SecurityScheme": Shape(
            wanted="an OAuth2SecurityScheme",
            source="A2A 1.0 §4.5.4",
            members={
                "description": TEXT,
                "flows": _FLOWS_1_0,
                "oauth2MetadataUrl": WEB_URL,
            },
            required=("flows",),
        ),
        "openIdConnectSecurityScheme": Shape(
            wanted="an OpenIdConnectSecurityScheme",
            source="A2A 1.0 §4.5.5",
            members={"description": TEXT, "openIdConnectUrl": WEB_URL},
            required=("openIdConnectUrl",),
        ),
        "mtlsSecurityScheme": Shape(
            wanted="a MutualTlsSecurityScheme", source="A2A 1.0 §4.5.6", members={"description": TEXT}
        ),
    },
    one_of=(
        "apiKeySecurityScheme",
        "httpAuthSecurityScheme",
        "oauth2SecurityScheme",
        "openIdConnectSecurityScheme",
        "mtlsSecurityScheme",
    ),
)

_REQUIREMENTS_1_0 = Many(
    Shape(
        wanted="a SecurityRequirement",
        source="A2A 1.0 §4.5",
        members={
            "schemes": Named(
                Shape(wanted="a StringList", source="A2A 1.0 §4.5", members={"list": Many(TEXT)})
            )
        },
    )
)

CARD_1_0 = Shape(
    wanted="an AgentCard",
    source="A2A 1.0 §4.4.1",
    members={
        "name": TEXT,
        "description": TEXT,
        "version": TEXT,
        "supportedInterfaces": Many(
            Shape(
                wanted="an AgentInterface",
                source="A2A 1.0 §4.4.6",
                members={
                    "url": TEXT,
                    "protocolBinding": TEXT,
                    "protocolVersion": MAJOR_MINOR,
                    "tenant": TEXT,
                },
                required=("url", "protocolBinding", "protocolVersion"),
            ),
            least=1,
        ),
        "capabilities": Shape(
            wanted="AgentCapabilities",
            source="A2A 1.0 §4.4.3",
            members={
                "streaming": STATED,
                "pushNotifications": STATED,
                "extendedAgentCard": STATED,
                "extensions": Many(
                    Shape(wanted="an AgentExtension", source="A2A 1.0 §4.4.4", members=_EXTENSION)
                ),
            },
        ),
        "defaultInputModes": Many(MEDIA_TYPES, least=1),
        "defaultOutputModes": Many(MEDIA_TYPES, least=1),
        "skills": Many(
            Shape(
                wanted="an AgentSkill",
                source="A2A 1.0 §4.4.5",
                members={**_SKILL, "securityRequirements": _REQUIREMENTS_1_0},
                required=("id", "name", "description", "tags"),
            ),
            least=1,
        ),
        "provider": Shape(
            wanted="an AgentProvider",
            source="A2A 1.0 §4.4.2",
            members=_PROVIDER,
            required=("organization", "url"),
        ),
        "documentationUrl": Text(WEB_URL.wanted, is_web_url, explicit=True),
        "iconUrl": Text(explicit=True),
        "securitySchemes": Named(_SCHEME_1_0),
        "securityRequirements": _REQUIREMENTS_1_0,
        "signatures": Many(
            Shape(
                wanted="an AgentCardSignature",
                source="A2A 1.0 §4.4.7",
                members=_SIGNATURE,
                required=("protected", "signature"),
            )
        ),
    },
    required=(
        "name",
        "description",
        "version",
        "supportedInterfaces",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
    ),
)


def _scheme_0_3(members: Mapping[str, Kind], *required: str) -> Shape:
    return Shape(
        wanted="a SecurityScheme",
        source="A2A 0.3 §5.5.3",
        members={"type": TEXT, "description": TEXT, **members},
        required=("type", *required),
    )


_SCHEME_0_3 = Tagged(
    wanted="a SecurityScheme",
    source="A2A 0.3 §5.5.3",
    tag="type",
    shapes={
        "apiKey": _scheme_0_3({"in": LOCATION, "name": TEXT}, "in", "name"),
        "http": _scheme_0_3({"scheme": TEXT, "bearerFormat": TEXT}, "scheme"),
        "oauth2": _scheme_0_3(
            {
                "flows": _FLOWS_0_3,
                "oauth2MetadataUrl": WEB_URL,
            },
            "flows",
        ),
        "openIdConnect": _scheme_0_3({"openIdConnectUrl": WEB_URL}, "openIdConnectUrl"),
        "mutualTLS": _scheme_0_3({}),
    },
)

_REQUIREMENTS_0_3 = Many(Named(Many(TEXT)))

CARD_0_3 = Shape(
    wanted="an AgentCard",
    source="A2A 0.3 §5.5",
    members={
        "protocolVersion": Text(
            'a version such as "0.3.0"', lambda text: _VERSION_0_3.fullmatch(text) is not None
        ),
        "name": TEXT,
        "description": TEXT,
        "version": TEXT,
        "url": TEXT,
        "preferredTransport": TEXT,
        "additionalInterfaces": Many(
            Shape(
                wanted="an AgentInterface",
                source="A2A 0.3 §5.5.5",
                members={"url": TEXT, "transport": TEXT},
                required=("url", "transport"),
            )
        ),
        "capabilities": Shape(
            wanted="AgentCapabilities",
            source="A2A 0.3 §5.5.2",
            members={
                "streaming": FLAG,
                "pushNotifications": FLAG,
                "stateTransitionHistory": FLAG,
                "extensions": Many(
                    Shape(
                        wanted="an AgentExtension",
                        source="A2A 0.3 §5.5.2.1",
                        members=_EXTENSION,
                        required=("uri",),
                    )
                ),
            },
        ),
        "defaultInputModes": Many(MEDIA_TYPES),
        "defaultOutputModes": Many(MEDIA_TYPES),
        "skills": Many(
            Shape(
                wanted="an AgentSkill",
                source="A2A 0.3 §5.5.4",
                members={**_SKILL, "tags": Many(TEXT), "security": _REQUIREMENTS_0_3},
                required=("id", "name", "description", "tags"),
            ),
            least=1,
        ),
        "provider": Shape(
            wanted="an AgentProvider",
            source="A2A 0.3 §5.5.1",
            members=_PROVIDER,
            required=("organization", "url"),
        ),
        "documentationUrl": WEB_URL,
        "iconUrl": TEXT,
        "securitySchemes": Named(_SCHEME_0_3),
        "security": _REQUIREMENTS_0_3,
        "supportsAuthenticatedExtendedCard": FLAG,
        "signatures": Many(
            Shape(
                wanted="an AgentCardSignature",
                source="A2A 0.3 §5.5.6",
                members=_SIGNATURE,
                required=("protected", "signature"),
            )
        ),
    },
    required=(
        "protocolVersion",
        "name",
        "description",
        "version",
        "url",
        "preferredTransport",
        "capabilities",
        "defaultInputModes",
        "defaultOutputModes",
        "skills",
    ),
)
