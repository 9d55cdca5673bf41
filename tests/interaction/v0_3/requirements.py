"""What the server promises callers of A2A 0.3: see `tests.interaction.manifest`.

The bindings are the places where 0.3 is served, and at the official place the kinds of callers. Sources: `SPEC` is our
contract, `seed A` the seed whose headerless interface this suite reconstructs, `A2A` the 0.3 standard and `1.0` the
later one, by section, `clients` what official clients were seen to send and to need, `kit` what the upstream 0.3 kit
asks for. Each difference between 0.3 and 1.0 that the code names is a requirement too.
"""

from dragoman.protocol.v0_3.differences import DIFFERENCES, Dialect
from tests.interaction.manifest import Requirement, marker, read_table
from tests.interaction.v0_3.callers import (
    FORMS,
    FORMS_WITH_KINDS,
    KINDS,
    OFFICIAL,
    PLACES,
    SEED_A,
    WEB,
    Place,
)

_TABLE = """
version.meaning          | all      | seed A     | no version, an empty one and 0.3 mean 0.3, by header or by query
version.refused          | all      | SPEC N2    | every other version is refused in the form of 1.0
version.patch            | rpc      | SPEC N4    | JSON-RPC takes patch revisions of 0.3, HTTP does not
version.closed           | -        | SPEC N3    | 1.0 fails closed on every path of the alias and the official place
version.operator         | all      | SPEC N7    | versions that the operator did not name are refused by name
version.methods          | rpc      | SPEC N4    | a method of the other generation is never taken for one of this
version.reply-headers    | all      | SPEC N5    | every reply, error and stream says 0.3 and what it varies by
form.kinds               | kinds    | A2A 6      | results with kinds are bare, and their kind says what they are
form.proto               | official | clients c  | results in ProtoJSON are wrapped and spelt as the 0.3 proto has them
path.spellings           | seed A   | SPEC I2    | messages may be sent by singular and by plural
path.methods             | web      | SPEC I4    | a wrong method is 405 with Allow
path.head                | web      | SPEC I1    | HEAD answers wherever GET does, without a body
path.unknown             | all      | SPEC I4    | wrong paths and agents are 404 as a problem
path.agents              | all      | SPEC I2    | an agent may be called v1, rpc or tasks
path.task-ids            | all      | A2A 7.3    | any text may be asked for as a task id, routes included
path.context-ids         | all      | A2A 6.4    | any text may name a context, routes included
path.query               | web      | SPEC I2    | a query of nonsense is ignored
headers.request-id       | all      | SPEC C5    | a request id of the caller is kept, and told in problems
extensions.echo          | all      | SPEC K5    | active extensions are echoed under the name of 0.3, others ignored
extensions.required      | all      | SPEC K5    | without a required extension what is offered is refused by name
extensions.metadata      | forms    | SPEC K5    | data of extensions stand in metadata, through every state
media.json               | forms    | SPEC W4    | application/json is read in any case and with any charset
media.wrong              | forms    | SPEC W4    | a body of any other type is 415 before it is parsed, a2a+json too
media.no-body            | web      | SPEC W4    | a POST without a body needs no type and may have one
media.accept             | forms    | SPEC W4    | a success that Accept forbids is 406, an error is itself
media.streams            | forms    | SPEC W4    | a stream is an event stream for whoever takes JSON or streams
body.too-large           | all      | SPEC W7    | a body over the limit is 413, by its length or by its chunks
body.limit               | all      | SPEC W7    | a body of exactly the limit is read
body.too-slow            | all      | SPEC 7     | a body that is not whole in time is 408
body.cut                 | all      | SPEC D1    | half a body is never taken for a whole one
body.connection          | all      | RFC 9112   | a connection serves on after a refusal, and in order
json.duplicates          | forms    | SPEC W3    | a key given twice is refused by its path
json.values              | forms    | SPEC W3    | numbers out of range and lone surrogates are refused by their path
json.malformed           | forms    | SPEC W3    | a body that is no JSON, NaN and bad UTF-8 included, is refused
json.depth               | forms    | SPEC W3    | nesting over 64 is refused
json.object              | forms    | SPEC W3    | parameters that are no object are refused
envelope.malformed       | rpc      | A2A 8      | a body that is no JSON is -32700 with a null id
envelope.wrong           | rpc      | JSON-RPC 4 | batches, wrong members and members given twice are refused
envelope.id              | rpc      | JSON-RPC 4 | an id comes back as it was, in every event of a stream too
envelope.params          | rpc      | JSON-RPC 4 | params that are no object are refused, whatever they are
envelope.notification    | rpc      | SPEC N4    | a notification is -32600 with a null id and runs nothing
envelope.faults-first    | rpc      | kit F2     | what else is wrong with a request without an id is told first
envelope.unknown         | rpc      | SPEC W3    | unknown members of the envelope are ignored
envelope.slash           | rpc      | SPEC 4     | the endpoint answers with and without a final slash
methods.known            | rpc      | A2A 7      | every method of 0.3 is known
methods.unknown          | rpc      | SPEC N4    | a method that nobody has is -32601
parts.faults             | forms    | SPEC W3    | wrong parts are refused by their path
parts.newer              | forms    | SPEC W3    | members of 1.0 parts, and of the other form, are refused by name
parts.base64             | forms    | SPEC W3    | both alphabets are read, padded or not, and nothing else
parts.kinds              | all      | SPEC W1    | parts of every kind come back in order with all they carry
parts.migration-names    | 2 forms  | 1.0 A.2    | the names that 1.0's migration notes give to files of 0.3 are read
message.role             | forms    | SPEC W3    | a caller speaks as the user, by its name in this form alone
message.members          | forms    | SPEC W3    | missing or wrong members of a message are refused by name
message.configuration    | forms    | SPEC W3    | wrong members of a configuration are refused by name
message.unknown          | forms    | SPEC W3    | unknown and empty members are ignored
payload.untouched        | forms    | SPEC W1    | metadata and data keep numbers, order, unknown keys and U+0000
payload.handler          | forms    | SPEC W1    | a handler sees payloads with every digit
payload.text             | forms    | SPEC W1    | text of any script comes back, control characters too
files.bytes              | official | clients a  | a file means the same from every client and to every client
files.callers            | proto    | clients a  | nobody but Python's HTTP library is taken to double
clients.requests         | proto    | clients c  | requests are read as each official client writes them
clients.request          | proto    | clients c  | the message of a send may be called request
clients.spellings        | official | kit F4     | names are read in both spellings, but not in both at once
clients.numbers          | official | clients c  | a whole number may come as a double
clients.cancel           | web      | clients c  | a cancel may come with a type and no body
clients.subscribe        | official | kit F5     | a subscription may be a GET or a POST, with a type and no body
clients.get              | web      | clients a  | a GET may name the type of a body that it does not have
clients.errors           | proto    | clients d  | an error has what each client types it by
clients.card             | official | clients e  | the card of the place serves as the authenticated one
errors.form              | all      | SPEC W3    | every refusal has its type, code and status, and stores nothing
push.operations          | all      | A2A 7.5    | configurations are created, read, listed and deleted in every form
push.delivery            | all      | SPEC 13    | every event is posted as the Task as it stands, in order
errors.push              | all      | A2A 8.2    | push configurations are not supported, inline ones neither
errors.extended-card     | rpc      | SPEC K4    | an extended card that is not declared is not supported
errors.streaming         | all      | A2A 8.2    | an agent that does not stream refuses streams
errors.texts             | web      | SPEC W3    | a problem tells what is wrong and names the field
send.blocking            | all      | SPEC D7    | a send returns the finished task with its results
send.waiting             | forms    | SPEC D7    | whether a send waits hangs on its configuration and its form
send.states              | all      | A2A 6.3    | failures and rejections say why, in the states of 0.3
send.history             | forms    | clients b  | a send's history is as long as asked for, 0 by its form
send.bare-message        | all      | SPEC A1    | a bare message has no task that is shown or listed
send.no-answer           | all      | A2A 8.2    | an agent that gave no message is InvalidAgentResponse
send.input-modes         | all      | SPEC 17    | a part of a type that the agent does not take is refused
send.facts               | all      | SPEC A2    | a handler is told what the request says
turns.context            | all      | SPEC D9    | a context of the caller is kept, and one is given otherwise
turns.same-task          | all      | A2A 6.4    | a message to a running task joins it
turns.refused            | all      | SPEC 17    | unknown, foreign and finished tasks take no message
turns.asked              | all      | SPEC 17    | a send returns at a question, and the answer goes on with the task
get.task                 | all      | A2A 7.3    | a task reads as it was answered
get.unknown              | all      | A2A 8.2    | a task that does not exist, or is another agent's, is not found
get.history              | all      | A2A 7.3    | history is the newest of it, as long as asked for
get.id                   | rpc      | A2A 7.3    | a task id must be text that is not empty
get.metadata             | rpc      | A2A 7.3    | metadata of a reading request is taken and means nothing
list.page                | seed A   | SPEC 17    | a page has 1.0's members and 0.3's tasks
list.status              | seed A   | SPEC 17    | the status filter takes the states of 0.3
list.filters             | seed A   | SPEC 17    | a wrong filter is refused, never dropped
list.pages               | seed A   | SPEC D8    | pages hold each task once, newest first, by tokens of their own
list.total               | seed A   | SPEC D8    | bare messages are neither listed nor counted
list.nowhere-else        | -        | SPEC 17    | the official place and JSON-RPC have no listing
cancel.running           | all      | SPEC D6    | a cancelled task is canceled, stored and answered
cancel.spellings         | seed A   | SPEC I2    | a task is cancelled by colon and by slash
cancel.bodies            | all      | SPEC W3    | a body may repeat the task, and must not name another
cancel.stops             | all      | SPEC D6    | a cancel stops the handler
cancel.refused           | all      | SPEC D6    | a finished task and none at all cannot be cancelled
cancel.waiting           | all      | SPEC D6    | a task that waits for its caller can be cancelled
subscribe.snapshot       | all      | A2A 7.9    | a subscription begins with the task as it stands, and ends with it
subscribe.spellings      | web      | SPEC I2    | a task is subscribed to by colon and slash, GET and POST
subscribe.bodies         | web      | SPEC W3    | a subscription must not name two tasks
subscribe.finished       | all      | SPEC 17    | a finished task is shown and the stream ends
subscribe.refused        | all      | A2A 8.2    | a task that does not exist cannot be subscribed to
subscribe.question       | all      | SPEC 17    | a subscription stays at a question, which is not final in it
subscribe.resume         | all      | SPEC W6    | Last-Event-ID goes on after that event, or from a snapshot
stream.shape             | all      | A2A 7.2    | a stream is one task and then updates
stream.final             | all      | SPEC 17    | final is on the last event of a stream and on no other
stream.question          | all      | SPEC 17    | a send's stream ends at a question, and stays for an authorisation
stream.same-task         | all      | A2A 7.2    | a stream put together is the task
stream.ids               | all      | SPEC W6    | an event's id is its sequence in the task
stream.chunks            | all      | A2A 7.2    | chunks append to one artifact and the last one says so
stream.frames            | all      | SPEC W6    | a frame is an id and one line of data
stream.text              | all      | SPEC W6    | text travels as UTF-8, but for what some take for line ends
stream.bare-message      | all      | A2A 7.2    | the stream of a bare message is that message
stream.at-once           | all      | A2A 7.2    | blocking means nothing to a stream
stream.error             | all      | clients d  | an error in a stream keeps its form and ends it
stream.refused           | web      | clients 0  | a stream that is refused over HTTP is a problem
stream.refused-as-stream | rpc      | A2A 7      | over JSON-RPC it is a stream of the error for whoever takes streams
stream.keep-alive        | all      | clients 0  | a silent stream shows a comment of one line each 15 s
idempotency.replay       | all      | SPEC D2    | the same message twice is one answer, marked as replayed
idempotency.dialects     | all      | SPEC D2    | so it is in every other form of 0.3, re-encoded
idempotency.streams      | all      | SPEC D2    | so it is as a stream: a snapshot, then what happens
idempotency.races        | all      | SPEC D2    | so it is for many at once, at all places
idempotency.restart      | forms    | SPEC D2    | so it is across a restart
idempotency.conflict     | forms    | SPEC D2    | any change under the same id is a conflict, nothing is stored
idempotency.generations  | forms    | seed A     | so it is for the same message in the other generation, both ways
idempotency.same         | forms    | SPEC D2    | spelling, order and configuration change nothing
idempotency.refused      | all      | SPEC D2    | a refused message leaves its id free
idempotency.requested    | all      | SPEC D2    | an agent that wants to be asked replays only if it was
generations.parts        | forms    | SPEC W1    | a part of either generation is the same part in the other
generations.tasks        | forms    | SPEC W1    | a task of either generation reads right in the other
generations.turns        | forms    | SPEC W1    | a conversation may go on in the other generation
generations.cancel       | forms    | SPEC W1    | a task may be cancelled in the other generation
generations.streams      | forms    | SPEC W1    | subscribers of both generations see the same events
generations.lists        | seed A   | SPEC W1    | a list holds tasks of both generations
generations.states       | seed A   | SPEC W1    | every state has a name in both, and neither takes the other's
full.refused             | all      | SPEC 15    | a message for which there is no room is 429 and not stored
full.open                | all      | SPEC D6    | what was accepted is answered, read and cancelled as ever
limits.rate              | all      | SPEC 15    | a request too many is 429 with the time to come back, cancels aside
limits.quota             | all      | SPEC 15    | a task too many is refused and not stored
restart.recovers         | forms    | SPEC D4    | a run that was lost goes on, and its stream shows the task anew
store.fails              | all      | SPEC 7     | a store that fails is 503 at once, and nothing is lost
card.hybrid              | base     | SPEC K3    | without a version the card is for both generations
card.pure                | base     | SPEC K3    | with the header the card is of that version alone
card.places              | base     | SPEC K3    | every place of 0.3 has the pure 0.3 card, at /card too
card.root                | base     | SPEC I3    | the default agent's card stands at the root in each form
card.operator            | base     | SPEC N7    | legacy_card and versions choose what is shown
card.interfaces          | base     | SPEC K2    | every interface that is listed answers in its version
card.kept                | base     | SPEC K3    | each form has a tag of its own, and 304 for whoever has it
card.refused             | base     | SPEC I4    | a card is for reading only, and of agents that are here
metrics.versions         | all      | SPEC N6    | requests are counted as 0.3, refusals as rejected
logs.request             | all      | SPEC N6    | one line a request tells its place, and nothing of the caller
mutants.form             | all      | SPEC N1    | no request gets a 5xx, an unreadable reply or none
mutants.rows             | all      | SPEC D1    | rows are there for accepted messages and for nothing else
"""


def _named(*places: Place) -> frozenset[str]:
    return frozenset(place.name for place in places)


GROUPS = {
    "all": _named(*PLACES),
    "web": _named(*WEB),
    "seed A": _named(*SEED_A),
    "kinds": _named(*KINDS),
    "official": _named(*OFFICIAL),
    "forms": _named(*FORMS),
    "2 forms": _named(*FORMS_WITH_KINDS),
    "-": frozenset[str](),
}
"""Groups of places."""

_SHOWN_IN = {
    Dialect.KINDS: frozenset[str](),
    Dialect.PROTO: frozenset({"proto"}),
    Dialect.EITHER: frozenset[str](),
}
"""Where a difference must be shown: in ProtoJSON if it is of that alone, and otherwise somewhere."""

REQUIREMENTS = read_table(_TABLE, GROUPS) | {
    f"difference.{one.name}": Requirement(
        f"difference.{one.name}", _SHOWN_IN[one.dialect], "differences", f"{one.about}: {one.done}"
    )
    for one in DIFFERENCES
}
"""Every requirement by its id."""

covers = marker(REQUIREMENTS)
"""Marks a test as a proof of requirements."""
