-- The schema of a Dragoman store on SQLite. Times are milliseconds since 1970 UTC, by this database's own clock.
-- Payloads are the version-neutral JSON of dragoman.model: no wire form of any protocol version is ever stored.

-- The clock that every writer uses. Tests shift it by the offset; in production the offset stays 0.
CREATE TABLE clock (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    offset_ms INTEGER NOT NULL
) STRICT;
INSERT INTO clock VALUES (1, 0);

CREATE VIEW store_clock AS
SELECT CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER) + offset_ms AS now_ms FROM clock;

-- The one server process that may write: every batch of writes checks that the epoch is still its own.
CREATE TABLE server (
    id           INTEGER PRIMARY KEY CHECK (id = 1),
    epoch        INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    locked       INTEGER NOT NULL,          -- 1 if it holds the lock file, so that its death shows at once
    process      TEXT NOT NULL
) STRICT;
INSERT INTO server VALUES (1, 0, 0, 1, '');

-- Who may see a task: one principal of one tenant with one agent. Interned, for narrow indexes.
CREATE TABLE scope (
    id        INTEGER PRIMARY KEY,
    tenant    TEXT NOT NULL,
    principal TEXT NOT NULL,
    agent     TEXT NOT NULL,
    UNIQUE (tenant, principal, agent)
) STRICT;

-- A task and its run are one row, because there is exactly one run to a task.
CREATE TABLE task (
    id          TEXT NOT NULL PRIMARY KEY,
    scope_id    INTEGER NOT NULL REFERENCES scope (id),
    context_id  TEXT NOT NULL,
    visible     INTEGER NOT NULL,           -- 0 while only a bare message may come of it
    counted     INTEGER NOT NULL,           -- 1 if its context has counters
    state       INTEGER NOT NULL,           -- dragoman.model.TaskState
    status_at   INTEGER NOT NULL,           -- when the state was last set; never goes back
    status_seq  INTEGER NOT NULL,           -- the event that set it
    seq         INTEGER NOT NULL,           -- the last event
    created_at  INTEGER NOT NULL,
    metadata    BLOB,
    -- the run
    request     BLOB NOT NULL,              -- what a handler must know besides the messages
    epoch       INTEGER NOT NULL,           -- raised at each takeover and cancel; appends carry it
    attempt     INTEGER NOT NULL,
    dispatch    TEXT NOT NULL CHECK (dispatch IN ('pending', 'sent', 'parked', 'done')),
    owner       INTEGER NOT NULL,           -- epoch of the server that holds the lease; 0: nobody
    lease_until INTEGER NOT NULL,
    deadline_at INTEGER NOT NULL,
    parked_at   INTEGER,
    parked_ms   INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Listings are read in the order of these. One of all states is merged from the few states that there are: an index
-- less to write on every change of state.
CREATE INDEX task_newest_by_state ON task (scope_id, state, status_at DESC, id DESC) WHERE visible;
CREATE INDEX task_newest_by_context ON task (scope_id, context_id, status_at DESC, id DESC) WHERE visible;
-- Running ones (SUBMITTED, WORKING) and waiting ones (INPUT_REQUIRED, AUTH_REQUIRED): few, looked through by the sweep.
CREATE INDEX task_running ON task (deadline_at) WHERE state IN (1, 2);
CREATE INDEX task_parked ON task (parked_at) WHERE state IN (6, 8);

-- Message identity: the same message is accepted once. Lives as long as its task.
CREATE TABLE identity (
    scope_id   INTEGER NOT NULL REFERENCES scope (id),
    message_id TEXT NOT NULL,
    digest     BLOB NOT NULL,
    task_id    TEXT NOT NULL,
    PRIMARY KEY (scope_id, message_id)
) STRICT, WITHOUT ROWID;

-- The event log, the truth about every task: messages, states, artifact chunks. seq has no gaps. A table with row ids:
-- without them, finding an event would read the whole payloads of its neighbours in the tree.
CREATE TABLE event (
    task_id TEXT NOT NULL,
    seq     INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY (task_id, seq)
) STRICT;

-- What a handler did by name, so that it is not done again on another attempt.
CREATE TABLE journal (
    task_id TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    name    TEXT NOT NULL,
    acts    INTEGER NOT NULL,               -- acts that the handler had committed before
    seq     INTEGER NOT NULL,               -- the task's last event at that moment
    result  BLOB,
    PRIMARY KEY (task_id, ordinal)
) STRICT, WITHOUT ROWID;

-- Visible tasks by state, of a whole scope (context_id '') and of each context that has had more than one task: totals
-- without scans, and no row for the many contexts that never see a second task.
CREATE TABLE counter (
    scope_id       INTEGER NOT NULL REFERENCES scope (id),
    context_id     TEXT NOT NULL,
    submitted      INTEGER NOT NULL,
    working        INTEGER NOT NULL,
    completed      INTEGER NOT NULL,
    failed         INTEGER NOT NULL,
    canceled       INTEGER NOT NULL,
    input_required INTEGER NOT NULL,
    rejected       INTEGER NOT NULL,
    auth_required  INTEGER NOT NULL,
    PRIMARY KEY (scope_id, context_id)
) STRICT, WITHOUT ROWID;
