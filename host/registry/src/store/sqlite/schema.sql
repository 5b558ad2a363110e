-- Version 1. A later version is a further step in `open.rs`; this file does not change any more.
CREATE TABLE packages (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    stamp TEXT NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    version TEXT,
    category TEXT,
    tier TEXT NOT NULL,
    inspection TEXT NOT NULL,
    content TEXT NOT NULL,
    manifest TEXT,
    reason TEXT
) STRICT;
CREATE INDEX packages_by_category ON packages (category);
CREATE INDEX packages_by_name ON packages (name);
CREATE INDEX packages_by_digest ON packages (digest);

CREATE TABLE tools (
    id TEXT NOT NULL,
    package INTEGER NOT NULL REFERENCES packages (id) ON DELETE CASCADE,
    export TEXT NOT NULL,
    description TEXT NOT NULL,
    quality_percent INTEGER NOT NULL,
    name TEXT NOT NULL,
    terms TEXT NOT NULL,
    import_health TEXT NOT NULL DEFAULT 'unknown',
    execution_health TEXT NOT NULL DEFAULT 'unknown',
    health_error TEXT,
    checked_ms INTEGER NOT NULL DEFAULT 0,
    uses INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (package, export)
) STRICT;
CREATE INDEX tools_by_id ON tools (id);
CREATE INDEX tools_by_quality ON tools (quality_percent DESC);
CREATE INDEX tools_by_health ON tools (execution_health);
CREATE INDEX tools_by_use ON tools (uses DESC);

CREATE TABLE key_values (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;
