-- Actions that an agent wants to take and somebody must allow. Each is decided once, while its run waits for it.
CREATE TABLE approval (
    id         TEXT NOT NULL PRIMARY KEY,
    task_id    TEXT NOT NULL,
    ordinal    INTEGER NOT NULL,            -- the point of the run's journal that waits for it
    tenant     TEXT NOT NULL,
    agent      TEXT NOT NULL,
    principal  TEXT NOT NULL,               -- whose task it is
    action     TEXT NOT NULL,
    details    BLOB NOT NULL,
    digest     TEXT NOT NULL,               -- of action and details, as they were shown
    created_at INTEGER NOT NULL,
    decision   BLOB,                        -- dragoman.model.Decision; NULL while it is open
    decided_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX approval_open ON approval (tenant, id) WHERE decision IS NULL;
CREATE INDEX approval_of_task ON approval (task_id);
