-- Version 2: discovered dynamic tools.
CREATE TABLE told_tools (
    plugin TEXT NOT NULL,
    digest TEXT NOT NULL,
    told TEXT NOT NULL,
    PRIMARY KEY (plugin, digest)
) STRICT, WITHOUT ROWID;
