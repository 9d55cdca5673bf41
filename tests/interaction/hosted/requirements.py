"""What the hosted profile promises its callers: every clause of seed B up to its chapter on outbound agents.

The ids and the words are ours. Sources: `B`, seed B by its chapter (`intro`, `discover`, `table`, `identity`, `input`,
`output`, `windows`, `approval`), with `moving` for the part of the following chapter that is about retired paths, and
`H`, the settled contract; from there also `P`, who may call, `C`, the configuration, and `O`, operations: what whoever
runs the profile relies on. What is proved in another folder is in `ELSEWHERE`.
"""

from tests.interaction.manifest import marker, read_table

_TABLE = """
profile.off              | - | B intro     | the profile is off by itself, and its paths are 404 then
profile.feature          | - | B intro     | a tenant without the feature agent_api has no hosted agents
profile.workspace        | - | B intro     | an agent that has no workspace is not hosted
profile.store            | - | B intro     | checking a configuration says what the profile would run on
profile.schema           | - | B intro     | a store of an older schema is refused with the command that upgrades it
sdk.python               | - | B intro     | the official Python SDKs work with a hosted agent
sdk.javascript           | - | H 9         | so does the official JavaScript SDK
card.place               | - | B discover  | each hosted agent has a card at its base, for callers with a right to read
card.standard            | - | B discover  | the card is a standard one and lists JSON-RPC 1.0 at the endpoint alone
card.bearer              | - | B discover  | the card says that a bearer is wanted and not who issues one
card.signed              | - | B discover  | the card is signed, by keys that stand at the root
card.form                | - | H 1         | the card has the form of 1.0 whether or not a version is named
card.kept                | - | H 1         | a card is for its caller to keep, and for nobody else
rpc.endpoint             | - | B discover  | calls are JSON, posted to one endpoint beside the card
auth.missing             | - | B discover  | without a token every path of the profile is 401 with a challenge
auth.invalid             | - | B discover  | a token that is not good is 401 and says so
scope.answer             | - | B discover  | ai:answer is needed always
scope.read               | - | B discover  | a2a:read lets its holder see the card, get, list and subscribe
scope.delegate           | - | B discover  | a2a:delegate lets its holder send, stream and cancel
scope.wildcards          | - | B discover  | wildcards cover their families, none of them admin rights
scope.look-alikes        | - | H 1         | what only looks like a scope covers nothing
scope.not-enough         | - | B discover  | scopes give nobody the tasks of another principal
workspace.needed         | - | B discover  | card and sends need the grant on the agent's workspace too
strangers.tasks          | - | H 1         | a task of somebody else is answered exactly as one that is not there
strangers.agents         | - | H 1         | an agent of another tenant is answered exactly as one that is not there
strangers.contexts       | - | H 1         | a context of somebody else holds nothing, like one that is not there
strangers.approvals      | - | H 7         | an approval of somebody else is answered exactly as one that is not there
strangers.timing         | - | H 1         | and it takes no other time
strangers.tenant         | - | B approval  | no header, query, path or member says which tenant is meant
client.example           | - | B discover  | the example client calls an agent and gets its result
client.recovers          | - | B identity  | the example client recovers a submission whose reply was lost
send.waits               | - | B table     | a send returns when its run is finished or interrupted
send.immediately         | - | B table     | returnImmediately returns the task as it stands
send.durable             | - | B table     | an accepted run is finished by a later server if this one dies
stream.first             | - | B table     | a stream begins with the task as it stands
stream.order             | - | B table     | updates follow in the order in which they were committed
stream.result            | - | B table     | the result comes whole, right before the completion
stream.pieces            | - | B output    | no piece of an unfinished result is ever shown
stream.no-resume         | - | H 3         | Last-Event-ID means nothing: whoever comes back gets the task as it stands
get.state                | - | B table     | a task is read as it was committed
get.history              | - | B table     | history comes as long as it is asked for
get.verified             | - | B table     | a finished task comes with its verified result
list.scoped              | - | B table     | lists hold the tasks of one principal with one agent
list.filters             | - | B table     | lists are filtered by context, status and time
list.order               | - | B table     | lists begin with the newest status change
list.pages               | - | B table     | pages hold up to 100 tasks and are joined by tokens
list.artifacts           | - | B table     | results are listed only if they are asked for
cancel.persists          | - | B table     | a cancel is kept and stops the run
cancel.finished          | - | B table     | a finished task is TaskNotCancelable and can still be read
subscribe.snapshot       | - | B table     | a subscription begins with the task as it stands, then tells what happens
subscribe.finished       | - | B table     | a subscription to a finished task is UnsupportedOperation
identity.replay          | - | B identity  | the same message again is the same run, by every kind of send
identity.conflict        | - | B identity  | other content under the same id is refused, nothing is stored
identity.scope           | - | B identity  | a message id is one principal's with one agent
identity.disconnect      | - | B identity  | a caller that hangs up starts no second run and ends none
identity.request-id      | - | B identity  | the id of a JSON-RPC request has nothing to do with the message's
input.text               | - | B input     | a message is text of the user under an id
input.characters         | - | B input     | 32,000 characters are taken and one more is not, whatever their width
input.parts              | - | B input     | 16 parts are taken and 17 are not, nor empty ones
input.body               | - | B input     | a body of 64 KiB is read and one byte more is not, chunked or not
input.files              | - | B output    | files, addresses and data are refused by name
input.metadata           | - | B approval  | metadata of request, message and part is refused by name
input.references         | - | B approval  | references and extensions of a message are refused by name
input.extensions         | - | H 2         | a header that asks for extensions is ignored
input.context            | - | B approval  | contexts are given out by the server alone
input.continuation       | - | B approval  | a message to a task is UnsupportedOperation and is not stored
input.push               | - | H 2         | a push configuration in a send is PushNotificationNotSupported
output.result            | - | B output    | a result is one Markdown text with a stable id, checksum and byte count
output.gathered          | - | H 4         | whatever pieces of text an agent gives are that one result
output.entered-again     | - | H 4         | what steps gave is in the result of a run that was entered again
output.other             | - | H 4         | an agent that gives anything but text has failed
output.large             | - | H 4         | so has one that gives more than a reply can hold
output.none              | - | H 4         | so has one that gives nothing
json.tasks               | - | B output    | no task is answered with more than 1 MiB; the oldest messages are left out
json.pages               | - | B output    | no page has more than 1 MiB; it holds fewer tasks then, but one at least
window.waits             | - | B windows   | a wait ends with its window and returns the task as it stands
window.streams           | - | B windows   | a stream ends with its window, without an error
window.goes-on           | - | B windows   | the run goes on, and can be followed again
deadline.saved           | - | B windows   | a run has the deadline that it was accepted with, whatever its agent says
deadline.flat            | - | B windows   | waiting does not move it
observers.principal      | - | B windows   | a principal has 4 waits and streams at once
observers.tenant         | - | B windows   | a tenant has 16
observers.everybody      | - | B windows   | everybody together has 256
observers.stored         | - | H 5         | one too many is 429 before anything is stored
observers.immediately    | - | H 5         | a send that does not wait needs no place
observers.cancel         | - | B windows   | cancels, reads and lists need none either
observers.freed          | - | H 5         | whoever hangs up frees the place within a second
observers.refused        | - | H 5         | a stream that is refused holds no place
evidence.workspace       | - | B windows   | without the workspace what its runs hold is not there any more
evidence.source          | - | B windows   | nor is it without a source that the run has used
evidence.lists           | - | H 6         | lists and their totals leave it out
evidence.streams         | - | H 6         | live streams of it end within 5 seconds
evidence.cancel          | - | B windows   | it can be cancelled, and only its state is told
evidence.sends           | - | H 6         | a message that is sent again tells only the state
evidence.returned        | - | H 6         | with the grant it is there again
damage.read              | - | B windows   | a damaged result is an error for every way to read it
damage.missing           | - | B windows   | so is one that is gone
damage.logged            | - | H 4         | the operator finds it in the log under its task
approval.shown           | - | B approval  | a run that waits for an approval is INPUT_REQUIRED
approval.api             | - | B approval  | the approval API shows what would be done and takes the decision
approval.message         | - | B approval  | no message approves anything, whatever it says
approval.resume          | - | H 7         | nor does resuming
approval.once            | - | H 7         | a decision is made once
approval.digest          | - | H 7         | a decision is about what was shown and nothing else
approval.expires         | - | H 7         | an approval ends with its run
approval.scope           | - | H 7         | deciding needs a2a:approve
approval.fields          | - | H 7         | wrong members of a decision are refused by name
approval.evidence        | - | H 6         | who may not see a run does not see its approvals
approval.unserved        | - | H 7         | approvals of agents that are not served any more are not there
approval.open            | - | H 7         | the approval API serves open agents too, whether or not the profile is on
approval.pages           | - | H 7         | approvals come in pages
approval.command         | - | H 7         | the command shows what would be done and decides exactly that
resume.input             | - | B approval  | a run that asks is INPUT_REQUIRED and goes on with the text of a resumption
resume.authorization     | - | H 7         | so does one that asks for an authorization
resume.once              | - | H 7         | the same text under one id is given once
resume.refused           | - | H 7         | a run that does not wait is not resumed
resume.fields            | - | H 7         | wrong members of a resumption are refused by name
unsupported.push         | - | B approval  | push operations are PushNotificationNotSupported
unsupported.card         | - | B approval  | the extended card is UnsupportedOperation
unsupported.methods      | - | H 1         | other methods and paths are not there
version.missing          | - | B approval  | without a version a call is refused, because that would mean 0.3
version.patches          | - | B approval  | patch revisions of 1.0 are taken
version.others           | - | B approval  | every other version is refused and none is downgraded
retired.paths            | - | B moving    | retired paths are 410 for everybody and name what took their place
retired.others           | - | H 8         | what only looks like one is not there
tenant.beside            | - | P 4         | tenants and principals are made and removed beside a running server
tenant.removed           | - | P 4         | a tenant that is removed is gone with all its principals within 5 seconds
tenant.feature           | - | P 4         | a feature that is taken closes the hosted surface within 5 seconds
tenant.nowhere           | - | P 5         | a server does not start with an agent whose tenant is nowhere
token.once               | - | P 1         | a token is printed when it is made and never again
token.hidden             | - | P 1         | no store, log or answer holds a token
token.expires            | - | P 1         | a token that expires ends what it has open
token.revoked            | - | P 4         | a token that is revoked ends what it has open within 5 seconds
token.waits              | - | P 4         | a wait over JSON-RPC ends with its token too
token.signed             | - | P 1         | signed tokens of an issuer let their principals in
token.scopes             | - | P 1         | a scope that is none is refused where a token is given it
token.guessed            | - | P 4         | failed authentication is bounded by address
token.proxies            | - | C 5         | behind a trusted proxy, and nowhere else, callers have their own addresses
admin.scope              | - | P 5         | administration needs admin:*, which no other scope covers
admin.alone              | - | P 5         | and that scope covers nothing else
admin.at-once            | - | P 5         | what is changed over HTTP is so before the answer
admin.named              | - | P 5         | what is done is noted as done by whoever asked
audit.acts               | - | O 15        | sends and cancels are in the audit as soon as they are answered
audit.denials            | - | P 4         | so is denied access, within a few seconds
audit.silent             | - | O 15        | no text and no token is in it
audit.kept               | - | O 15        | nothing of it can be changed, or deleted before its time is over
audit.retention          | - | O 15        | what is older than its retention goes
limits.rate              | - | O 15        | a rate holds for hosted calls, cards and approvals
limits.quota             | - | O 15        | a quota of a tenant holds within seconds, for it alone
limits.configured        | - | O 15        | what the configuration says of a tenant goes over the store
limits.ended             | - | O 15        | tasks that a command ends beside the server count no more
"""

REQUIREMENTS = read_table(_TABLE, {"-": frozenset()})
"""Every requirement by its id."""

covers = marker(REQUIREMENTS)
"""Marks a test as a proof of requirements."""

_REVOKING = "tests/durability/test_revoking.py"
_LIMITS = "tests/durability/test_tenant_limits.py"
_AUDIT = "tests/security/test_audit.py"
_ADMIN = "tests/security/test_admin.py"
_FAILURES = "tests/security/test_failed_authentication.py"

ELSEWHERE = {
    "profile.schema": (
        "tests/migration/test_served.py",
        "test_a_server_refuses_an_older_store_and_says_what_to_run",
    ),
    "sdk.python": ("tests/interop/test_hosted.py", "test_a_blocking_send_gives_one_verified_result"),
    "sdk.javascript": ("tests/interop/test_hosted.py", "test_a_blocking_send_gives_one_verified_result"),
    "client.example": ("tests/interop/test_example_client.py", "test_the_example_prints_what_the_agent_gave"),
    "client.recovers": (
        "tests/interop/test_example_client.py",
        "test_it_recovers_a_submission_whose_reply_was_lost",
    ),
    "tenant.beside": (
        _REVOKING,
        "test_commands_beside_a_running_server_let_somebody_in_and_out_again",
    ),
    "tenant.removed": (_REVOKING, "test_a_tenant_that_is_removed_is_gone_with_all_its_principals"),
    "tenant.feature": (
        _REVOKING,
        "test_a_feature_that_is_taken_closes_the_hosted_surface_and_no_other",
    ),
    "token.once": ("tests/unit/cli/test_tenants.py", "test_a_token_is_alone_on_standard_output"),
    "token.hidden": ("tests/security/test_openness.py", "test_no_secret_is_written_or_answered"),
    "token.expires": (_REVOKING, "test_a_token_that_expires_ends_what_it_had_open"),
    "token.revoked": (_REVOKING, "test_a_credential_that_is_taken_ends_everything_it_had_open"),
    "token.waits": (_REVOKING, "test_a_blocking_wait_over_json_rpc_ends_when_its_token_is_revoked"),
    "token.signed": ("tests/security/test_jwt.py", "test_a_good_token_lets_its_principal_in"),
    "token.scopes": ("tests/unit/cli/test_tenants.py", "test_a_token_that_is_refused_is_not_made"),
    "token.guessed": (_FAILURES, "test_an_address_with_too_many_failures_has_to_wait"),
    "token.proxies": (
        _FAILURES,
        "test_behind_a_trusted_proxy_the_callers_have_addresses_of_their_own",
    ),
    "admin.scope": (_ADMIN, "test_no_other_scope_covers_that_of_administrators"),
    "admin.alone": (_ADMIN, "test_the_scope_of_administrators_covers_nothing_else"),
    "admin.at-once": (_ADMIN, "test_what_is_changed_is_so_before_the_answer_on_live_streams_too"),
    "admin.named": (
        "tests/unit/admin/test_surface.py",
        "test_what_is_done_is_noted_as_done_by_whoever_asked",
    ),
    "audit.acts": (_AUDIT, "test_sends_and_cancels_are_there_as_soon_as_they_are_answered"),
    "audit.denials": (_AUDIT, "test_denied_access_is_there_within_a_few_seconds"),
    "audit.silent": (_AUDIT, "test_no_text_and_no_secret_is_in_the_audit"),
    "audit.kept": (
        "tests/contract/test_auditing.py",
        "test_nothing_that_is_still_to_be_kept_can_be_deleted_or_changed",
    ),
    "audit.retention": (
        _AUDIT,
        "test_what_is_older_than_its_retention_goes_and_what_came_since_stays",
    ),
    "limits.rate": (
        _LIMITS,
        "test_a_rate_holds_for_hosted_calls_cards_and_approvals_and_not_for_cancels_or_administration",
    ),
    "limits.quota": (
        _LIMITS,
        "test_a_quota_that_is_set_holds_within_seconds_for_its_tenant_alone_on_both_surfaces",
    ),
    "limits.configured": (
        _LIMITS,
        "test_what_the_configuration_says_of_a_tenant_goes_over_what_the_store_keeps",
    ),
    "limits.ended": (
        _LIMITS,
        "test_tasks_that_a_command_ends_beside_the_server_are_counted_no_more",
    ),
}
"""Requirement → file and test that prove it in another folder."""
