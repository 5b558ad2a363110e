-- Version 2: the tools that plugins tell only when they run.
CREATE TABLE told_tools (
    plugin TEXT NOT NULL,
    digest TEXT NOT NULL,
    told TEXT NOT NULL,
    PRIMARY KEY (plugin, digest)
) STRICT, WITHOUT ROWID;
