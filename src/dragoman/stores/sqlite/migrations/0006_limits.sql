-- How much tenants may use, as far as operators keep it here: the names are those of dragoman.model.allowance.LIMITS.
CREATE TABLE tenant_limit (
    tenant TEXT NOT NULL,
    name   TEXT NOT NULL,
    most   INTEGER NOT NULL CHECK (most > 0),
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- The audit is kept from here on: what was noted before has been deleted, or may be. It never goes back. Nothing of
-- the audit from here on can be deleted.
CREATE TABLE audit_horizon (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    kept_since INTEGER NOT NULL
) STRICT;
INSERT INTO audit_horizon VALUES (1, 0);
CREATE TRIGGER audit_horizon_only_advances BEFORE UPDATE ON audit_horizon WHEN new.kept_since < old.kept_since
BEGIN SELECT RAISE(ABORT, 'the audit horizon only advances'); END;
CREATE TRIGGER audit_horizon_is_not_deleted BEFORE DELETE ON audit_horizon
BEGIN SELECT RAISE(ABORT, 'the audit horizon only advances'); END;

DROP TRIGGER audit_is_not_deleted;
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
WHEN old.at >= (SELECT kept_since FROM audit_horizon)
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
