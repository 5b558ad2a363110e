-- Version 3: methods of entities. Packages without a content hash are read from their files again.
CREATE TABLE methods (
    package INTEGER NOT NULL REFERENCES packages (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    terms TEXT NOT NULL,
    entry_tools TEXT NOT NULL,
    PRIMARY KEY (package, id)
) STRICT;
UPDATE packages SET content = '';
