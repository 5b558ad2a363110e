-- The first answer to each question about a call. A question has the number of its entry.
CREATE TABLE answers (
    session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    question INTEGER NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (session, question)
) STRICT, WITHOUT ROWID;
