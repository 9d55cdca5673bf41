"""What is not the same when an agent of somebody else is served as ours: named, as data.

The page on remote agents is made from this table. What A2A 0.3 and 1.0 cannot carry between each other is not told
again here: each generation's own table has it.
"""

from msgspec import Struct


class Difference(Struct, frozen=True, kw_only=True):
    """One difference: what it is about, what is lost (nothing, if empty), and what is done."""

    name: str
    about: str
    lost: str
    done: str


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        name="ids",
        about="ids of tasks, contexts and messages of callers",
        lost="",
        done=(
            "both sides have their own; a message is sent as `TASK-TURN` by the id of our task, and a context as a "
            "digest of agent, tenant, principal and context, so that callers who choose the same name do not meet there"
        ),
    ),
    Difference(
        name="times",
        about="timestamps of statuses",
        lost="the remote agent's own",
        done="those of our store, which are in order",
    ),
    Difference(
        name="task-metadata",
        about="`metadata` of a Task itself, which ours has from its first message alone",
        lost="the remote agent's",
        done="left out; metadata of messages, parts, artifacts and updates is kept",
    ),
    Difference(
        name="references",
        about="`referenceTaskIds` of messages, which name tasks of one side",
        lost="the references",
        done="left out both ways",
    ),
    Difference(
        name="submitted",
        about="what is said of a task that the remote agent has not begun",
        lost="that it was not begun",
        done="a status SUBMITTED with a message is told as WORKING; without one it is not told",
    ),
    Difference(
        name="further-messages",
        about="a caller's message to a task that works",
        lost="the remote agent does not get it",
        done="it joins the history here; only answers to questions are sent on",
    ),
    Difference(
        name="authorized-elsewhere",
        about="a task that asked for authorization, and went on by itself",
        lost="",
        done=(
            "nobody watches it while it waits here; the caller's next message, whatever it says, has our server look, "
            "and is sent on only if the task still waits"
        ),
    ),
    Difference(
        name="waiting-cancelled",
        about="a cancel of a task that waits for its caller",
        lost="the remote agent is not told",
        done="our task is CANCELED; a task that works is cancelled at the remote agent too",
    ),
    Difference(
        name="last-chunks",
        about="`lastChunk` and `metadata` of updates that nobody heard, or of a remote agent that does not stream",
        lost="these marks",
        done="what was missed is told from the task as it stands, each piece once",
    ),
    Difference(
        name="unknown-state",
        about="the state `unknown` of 0.3",
        lost="that nobody knows",
        done="told as WORKING",
    ),
    Difference(
        name="files-over-0.3-http",
        about="bytes of a file over HTTP+JSON of 0.3, which official Python servers read and write as base64 of base64",
        lost="bytes that are base64 text themselves, from a server that does not",
        done="sent as those servers read them; what is base64 inside is taken for theirs; JSON-RPC is preferred",
    ),
    Difference(
        name="push",
        about="push notifications and extended cards of the remote agent",
        lost="",
        done="not used: our own notifications tell what our task does",
    ),
    Difference(
        name="security",
        about="security schemes of the remote card",
        lost="",
        done="callers show their credentials to us, and our card says which; the remote agent is shown the operator's",
    ),
)
"""Every difference, by subject."""
