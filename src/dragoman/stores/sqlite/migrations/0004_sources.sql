-- The sources of data that runs have used: who may see what a run gives must be granted all of them. Kept by scope, so
-- that a listing learns in a few steps whether any of them is withheld from its caller.
CREATE TABLE run_source (
    scope_id INTEGER NOT NULL REFERENCES scope (id),
    source   TEXT NOT NULL,
    task_id  TEXT NOT NULL,
    PRIMARY KEY (scope_id, source, task_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_source_of_task ON run_source (task_id);

-- What a step gave of a result that is gathered, not committed: the step is not performed again.
ALTER TABLE journal ADD COLUMN given BLOB;

-- Whoever deletes a task deletes these too.
CREATE TRIGGER task_deleted AFTER DELETE ON task BEGIN
    DELETE FROM run_source WHERE task_id = old.id;
    DELETE FROM approval WHERE task_id = old.id;
END;
