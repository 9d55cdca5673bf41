"""What the server promises callers of A2A 1.0, and callers of any version: see `manifest`.

Sources: `SPEC` and `A2A` (the standard, by section) are contracts, `voice` is a row of the reports of other servers'
users. `test_manifest.py` keeps table and tests alike.
"""

from tests.interaction.manifest import marker, read_table

_TABLE = """
version.http-exact        | http    | SPEC N2    | HTTP+JSON serves exactly Major.Minor and refuses every other spelling
version.http-everywhere   | http    | SPEC N2    | a wrong version is refused first, on every path, known or not
version.repeated          | both    | SPEC N2    | repeated version headers that agree count as one, others are refused
version.supported-named   | both    | SPEC N2    | a refusal says what was asked for and what is served
version.unnamed           | both    | SPEC N4    | no version, or an empty one, is 0.3, refused by name where it is off
version.query             | both    | SPEC N2    | the query may name the version, and must agree with the header
version.jsonrpc-patch     | jsonrpc | SPEC N4    | JSON-RPC takes patch revisions of 1.0
version.jsonrpc-refused   | jsonrpc | SPEC N4    | JSON-RPC refuses other versions with -32009, under the request's id
version.reply-headers     | both    | SPEC N5    | every reply, error and stream says its version and what it varies by
version.operator          | http    | SPEC N7    | the operator names the versions that an agent lists and serves
method.unknown            | jsonrpc | SPEC N4    | a method that 1.0 does not have, one of 0.3 included, is -32601
headers.padding           | both    | RFC 9110   | white space around a header's value is no part of it
headers.repeated          | both    | SPEC N1    | many and repeated headers are no fault
headers.request-id        | both    | SPEC C5    | a well-formed request id is kept, any other replaced by one of ours
headers.huge              | both    | SPEC N1    | a large header is read or refused, and one without end is cut off
headers.not-believed      | both    | SPEC C5    | no header changes origin, tenant or principal
headers.no-echo           | both    | SPEC N2    | nothing that a caller sends comes back in a header
headers.extensions        | both    | SPEC K5    | extensions that nobody declared are ignored and not echoed
extensions.required       | both    | SPEC K5    | without a required extension what is offered is refused by name
extensions.echo           | both    | SPEC K5    | active extensions are echoed, a stream's too
extensions.handler        | both    | SPEC A2    | a handler is told which extensions are active
extensions.run-facts      | both    | SPEC K5    | tasks and updates tell how far the run is, to whoever asks
extensions.flow-graph     | both    | SPEC K5    | a task keeps its place in a graph through every state, untouched
extensions.configured     | http    | SPEC C6    | the configuration declares extensions, and the card shows them
media.http-json           | http    | SPEC W4    | application/json is read in any case and with any charset
media.http-a2a-json       | http    | SPEC W4    | a2a+json is answered exactly where Content-Type or Accept names it
media.jsonrpc-json        | jsonrpc | SPEC W4    | JSON-RPC reads and answers application/json
media.wrong-type          | both    | SPEC W4    | a body of another type, or of none, is 415 before it is parsed
media.no-body             | http    | SPEC W4    | a POST without a body needs no type
media.not-acceptable      | both    | SPEC W4    | a success that Accept forbids is 406, and nothing was done
media.errors-always       | http    | SPEC W4    | an error keeps its own status whatever Accept says
media.streams             | both    | SPEC W4    | stream operations answer event streams, their errors JSON
fields.spellings          | both    | SPEC W2    | names in camelCase or snake_case, enums by name or number are read
fields.both-spellings     | both    | SPEC W2    | both spellings of one field together are refused
fields.types              | both    | SPEC W2    | a field of a wrong type is refused by its path
fields.unknown            | both    | SPEC W2    | unknown fields are ignored
fields.same-name          | both    | SPEC W2    | a wrong field is named alike over both bindings
message.role              | both    | SPEC W2    | a caller speaks as ROLE_USER and as nobody else
message.members           | both    | SPEC W2    | missing or wrong members of a message are refused by name
parts.one-member          | both    | SPEC W2    | a part has exactly one of text, raw, url and data
parts.no-legacy           | both    | SPEC W2    | a part with kind or file is refused, beside valid members too
parts.base64              | both    | SPEC W2    | both alphabets are read, padded or not, and nothing else
parts.kinds               | both    | SPEC W1    | parts of every kind come back in order with all they carry
payload.untouched         | both    | SPEC W1    | metadata and data keep integers, order, unknown keys and U+0000
json.duplicates           | both    | SPEC W2    | a key given twice is refused by its path
json.numbers              | both    | SPEC W2    | a number out of double range is refused by its path
json.not-a-number         | both    | SPEC W2    | NaN and infinities are refused
json.utf-8                | both    | SPEC W2    | bad UTF-8 is refused
json.unicode              | both    | SPEC W1    | text with a lone surrogate is refused by its path
json.depth                | both    | SPEC W2    | nesting over 64 is refused, brackets in text are none
json.malformed            | both    | A2A 9.5    | a body that is no JSON is refused, whatever flaw came before
json.not-an-object        | both    | SPEC W2    | parameters that are no object are refused
envelope.malformed        | jsonrpc | A2A 9.5    | a body that is no JSON is -32700 with a null id
envelope.batch            | jsonrpc | A2A 9      | a batch is -32600 and runs nothing
envelope.object           | jsonrpc | JSON-RPC 4 | a body that is no object is -32600
envelope.jsonrpc          | jsonrpc | JSON-RPC 4 | jsonrpc must be "2.0"
envelope.id               | jsonrpc | JSON-RPC 4 | an id is text, a whole number or null and comes back as it was
envelope.notification     | jsonrpc | SPEC N4    | a notification is -32600 with a null id and runs nothing
envelope.method           | jsonrpc | JSON-RPC 4 | a method is a name; an unknown one is -32601
envelope.params           | jsonrpc | JSON-RPC 4 | params are an object or left out
envelope.unknown          | jsonrpc | SPEC W2    | unknown members of the envelope are ignored
envelope.duplicates       | jsonrpc | SPEC W2    | a member of the envelope given twice is refused
envelope.status           | jsonrpc | SPEC W7    | errors after the envelope was read are HTTP 200
envelope.slash            | jsonrpc | SPEC 4     | the endpoint answers with and without a final slash
body.too-large            | both    | SPEC W7    | a body over the limit is 413, by its length or by its chunks
body.limit                | both    | SPEC W7    | a body of exactly the limit is read
body.chunked              | both    | RFC 9112   | a chunked body is read however it is cut
body.too-slow             | both    | SPEC 7     | a body that is not whole in time is 408
body.cut                  | both    | SPEC D1    | half a body is never taken for a whole one
body.keep-alive           | both    | RFC 9112   | a connection serves on after a refusal, and in order
body.expect               | both    | RFC 9110   | Expect: 100-continue is answered
body.upgrade              | both    | RFC 9110   | an offer to upgrade is ignored and the body is read
body.large                | http    | SPEC A4    | a large body does not keep other callers waiting
path.unknown              | http    | SPEC I4    | a wrong path is 404 in the negotiated form
path.unknown-agent        | both    | SPEC W7    | an unknown agent is 404
path.method               | both    | SPEC I4    | a wrong method is 405 with Allow
path.head                 | http    | SPEC I1    | HEAD answers wherever GET does, without a body
path.task-id              | both    | A2A 3.1.3  | any text may be asked for as a task id
path.body-id              | http    | A2A 11     | a body that names another task than the path is refused
path.query                | both    | A2A 11.5   | unknown, many or nonsensical query parameters are no fault
path.raw                  | -       | SPEC N1    | what is no HTTP request is refused and closed
tenant.own                | both    | SPEC I1    | a tenant other than the agent's id is refused
capability.push           | both    | A2A 3.3.4  | push operations and inline configurations are not supported
push.create               | both    | A2A 3.1.7  | a configuration is kept under the caller's id or one of ours
push.get                  | both    | A2A 3.1.8  | one is read by its id; one that is not there is TaskNotFound
push.list                 | both    | A2A 3.1.9  | configurations are listed in the order of their ids, by the page
push.delete               | both    | A2A 3.1.10 | a deleted configuration is gone, and deleting it again is no error
push.inline               | both    | A2A 3.2.2  | a configuration that comes with a message is told of its task
push.secrets              | both    | SPEC 13    | tokens and credentials are for the receiver alone, encrypted at rest
push.cap                  | both    | SPEC 13    | a task has at most 16 configurations
push.tasks                | both    | SPEC P2    | whoever may not see a task may not see its configurations
push.urls                 | both    | SPEC O3    | a URL that leads anywhere but to the public internet is refused
push.headers              | both    | SPEC O3    | what cannot be sent as a header is refused
push.delivery             | both    | A2A 4.3.3  | every event is posted as a StreamResponse, in order
push.retry                | both    | SPEC 13    | what a receiver does not take is sent again under the same event id
capability.extended-card  | both    | SPEC K4    | an extended card that is not declared is not supported
capability.streaming      | both    | A2A 3.3.4  | an agent that does not stream refuses streaming operations
send.blocking             | both    | SPEC D7    | a send waits and returns the finished task with its results
send.states               | both    | A2A 4.1.3  | failures and rejections say why in the status
send.at-once              | both    | SPEC D7    | returnImmediately answers after the commit, and the run goes on
send.bare-message         | both    | SPEC A1    | a bare message has no task that is shown, listed or counted
send.no-answer            | both    | A2A 3.3.2  | an agent that gave no message is InvalidAgentResponse
send.input-modes          | both    | SPEC 17    | a part of a type that the agent does not take is refused
send.facts                | both    | SPEC A2    | a handler is told what the request says
send.burst                | both    | SPEC A4    | runs that finish together hold nobody up
run.acts-kept             | both    | SPEC D3    | all acts before the end are kept, none after it counts
turns.new-context         | both    | A2A 3.4.1  | a message without ids begins a context and a task
turns.own-context         | both    | SPEC D9    | a context id of the caller is kept
turns.unknown-task        | both    | SPEC D1    | a task id of the caller never makes a task
turns.task-only           | both    | A2A 3.4.3  | a message to a running task joins it without a context id
turns.mismatch            | both    | A2A 3.4.3  | a context that is not the task's is refused, nothing is stored
turns.finished            | both    | SPEC 17    | a finished task takes no message: UnsupportedOperation
turns.other-agent         | both    | SPEC P2    | a task of one agent does not exist at another
ask.waits                 | both    | SPEC A2    | an agent that asks has the caller's turn, its question as the status
ask.answered              | both    | SPEC A2    | the next message of the caller answers, over either binding
ask.again                 | both    | SPEC A3    | a task may ask more than once, each answer belongs to its question
ask.auth                  | both    | SPEC A2    | an agent may ask for an authorization in the same way
ask.streams               | both    | SPEC 17    | streams of a send end at INPUT_REQUIRED and stay at AUTH_REQUIRED
ask.subscriptions         | both    | SPEC 17    | subscriptions stay through both
ask.history               | both    | SPEC D9    | question and answer are in the history once, where they were said
ask.replayed              | both    | SPEC D2    | an answer that is sent again is the same answer
ask.races                 | both    | SPEC D9    | of answers at once one is taken and all are kept
ask.cancelled             | both    | SPEC D6    | a task that waits is cancelled at once and takes no answer
ask.listed                | both    | SPEC D8    | tasks that wait are listed and counted in their states
get.unknown               | both    | A2A 3.1.3  | a task that does not exist is TaskNotFound
get.artifacts             | both    | A2A 3.1.3  | a task holds its artifacts, put together
history.lengths           | both    | SPEC D8    | absent is the server's number, 0 none, n the newest n, bounded
history.negative          | both    | A2A 3.2.4  | a history length that is none is refused
history.order             | both    | SPEC D9    | history holds each message of both sides once, in order
list.members              | both    | A2A 3.1.4  | all four members are always there
list.outline              | both    | SPEC D8    | listed tasks have no history and no artifacts unless asked for
list.artifacts            | both    | A2A 3.1.4  | artifacts are absent unless asked for, then there even if empty
list.history              | both    | SPEC D8    | history in lists is as long as asked for, none by itself
list.order                | both    | SPEC D8    | newest status change first
list.status               | both    | A2A 3.1.4  | the status filter finds exactly the tasks in that state
list.total                | both    | SPEC D8    | totalSize counts what matches, pages aside
list.filters-checked      | both    | voice 1b   | a wrong parameter is refused, never dropped
list.after                | both    | A2A 3.1.4  | the time filter is inclusive and reads any offset
list.query                | http    | A2A 11.5   | the last of a repeated parameter counts, unknown ones do not
list.bounded              | both    | SPEC D8    | a page is at most 1 MiB and holds at least one task
pages.sizes               | both    | SPEC D8    | 1 to 100 tasks a page, 50 by itself, each task once
pages.tokens              | both    | SPEC D8    | a token is good for its own listing and refused elsewhere
pages.cost                | http    | SPEC D8    | a page costs what it holds, not what it might have held
pages.stale               | both    | SPEC D8    | a token stays good while tasks come
cancel.running            | both    | SPEC D6    | a cancelled task is CANCELED, stored and answered
cancel.metadata           | both    | A2A 3.1.5  | a cancel may carry metadata
cancel.stops              | both    | SPEC D6    | a cancel stops the handler
cancel.finished           | both    | SPEC D6    | a finished or cancelled task cannot be cancelled
cancel.race               | both    | SPEC D3    | the first terminal state wins, once
cancel.ends-streams       | both    | SPEC D6    | a cancel ends the task's streams and waits
subscribe.snapshot        | both    | A2A 3.1.6  | a subscription begins with the task as it stands
subscribe.methods         | http    | SPEC I1    | HTTP subscribes by GET and by POST
subscribe.finished        | both    | SPEC 17    | a finished task is UnsupportedOperation as plain JSON
subscribe.follows         | both    | SPEC D5    | a caller that leaves does not stop the run
subscribe.same            | both    | A2A 3.5.2  | all subscribers see the same events
subscribe.resume          | both    | SPEC W6    | Last-Event-ID goes on after that event, or from a snapshot
subscribe.fields          | both    | SPEC W2    | unknown fields of a subscription are ignored, wrong ones named
stream.shape              | both    | A2A 3.1.2  | a stream begins with the task and ends after its last state
stream.same-task          | both    | A2A 3.1.2  | a stream put together is the task
stream.ids                | both    | SPEC W6    | an event's id is its sequence in the task
stream.order              | both    | A2A 3.5.2  | events come in their order, however many
stream.chunks             | both    | SPEC A1    | chunks append to one artifact and the last one says so
stream.large              | both    | SPEC W6    | an event of 1 MiB comes whole
stream.literal            | both    | SPEC W6    | text travels as UTF-8
stream.line-breaks        | both    | SPEC W6    | U+2028, U+2029 and U+0085 are escaped
stream.frames             | both    | SPEC W6    | a frame is an id and one line of data
stream.bare-message       | both    | A2A 3.1.2  | the stream of a bare message is that message
stream.error              | both    | A2A 9.4    | an error in a stream keeps its code and ends it
stream.refused            | both    | A2A 3.1.2  | a refused stream is a plain error
stream.at-once            | both    | A2A 3.2.2  | returnImmediately means nothing to a stream
stream.prompt             | both    | SPEC W6    | events come as they happen
stream.keep-alive         | both    | SPEC W6    | a silent stream shows a comment each 15 s
idempotency.replay        | both    | SPEC D2    | the same message twice is one task, marked as replayed
idempotency.bindings      | both    | SPEC D2    | so it is over the other binding
idempotency.streams       | both    | SPEC D2    | so it is as a stream: a snapshot, then what happens
idempotency.bare-message  | both    | SPEC D2    | so it is for bare messages
idempotency.races         | both    | SPEC D2    | so it is for many at once
idempotency.restart       | http    | SPEC D2    | so it is across a restart
idempotency.follow-up     | both    | SPEC D2    | so it is for further messages of a task
idempotency.conflict      | both    | SPEC D2    | any change under the same id is a conflict, nothing is stored
idempotency.same          | both    | SPEC D2    | spelling, order, white space and configuration change nothing
idempotency.scope         | both    | SPEC D2    | an id at another agent is another message
idempotency.refused       | both    | SPEC D2    | a refused message leaves its id free
purged.not-found          | both    | SPEC D10   | a purged task is not found, whatever is asked of it
purged.listing            | both    | SPEC D10   | a purged task is in no list and no total, and tokens stay good
purged.message            | both    | SPEC D2    | a message that is sent again after its task was purged is a new one
purged.bare-message       | both    | SPEC D10   | so it is for a message that was answered with a bare message
purged.stream             | both    | SPEC C2    | whoever follows a task that is purged is told so within 5 s
card.fields               | http    | A2A 4.4.1  | every required member has content
card.capabilities         | http    | SPEC K2    | capabilities are exactly what is served
card.pure                 | http    | SPEC K3    | the card is in the form of 1.0
card.interfaces           | http    | SPEC K2    | every interface that is listed answers
card.public-url           | http    | SPEC C5    | cards name the configured address and base path
card.caching              | http    | SPEC K3    | Cache-Control, ETag and Last-Modified
card.conditional          | http    | SPEC K3    | 304 for a form that the asker has
card.forms                | http    | SPEC W4    | the card is in the media type and version asked for
card.head                 | http    | SPEC I1    | HEAD of a card has the headers of GET and no body
card.refused              | http    | SPEC I4    | wrong methods and unknown agents, in the negotiated form
card.root                 | http    | SPEC I3    | the only or default agent's card stands at the root, no other
agents.conformance        | http    | SPEC A6    | conformance agents are served where they are asked for
agents.conformance-table  | http    | SPEC 17    | they alone can answer with the error statuses of 1.0.0
card.signed               | http    | SPEC K1    | every form is signed, by keys that stand beside it
card.keys                 | http    | SPEC K1    | the keys are public, for reading only, and rotated beside the server
card.stable               | http    | SPEC K3    | a card does not change while the server works
cors.preflight            | http    | SPEC 15    | a preflight of a listed origin is answered on every path
cors.open                 | both    | SPEC 15    | a page of a listed origin may read results, errors, streams, cards
cors.closed               | both    | SPEC 15    | a page of another origin is told nothing, caches are
cors.any                  | http    | SPEC 15    | a star opens the server to every page
cors.off                  | http    | SPEC 15    | without origins nothing is opened
openapi.whole             | -       | SPEC 15    | /openapi.json describes every route for the agents that are served
openapi.true              | http    | SPEC 15    | requests, results, errors, events and cards are as they are described
openapi.kept              | http    | SPEC 15    | the description is kept as cards are, in the version asked for
probe.health              | http    | SPEC 15    | /healthz and /readyz answer anybody
probe.unready             | -       | SPEC 15    | without a store the server is alive, not ready, with reasons
metrics.versions          | both    | SPEC N6    | requests are counted by version, refusals as rejected
metrics.bounded           | both    | SPEC N6    | no label comes from a caller
logs.request              | both    | SPEC N6    | one line a request with the id of its reply
logs.refusals             | both    | SPEC N6    | a refusal is logged with its reason
logs.no-text              | both    | SPEC 15    | no message text in the log
logs.json                 | -       | SPEC 15    | every line is JSON
crash.failed              | both    | SPEC 7     | an agent that raises has FAILED; nothing of it is on the wire
crash.logged              | both    | SPEC 7     | its exception is in the log under its task
store.fails               | both    | SPEC 7     | a failing store is 503 at once, and nothing is lost
full.refused              | both    | SPEC 15    | a message for which there is no room is 429 and not stored
full.known                | both    | SPEC D2    | what was accepted is answered though the queue is full
full.open                 | both    | SPEC D6    | cancels and all reading are admitted though the queue is full
full.own-task             | both    | SPEC D9    | a message to a task of the caller's needs no room in the queue
full.others               | both    | SPEC A4    | a full agent leaves the others as they were
full.told                 | both    | SPEC 15    | metrics and log show what waits and what was refused
limits.rate               | both    | SPEC 15    | a request too many is 429 with the time to come back, nothing stored
limits.cancel             | both    | SPEC D6    | a cancel is admitted whatever limit its caller has run into
limits.open               | both    | SPEC I5    | health, metrics and cards have no rate
limits.quota              | both    | SPEC 15    | a task too many is refused and not stored
limits.known              | both    | SPEC D2    | what was accepted is answered though a quota is full
limits.parked             | both    | SPEC D9    | a task that waits counts, and its answer is never refused
limits.restart            | both    | SPEC 15    | a quota counts what an earlier server left
restart.recovers          | http    | SPEC D4    | after a crash every run is taken up or failed with the reason
restart.subscribe         | http    | SPEC D4    | a run that was taken up can be followed
mutants.form              | both    | SPEC N1    | no request gets a 5xx, an unreadable reply or none
mutants.raw               | both    | SPEC N1    | no bytes hang a connection longer than a body may take
mutants.rows              | both    | SPEC D1    | rows are there for accepted messages and for nothing else
voice.1                   | both    | voice 1    | an unsupported version is refused, not served as a known one
voice.6                   | both    | voice 6    | a missing version is explained: what it means and what to send
voice.8                   | both    | voice 8    | a stream is text/event-stream
voice.10                  | both    | voice 10   | malformed JSON is a parse error, not an internal one
voice.12                  | http    | voice 12   | HTTP errors are google.rpc.Status with ErrorInfo
voice.13                  | both    | voice 13   | a typed error in a stream keeps its code
voice.14                  | both    | voice 14   | a stream that fails says so in one kept form
voice.15                  | both    | voice 15   | an error before a stream cannot be taken for an empty stream
voice.16                  | both    | voice 16   | text in streams is literal UTF-8
voice.17                  | both    | voice 17   | Unicode line ends do not break frames
voice.18                  | both    | voice 18   | large events arrive whole
voice.19                  | both    | voice 19   | an empty list has all its members
voice.21                  | both    | voice 21   | a message to a finished task is UnsupportedOperation
voice.22                  | both    | voice 22   | a subscription to a finished task is refused directly
voice.23                  | both    | voice 23   | a mismatched context is refused before anything is stored
voice.24                  | both    | voice 24   | an unknown task id is TaskNotFound
voice.28                  | both    | voice 28   | historyLength 0 is none, absent is the server's number
voice.30                  | both    | voice 30   | historyLength is bounded
voice.34                  | both    | voice 34   | returnImmediately returns at once, also under load
voice.36                  | both    | voice 36   | a dropped stream leaves the run alone and can be taken up
voice.37                  | http    | voice 37   | a subscription after a restart begins with a snapshot
voice.38                  | both    | voice 38   | nothing is lost between a drop and a new subscription
voice.40                  | both    | voice 40   | a burst that finishes together blocks nobody
voice.42                  | both    | voice 42   | a store that fails makes no send hang
voice.43                  | both    | voice 43   | acts of parallel work are not lost
voice.48                  | both    | voice 48   | one terminal state wins, once
voice.49                  | both    | voice 49   | a cancel is stored as CANCELED or refused
voice.50                  | both    | voice 50   | a cancel stops the agent
voice.51                  | both    | voice 51   | an idle stream shows life within 15 s
voice.52                  | both    | voice 52   | the comment that shows it is valid in an event stream
voice.54                  | http    | voice 54   | no task is stuck after a restart
voice.69                  | http    | voice 69   | cards show one configured origin
voice.70                  | http    | voice 70   | HEAD of a card is 200
voice.72                  | both    | voice 72   | a body without a length has the same limit
voice.77                  | http    | voice 77   | many agents in one process, each at its own card
"""

REQUIREMENTS = read_table(_TABLE, {"both": frozenset({"http", "jsonrpc"}), "-": frozenset()})
"""Every requirement by its id."""

covers = marker(REQUIREMENTS)
"""Marks a test as a proof of requirements."""
