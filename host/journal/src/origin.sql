-- The identity of the file, and the code with which a program recognizes a file of its user.
CREATE TABLE origin (
    id TEXT NOT NULL,
    code TEXT
) STRICT;

INSERT INTO origin (id) VALUES (lower(hex(randomblob(16))));
