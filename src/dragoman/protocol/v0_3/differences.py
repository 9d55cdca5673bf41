"""Where A2A 0.3 and 1.0 differ so that something is lost, changed or made up between them: named, as data.

The compatibility page is made from this table, and the round-trip tests allow exactly the losses named here. What
is merely spelt in another way (`user` and `ROLE_USER`, `file.mimeType` and `mediaType`) is no difference.
"""

from enum import StrEnum

from msgspec import Struct


class Way(StrEnum):
    """The direction in which a difference shows."""

    TO_0_3 = "1.0 → 0.3"
    FROM_0_3 = "0.3 → 1.0"
    BOTH = "both ways"


class Dialect(StrEnum):
    """The form of 0.3 in which it shows: JSON with kinds (JSON-RPC, alias), ProtoJSON (`/v1/v1`), or either."""

    KINDS = "JSON with kinds"
    PROTO = "ProtoJSON"
    EITHER = "both"


class Difference(Struct, frozen=True, kw_only=True):
    """One difference: what it is about, what is lost (nothing, if empty), and what is done."""

    name: str
    way: Way
    dialect: Dialect
    about: str
    lost: str
    done: str


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        name="part-names",
        way=Way.BOTH,
        dialect=Dialect.EITHER,
        about="`filename` and `mediaType` of a text or data part have no member in 0.3",
        lost="",
        done="kept in the part's metadata under `urn:dragoman:ext:part:v1`, and taken out of it again",
    ),
    Difference(
        name="data-values",
        way=Way.BOTH,
        dialect=Dialect.EITHER,
        about="`data` may be any JSON value in 1.0, but only an object in 0.3",
        lost="",
        done=(
            'wrapped as `{"value": …}` and marked by `data_part_compat: true` in the part\'s metadata, as the '
            "official SDKs do it, and unwrapped again"
        ),
    ),
    Difference(
        name="note-keys-taken",
        way=Way.BOTH,
        dialect=Dialect.EITHER,
        about="a part whose own metadata has a key of these notes already",
        lost="`filename` and `mediaType` of such a part, or the mark that its data is wrapped",
        done=(
            "the part's own metadata stays as it is; nothing is added to it; what reads as such a note is taken for "
            "one where a 0.3 caller sends it"
        ),
    ),
    Difference(
        name="reference-task-ids",
        way=Way.BOTH,
        dialect=Dialect.PROTO,
        about="`referenceTaskIds` of a message has no field in the 0.3 proto",
        lost="`referenceTaskIds` in what is shown; one that is sent all the same is read",
        done="left out, because official clients refuse a message with a member that they do not know",
    ),
    Difference(
        name="empty-members",
        way=Way.BOTH,
        dialect=Dialect.EITHER,
        about='members that are there but empty: `""`, `[]`, `{}` and `null`, where they are optional',
        lost="that they were there",
        done="the same as absent in both versions, and left out",
    ),
    Difference(
        name="unknown-members",
        way=Way.BOTH,
        dialect=Dialect.EITHER,
        about="members of standard objects that the version does not have",
        lost="the member",
        done="ignored; inside metadata and data everything is kept",
    ),
    Difference(
        name="request-metadata",
        way=Way.FROM_0_3,
        dialect=Dialect.KINDS,
        about="`metadata` of `tasks/get`, `tasks/resubscribe` and the push methods has no field in 1.0",
        lost="that metadata",
        done="ignored; sends and cancels keep theirs",
    ),
    Difference(
        name="final",
        way=Way.BOTH,
        dialect=Dialect.EITHER,
        about="`final` of a status update; in 1.0 the end of the stream says the same",
        lost="",
        done="true exactly on the status update after which the stream ends, input-required included",
    ),
    Difference(
        name="chunk-flags",
        way=Way.BOTH,
        dialect=Dialect.EITHER,
        about="`append` and `lastChunk`, optional in 0.3",
        lost="the difference between false and absent",
        done="written only where they are true",
    ),
    Difference(
        name="waiting",
        way=Way.FROM_0_3,
        dialect=Dialect.PROTO,
        about="a send whose configuration does not say whether to wait",
        lost="",
        done=(
            "a `configuration` without `blocking` does not wait, because `false` is never written in ProtoJSON; "
            "without a configuration, and in the JSON with kinds, the send waits"
        ),
    ),
    Difference(
        name="no-history",
        way=Way.FROM_0_3,
        dialect=Dialect.PROTO,
        about="a `historyLength` of 0 is the same as none in the 0.3 proto",
        lost="the wish for no history at all",
        done="read as not given; in the JSON with kinds 0 means no history, as in 1.0",
    ),
    Difference(
        name="file-bytes",
        way=Way.BOTH,
        dialect=Dialect.PROTO,
        about="official Python clients put base64 of base64 into `fileWithBytes`, all others base64",
        lost="",
        done="callers whose User-Agent is that of their HTTP library, `python-httpx/…`, are read and answered so",
    ),
    Difference(
        name="numbers",
        way=Way.TO_0_3,
        dialect=Dialect.PROTO,
        about="official clients read every number in metadata and data as a double",
        lost="digits of integers beyond 2^53, on the client's side",
        done="every digit is written; use JSON-RPC where it matters",
    ),
    Difference(
        name="finished-subscription",
        way=Way.BOTH,
        dialect=Dialect.EITHER,
        about="subscribing to a task that is finished",
        lost="",
        done="0.3 gets the Task and the stream ends; 1.0 gets UnsupportedOperation",
    ),
    Difference(
        name="snapshots",
        way=Way.TO_0_3,
        dialect=Dialect.EITHER,
        about="a further Task in a stream, for a caller that fell far behind or after a lost attempt",
        lost="the stream, with a2a-sdk 0.3.26, which takes one Task only; resubscribe then",
        done="sent as in 1.0",
    ),
    Difference(
        name="listing",
        way=Way.FROM_0_3,
        dialect=Dialect.KINDS,
        about="listing tasks, which 0.3 does not have",
        lost="",
        done="served over HTTP at the alias and the headerless base: 1.0's filters and page, 0.3's tasks and states",
    ),
    Difference(
        name="push-schemes",
        way=Way.FROM_0_3,
        dialect=Dialect.EITHER,
        about="`authentication.schemes` of a push configuration is a list in 0.3, one scheme in 1.0",
        lost="all schemes but the first",
        done="the first one is used: there is one `Authorization` header",
    ),
    Difference(
        name="push-notifications",
        way=Way.BOTH,
        dialect=Dialect.EITHER,
        about="what a push notification holds, which 0.3 leaves open",
        lost="",
        done=(
            "a configuration of 0.3 is told the Task as it stands after each event, in the JSON with kinds; one of 1.0 "
            "the event"
        ),
    ),
    Difference(
        name="tenant",
        way=Way.FROM_0_3,
        dialect=Dialect.EITHER,
        about="`tenant` of a request, which 0.3 does not have",
        lost="the member",
        done="ignored; the agent is named by the path",
    ),
    Difference(
        name="card-interfaces",
        way=Way.TO_0_3,
        dialect=Dialect.EITHER,
        about="interfaces of 1.0 in the pure 0.3 card",
        lost="that they are there",
        done="not listed; the card that is asked for without a version lists both",
    ),
    Difference(
        name="newer-errors",
        way=Way.TO_0_3,
        dialect=Dialect.EITHER,
        about="errors that 0.3 does not name: a required extension, an unsupported version, a reused messageId",
        lost="",
        done="told by the names and codes of 1.0",
    ),
)
"""Every difference, by subject."""
