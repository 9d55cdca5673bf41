-- Where callers want to be told of a task's events. The event log is the outbox: what is still to be told is what comes
-- after the last event that the receiver took, so telling costs the events themselves no write.
CREATE TABLE push_config (
    task_id    TEXT NOT NULL,
    id         TEXT NOT NULL,
    generation TEXT NOT NULL,               -- of A2A, that notifications are to speak
    url        TEXT NOT NULL,
    scheme     TEXT NOT NULL,               -- of the Authorization header
    sealed     BLOB NOT NULL,               -- token and credentials, encrypted
    state      TEXT NOT NULL CHECK (state IN ('open', 'done', 'dead')),
    sent       INTEGER NOT NULL,            -- the last event that the receiver took
    tries      INTEGER NOT NULL DEFAULT 0,  -- how often the next one was sent in vain
    due_at     INTEGER NOT NULL DEFAULT 0,  -- when it may be tried again
    changed_at INTEGER NOT NULL,            -- when state or tries last changed
    error      TEXT NOT NULL DEFAULT '',    -- what became of the last try
    PRIMARY KEY (task_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX push_config_open ON push_config (task_id, id) WHERE state = 'open';
CREATE INDEX push_config_dead ON push_config (task_id, id) WHERE state = 'dead';

-- Whoever deletes a task deletes these too.
CREATE TRIGGER task_deleted_push AFTER DELETE ON task BEGIN
    DELETE FROM push_config WHERE task_id = old.id;
END;
