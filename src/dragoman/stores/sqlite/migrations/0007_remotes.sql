-- Agents elsewhere that tenants have registered. The bearer token, if there is one, is encrypted, and bound to the
-- tenant and to the origin of the endpoint. Times are milliseconds since 1970 UTC.
CREATE TABLE remote_agent (
    id           TEXT NOT NULL PRIMARY KEY,
    tenant       TEXT NOT NULL,
    name         TEXT NOT NULL,
    endpoint_url TEXT NOT NULL,
    origin       TEXT NOT NULL,             -- of the endpoint
    sealed       BLOB NOT NULL,             -- the bearer token; empty if there is none
    created_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX remote_agent_of_tenant ON remote_agent (tenant, id);

-- What was, or is being, sent to one of them: written before the send, so that it is never sent again. Who delegates
-- chooses the task id, which is the id of the message on its way out.
CREATE TABLE delegation (
    id             TEXT NOT NULL PRIMARY KEY,
    tenant         TEXT NOT NULL,
    principal      TEXT NOT NULL,
    task_id        TEXT NOT NULL,
    remote_id      TEXT NOT NULL,
    origin         TEXT NOT NULL,           -- where it went
    digest         BLOB NOT NULL CHECK (length(digest) = 32),
    status         TEXT NOT NULL,           -- sending, failed, unknown, or the state of the remote task
    result         BLOB NOT NULL,           -- what came back, JSON; empty if nothing did
    remote_task_id TEXT NOT NULL,
    code           INTEGER,                 -- of the error that came back
    error          TEXT NOT NULL,
    created_at     INTEGER NOT NULL,
    changed_at     INTEGER NOT NULL,
    UNIQUE (tenant, principal, task_id)
) STRICT;
CREATE INDEX delegation_under_way ON delegation (id) WHERE status = 'sending';
