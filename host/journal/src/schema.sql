CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- Texts that are large. Each session has its own, so that they end with it.
CREATE TABLE texts (
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    digest TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (session, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE entries (
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    -- The kind of event, to list sessions without reading all entries.
    event TEXT NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (session, sequence)
) STRICT, WITHOUT ROWID;
