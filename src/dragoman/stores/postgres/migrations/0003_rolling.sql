-- What a change of the schema beside running servers goes by. A file whose header says "Servers of schema N and later
-- may go on" changes nothing that those servers read or write: it may be applied while they run, and they may start on
-- what it made.
ALTER TABLE schema_version ADD COLUMN oldest INTEGER NOT NULL DEFAULT 3;    -- whose servers may use this schema
ALTER TABLE replica ADD COLUMN schema INTEGER NOT NULL DEFAULT 2;           -- what this server was made for
