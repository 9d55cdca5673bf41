"""What the generated pages say and the code does not: the meaning of each configuration key, what to do about an error.

A key or an error that is missing here, or that is here and not in the code, fails `test_generated.py`.
"""

from collections.abc import Mapping

from dragoman.model.allowance import LIMITS

KEYS: Mapping[str, str] = {
    "server.listen": (
        "Address and port to listen at; on loopback only, unless callers have to show who they are. "
        "Port 0 takes a free one."
    ),
    "server.public_url": "The origin that cards say, without a path. If empty, the one that is listened at.",
    "server.base_path": "A path such as `/a2a` that everything stands below, also in cards.",
    "server.cors_origins": "Origins whose pages may call from a browser. `*` alone means every page.",
    "server.hosts": (
        "Names that a server without tenants answers to, beside `localhost`, `127.0.0.1` and `[::1]` and the host of "
        "`public_url`. Requests to others are refused: a web page may have sent them."
    ),
    "server.trusted_proxies": (
        "Addresses and networks of proxies that are believed where a request comes from (`X-Forwarded-For`, "
        "`Forwarded`)."
    ),
    "server.notice": (
        "How long requests are still taken when the server is to stop, so that proxies notice: `/readyz` says 503, and "
        "each reply closes its connection."
    ),
    "server.drain": (
        "How long handlers may take to end when the server stops, and blocking sends wait for runs elsewhere."
    ),
    "server.heartbeat": (
        "Silence on a stream after which a comment is sent. Proxies must not cut off what is silent for so long."
    ),
    "store.url": (
        "`sqlite:///PATH`, the file that tasks are kept in, or `postgresql://USER@HOST/DATABASE`. If empty, "
        "`dragoman.db` in the data folder."
    ),
    "store.pooling": "What a pooler before the database gives its clients: `session`, right without one too, or"
    " `transaction`: see [behind PgBouncer](../how-to/postgresql.md#behind-pgbouncer).",
    "store.password_env": "The variable that the database's password is in.",
    "store.password_file": "The file that the database's password is in.",
    "engine.kind": "What has runs executed: `embedded`, or `temporal`, a Temporal server; either here or at "
    "workers.",
    "engine.runs": "`here`: a server executes the runs of what it accepts. `workers`: it leaves them to "
    "[`dragoman worker`](cli.md#dragoman-worker), which shares its PostgreSQL "
    "store. The same as `dragoman serve --no-runs`.",
    "worker.listen": "Where a worker answers to `/healthz`, `/readyz` and `/metrics`; nothing else is served there.",
    "engine.temporal.address": "`HOST:PORT` of the Temporal frontend.",
    "engine.temporal.namespace": "The namespace, which must be there.",
    "engine.temporal.task_queue": "The queue of workflows; activities of an agent are in `TASK_QUEUE.AGENT`. Not to be "
    "shared with another fleet.",
    "engine.temporal.tls": "Whether the connection is encrypted; it is anyway with any of the files below, or a key.",
    "engine.temporal.tls_ca_file": "PEM of the authority that signed Temporal's certificate; the system's if empty.",
    "engine.temporal.tls_cert_file": "PEM of the certificate that this process shows (mTLS).",
    "engine.temporal.tls_key_file": "PEM of its key.",
    "engine.temporal.tls_server_name": "The name that Temporal's certificate is for, if it is not that in `address`.",
    "engine.temporal.api_key_env": "The variable that an API key of Temporal is in.",
    "engine.lease": "How long a run belongs to its server without being renewed. It is renewed every 3 seconds, or "
    "three times a lease if that is sooner. One whose state does not change for so long is checked to be executed.",
    "engine.sweep": "How often to look for runs that are past their deadline or were left lying, and for old tasks.",
    "engine.max_runs": "How many runs go on at a time in all agents together; further ones wait, agents taking turns.",
    "limits.body": "Bytes of a request body; at least 1024.",
    "limits.body_time": "How long a body may take to arrive.",
    "limits.failed_auth": (
        "How many credentials that are not good one address may send at once; then one more every 5 seconds."
    ),
    "limits.rate.tenant": (
        "Requests a minute of all principals of a tenant together: so many at once, and from then on one whenever it "
        "is due. Cancels always pass."
    ),
    "limits.rate.principal": "The same of each principal.",
    "limits.running.tenant": "Tasks of a tenant that are not finished; those that wait for their caller count.",
    "limits.running.principal": "The same of each principal.",
    "limits.stored.tenant": "Tasks of a tenant that are kept, finished ones too.",
    "limits.stored.principal": "The same of each principal.",
    "tenants.T.limits.rate.tenant": "Requests a minute of all its principals together.",
    "tenants.T.limits.rate.principal": "The same of each of them.",
    "tenants.T.limits.running.tenant": "Its tasks that are not finished.",
    "tenants.T.limits.running.principal": "The same of each of its principals.",
    "tenants.T.limits.stored.tenant": "Its tasks that are kept.",
    "tenants.T.limits.stored.principal": "The same of each of its principals.",
    "auth.oidc.issuer": "The issuer's URL, exactly as its tokens say it (`iss`). Needed.",
    "auth.oidc.audience": "What the issuer's tokens call this server (`aud`). Needed.",
    "auth.oidc.jwks_url": "Where its keys are. If empty, its discovery document says it; that must be its own origin.",
    "auth.oidc.tenant_claim": "The claim that names the tenant: one of `[tenants]`.",
    "auth.oidc.scope_claim": "The claim that holds the scopes: a text with spaces between them, or an array.",
    "auth.oidc.principal_claim": "The claim that names the principal.",
    "auth.oidc.algorithms": (
        "How a token may be signed. Besides these there are `ES384`, `ES512`, `RS384`, `RS512`, `PS256`, `PS384` and "
        "`PS512`. `EdDSA` is Ed25519, under either of its names."
    ),
    "auth.oidc.schemes": 'How the issuer may be reached. `"http"` beside `"https"` allows it from other machines too.',
    "auth.oidc.clock_skew": "How far the issuer's clock and this one may differ; 10 minutes at most.",
    "auth.oidc.jwks_max_age": "How old its keys may be. A key that it takes back counts no more after this time.",
    "auth.oidc.jwks_refetch": "How long to wait at least between two fetches of the keys, whatever asks for them.",
    "auth.oidc.jwks_stale": "How long older keys still count if the issuer cannot be reached.",
    "signing.alg": "What new keys are for: `ES256`, or `EdDSA` (Ed25519).",
    "signing.key_file": (
        "The file with the keys, which many servers may share. It must be there. If empty, `signing-keys.json` in the "
        "data folder, which is made at the first start."
    ),
    "signing.overlap": (
        "How long a key signs beside the one that takes its place, unless a command says it; 10m or more."
    ),
    "vault.key_env": "The environment variable that holds the key: 32 bytes in base64. Several, with spaces between: "
    "the first one seals, all open. If neither this nor `key_file` is set, `vault.key` in the data folder is made.",
    "vault.key_file": "The file that holds the key, in the same form.",
    "outbound.allow": "Special ranges of addresses that are open all the same, such as `10.0.0.0/8`.",
    "outbound.ports": 'Ports that requests may go to, or `"any"`.',
    "outbound.schemes": '`"https"`, and `"http"` if that is allowed.',
    "outbound.retry": "How long a push notification that was not taken waits at most before the second try; each "
    "further one waits twice as long.",
    "hosted.enabled": "Whether hosted agents are served: those of tenants that have a workspace.",
    "hosted.deadline": "How long a hosted run may take before it is ended as FAILED, waiting included.",
    "hosted.observers.global": "Waits and streams of hosted agents at a time, of everybody together.",
    "hosted.observers.tenant": "The same, of one tenant.",
    "hosted.observers.principal": "The same, of one principal.",
    "hosted.observers.window": "How long one of them lasts.",
    "tenants.T.features": "What the tenant has beyond the open surfaces: `agent_api`, to call hosted agents.",
    "tenants.T.principals.P.workspaces": "The workspaces that the principal is granted.",
    "tenants.T.principals.P.sources": "The sources of data that the principal is granted.",
    "tenants.T.principals.P.tokens": "The tokens that stand for the principal.",
    "tenants.T.principals.P.tokens.scopes": "The scopes that the token has.",
    "tenants.T.principals.P.tokens.env": "The environment variable that holds the token. Either this or `file`.",
    "tenants.T.principals.P.tokens.file": "The file that holds the token. Either this or `env`.",
    "retention.terminal": 'How long a finished task is kept: a duration of at least `"1m"`, or `"never"` to keep all.',
    "retention.completed": "The same for tasks that ended COMPLETED.",
    "retention.failed": "The same for tasks that ended FAILED.",
    "retention.canceled": "The same for tasks that ended CANCELED.",
    "retention.rejected": "The same for tasks that ended REJECTED.",
    "retention.audit": 'How long the audit is kept, from what was done on: at least `"1m"`, or `"never"` to keep all.',
    "agents.ID.python": (
        "What to serve: `module:attribute` or `file.py:attribute`. Either this, `command`, `openai` or `a2a` is needed."
    ),
    "agents.ID.command": "A program and its arguments, which are the agent. No shell reads them.",
    "agents.ID.command_env": "Variables of the server's environment that the command is given beside the usual ones.",
    "agents.ID.name": "The agent's name for people. This and the next four are for agents without code.",
    "agents.ID.description": "What it does.",
    "agents.ID.version": "The agent's own version.",
    "agents.ID.output_modes": "Media types that it may answer with.",
    "agents.ID.max_output": "Bytes that it may give; with more the run is FAILED.",
    "agents.ID.openai.base_url": "The endpoint: what `/chat/completions` comes after. Needed.",
    "agents.ID.openai.model": "The model's name there. Needed.",
    "agents.ID.openai.system": "What the model is told before each conversation.",
    "agents.ID.openai.api_key_env": "The environment variable that holds the key, sent as `Authorization: Bearer`.",
    "agents.ID.openai.headers_env": "Further headers: for each, the environment variable that holds its value.",
    "agents.ID.openai.idle": "Silence of the endpoint after which the run is FAILED.",
    "agents.ID.a2a": "The URL of a remote A2A agent or of its card, or a table with it.",
    "agents.ID.a2a.url": "The URL of the agent, below which its card stands, or of its card (`….json`). Needed.",
    "agents.ID.a2a.bearer_env": "The environment variable that holds the token, sent as `Authorization: Bearer`.",
    "agents.ID.a2a.headers_env": "Further headers: for each, the environment variable that holds its value.",
    "agents.ID.a2a.origins": (
        "Origins, beside that of `url`, to which the card may lead and the credential may go, such as "
        "`https://api.example.com`."
    ),
    "agents.ID.a2a.version": "The only version of A2A to call it in: `1.0` or `0.3`. If empty, the newest of its card.",
    "agents.ID.a2a.binding": (
        "The only binding to call it over: `JSONRPC` or `HTTP+JSON`. If empty, what its card prefers."
    ),
    "agents.ID.a2a.jwks_file": "A file with a JWK Set: its card must be signed by one of these keys.",
    "agents.ID.a2a.idempotent": (
        "Whether it takes a message that is sent again under its id for the same one, so that a send of which nobody "
        "knows whether it arrived may be repeated."
    ),
    "agents.ID.a2a.idle": "Silence after which an answer is given up, or its task looked for.",
    "agents.ID.a2a.patience": "How long a task that cannot be reached is looked for before the run is FAILED.",
    "agents.ID.a2a.refresh": "How often the card is fetched again.",
    "agents.ID.default": "Whether the agent's card also stands at `/.well-known/agent-card.json`. One agent at most.",
    "agents.ID.versions": "Protocol versions to serve the agent in: `1.0`, `0.3`. Others are refused by name.",
    "agents.ID.idempotency": '`"always"` or `"requested"`, as `Agent(idempotency=…)`.',
    "agents.ID.input_modes": "Media types that the agent takes.",
    "agents.ID.strict_input_modes": "Whether to refuse parts of other media types.",
    "agents.ID.on_lost_worker": '`"retry"` or `"fail"`: what becomes of a run that a crash interrupted.',
    "agents.ID.max_attempts": "How often a run is entered at most.",
    "agents.ID.deadline": "How long a run may take before it is ended as FAILED, waiting for its caller aside.",
    "agents.ID.parked_deadline": "How long a run may wait for its caller before it is ended as FAILED.",
    "agents.ID.tenant": "The tenant that it belongs to: to all others it is not there. If empty, it is everybody's.",
    "agents.ID.workspace": "The workspace of its tenant that it belongs to, if it is served as a hosted agent.",
    "agents.ID.public": "Whether it may be called without a credential.",
    "agents.ID.push": "Whether callers may have URLs told of what happens to their tasks.",
    "agents.ID.max_runs": "How many runs of the agent go on at a time; further ones wait.",
    "agents.ID.max_waiting": "How many runs of the agent may wait; messages that would begin further ones are refused.",
    "agents.ID.extensions": "Extensions to declare: URIs of those that come with Dragoman, or tables with `uri`, "
    "`description`, `required` and `params`.",
    "agents.ID.extended_card": (
        "Whether the agent's card declares an extended one. By itself it does if the agent has skills for it."
    ),
    "agents.ID.legacy_card": "Whether a card that is asked for without a version is one for 0.3 callers too.",
}
"""Key, with `ID` for the name of an agent's table → what it means."""

UNSET: Mapping[str, str] = {
    "agents.ID.a2a": "none",
    "agents.ID.versions": "all",
    **{f"limits.{name}": "none" for name in LIMITS},
    **{f"tenants.T.limits.{name}": f"as `limits.{name}`" for name in LIMITS},
    "agents.ID.name": "the id",
    "agents.ID.description": "made of the name",
    "agents.ID.version": '`"1.0.0"`',
    "agents.ID.output_modes": '`["text/plain"]`',
    "agents.ID.max_output": "`1048576`",
    **{f"retention.{state}": "as `terminal`" for state in ("completed", "failed", "canceled", "rejected")},
}
"""Key that may be left out → what holds then, where that is not what the agent says itself."""

REMEDIES: Mapping[str, str] = {
    "TaskNotFound": "Check the id, and that it is a task of this agent.",
    "TaskNotCancelable": "Nothing: the task is over. Read it to see how it ended.",
    "PushNotificationNotSupported": "Stream, subscribe, or read the task now and then.",
    "UnsupportedOperation": "The message says what to use instead.",
    "ContentTypeNotSupported": "Send a media type of the card's `defaultInputModes`.",
    "InvalidAgentResponse": "As a caller, tell the agent's author. As the author, answer before the handler ends.",
    "ExtendedAgentCardNotConfigured": "Use the card.",
    "ExtensionSupportRequired": "Name the extension in `A2A-Extensions`; the card lists it.",
    "VersionNotSupported": "Send `A2A-Version` with one of the versions in `metadata.supported`.",
    "MalformedJson": "Mend the body at the place that the message names.",
    "InvalidRequest": "Mend the envelope.",
    "MethodNotFound": "Take URLs from the card, and method names from the standard.",
    "MessageIdConflict": "Send a new message under a new `messageId`.",
    "InvalidParams": "Mend the fields in `fieldViolations`.",
    "Unauthenticated": "Send `Authorization: Bearer TOKEN` with a good token. The log says what is wrong with one.",
    "Forbidden": "Ask for a token with the scope that `WWW-Authenticate` and `metadata.scope` name.",
    "RateLimited": "Wait as long as `Retry-After` says, and send what is good.",
    "ObserverLimit": "Wait as long as `Retry-After` says, or send with `returnImmediately` and read the task later.",
    "ApprovalNotFound": "Check the id, and that the agent is one of your tenant's.",
    "RemoteNotFound": "List the agents that are registered, and name one of them by its id.",
    "DelegationNotFound": "Keep the `delegationId` that came with the outcome.",
    "NotReconcilable": "Find out at the remote agent by other means; that no task id came says nothing about it.",
    "EntryNotFound": "List what there is; the message names what looks like it.",
    "EntryConflict": "Do what the message says: it is there already, or belongs to the configuration.",
    "ApprovalClosed": "Read the approvals again; this one needs no decision any more.",
    "ResultTooLarge": "Ask for less history, or for fewer tasks.",
    "ArtifactUnverified": "Tell the operator: the store was changed by something else than the server.",
    "AgentNotFound": "Check the agent's id in the URL. `dragoman agents` lists those that are served.",
    "Misdirected": "Call the server by `localhost` or `127.0.0.1`. As its operator, name the host in `server.hosts`.",
    "MethodNotAllowed": "Use a method that `Allow` names.",
    "NotAcceptable": "Accept `application/json`, or `text/event-stream` for a stream.",
    "RequestTimeout": "Send the body again, whole.",
    "BodyTooLarge": "Send large files by `url`, or raise `limits.body`.",
    "UnsupportedMediaType": "Send `Content-Type: application/json`.",
    "QuotaExceeded": "Wait as long as `Retry-After` says, and send the same message again. "
    "`metadata.limit` names the setting.",
    "Unavailable": "Wait as long as `Retry-After` says, and send the same message again.",
    "InternalError": "Look into the log under the reply's `X-Request-Id`.",
}
"""Class of an error that callers can meet → what to do about it."""

METHODS: Mapping[str, tuple[str, str]] = {
    "message/send": ("`message`, `configuration`, `metadata`", "a Task or a Message; its `kind` tells which"),
    "message/stream": ("the same", "a stream"),
    "tasks/get": ("`id`, `historyLength`", "a Task"),
    "tasks/cancel": ("`id`, `metadata`", "a Task"),
    "tasks/resubscribe": ("`id`", "a stream; of a finished task, the Task alone"),
    "tasks/pushNotificationConfig/set": (
        "`taskId`, `pushNotificationConfig`",
        "the same, without secrets",
    ),
    "tasks/pushNotificationConfig/get": (
        "`id`, `pushNotificationConfigId`",
        "`taskId`, `pushNotificationConfig`",
    ),
    "tasks/pushNotificationConfig/list": ("`id`", "an array of them"),
    "tasks/pushNotificationConfig/delete": ("`id`, `pushNotificationConfigId`", "null"),
    "agent/getAuthenticatedExtendedCard": (
        "none",
        "[AgentCard](http.md#extended-cards), if the agent has one",
    ),
}
"""JSON-RPC method of A2A 0.3 → its params and its result."""
