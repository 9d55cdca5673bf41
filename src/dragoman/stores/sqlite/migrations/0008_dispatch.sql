-- Runs that an engine outside of this store executes, and what that engine is still to be told: written with the task,
-- told after the commit. A row goes when its run has ended and the engine knows.
CREATE TABLE dispatch (
    task_id TEXT NOT NULL PRIMARY KEY,
    notice  TEXT NOT NULL CHECK (notice IN ('start', 'resume', 'stop', 'none')),
    epoch   INTEGER NOT NULL,               -- of the run when there was something to tell
    tries   INTEGER NOT NULL,               -- how often it was told in vain
    due_at  INTEGER NOT NULL                -- when to tell, or to look what became of the run
) STRICT, WITHOUT ROWID;
CREATE INDEX dispatch_due ON dispatch (due_at);
