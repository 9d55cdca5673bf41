-- Who may call and what they are granted, as far as operators keep it here; the configuration may name more tenants,
-- and both count together. So names are plain text, and nothing refers to a tenant by a foreign key: a token kept here
-- may be for a principal of the configuration. Times are milliseconds since 1970 UTC.

CREATE TABLE tenant (
    name       TEXT NOT NULL PRIMARY KEY,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE feature (
    tenant TEXT NOT NULL,
    name   TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE principal (
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- Only the hash of a token is kept: whoever reads the file learns none. A revoked one stays, to be told of.
CREATE TABLE token (
    id         TEXT NOT NULL PRIMARY KEY,   -- what it is called where it must be named
    hash       BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    tenant     TEXT NOT NULL,
    principal  TEXT NOT NULL,
    scopes     TEXT NOT NULL,               -- separated by spaces
    note       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE INDEX token_of_principal ON token (tenant, principal);

-- What a principal can be granted: a workspace, which agents work in, or a source, which results draw on.
CREATE TABLE resource (
    tenant     TEXT NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('workspace', 'source')),
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE resource_grant (
    tenant     TEXT NOT NULL,
    kind       TEXT NOT NULL CHECK (kind IN ('workspace', 'source')),
    name       TEXT NOT NULL,
    principal  TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, principal, kind, name)
) STRICT, WITHOUT ROWID;

-- Raised by every change of the tables above, so that a server sees by one number whether it has to read them again.
CREATE TABLE identities (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL
) STRICT;
INSERT INTO identities VALUES (1, 0);

-- Who did what, when, on what, and what came of it. Rows are added and never changed or deleted.
CREATE TABLE audit (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    tenant     TEXT NOT NULL,               -- who: empty if nobody knows, or an operator at the machine
    principal  TEXT NOT NULL,
    credential TEXT NOT NULL,               -- the id of the token that was shown, never the token
    address    TEXT NOT NULL,
    action     TEXT NOT NULL,
    target     TEXT NOT NULL,
    outcome    TEXT NOT NULL,               -- ok, or the reason of the error
    detail     TEXT NOT NULL,               -- a short fact, such as the scopes of a token
    times      INTEGER NOT NULL             -- how often within a few seconds; the same denials are one row
) STRICT;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
