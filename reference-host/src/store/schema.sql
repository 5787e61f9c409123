-- One row a thing. Keys of events and messages are (session << 40) | sequence, so that both are appended at the end of
-- their session and read in one sweep.
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sessions (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    parent TEXT,
    created_at TEXT NOT NULL,
    last_event INTEGER NOT NULL,
    next_event INTEGER NOT NULL,
    dropped INTEGER NOT NULL,
    next_store INTEGER NOT NULL,
    next_id INTEGER NOT NULL,
    updated_at TEXT NOT NULL,
    details TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS sessions_parent ON sessions (parent);
CREATE TABLE IF NOT EXISTS events (key INTEGER PRIMARY KEY, features INTEGER NOT NULL, json TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS messages (key INTEGER PRIMARY KEY, json TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS runs (
    num INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    id TEXT NOT NULL UNIQUE,
    origin TEXT NOT NULL,
    status TEXT NOT NULL,
    script TEXT NOT NULL,
    step INTEGER NOT NULL,
    json TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS runs_session ON runs (session);
CREATE TABLE IF NOT EXISTS approvals (
    num INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    id TEXT NOT NULL UNIQUE,
    origin TEXT NOT NULL,
    step INTEGER NOT NULL,
    state TEXT NOT NULL,
    json TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS approvals_session ON approvals (session);
CREATE TABLE IF NOT EXISTS questions (
    num INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    id TEXT NOT NULL UNIQUE,
    origin TEXT NOT NULL,
    step INTEGER NOT NULL,
    state TEXT NOT NULL,
    answer TEXT
);
CREATE INDEX IF NOT EXISTS questions_session ON questions (session);
CREATE TABLE IF NOT EXISTS inputs (
    num INTEGER PRIMARY KEY, session INTEGER NOT NULL, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, json TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS outputs (num INTEGER PRIMARY KEY, session INTEGER NOT NULL, json TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS outputs_session ON outputs (session);
CREATE TABLE IF NOT EXISTS children (
    num INTEGER PRIMARY KEY, child TEXT NOT NULL UNIQUE, origin TEXT NOT NULL, step INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS compactions (
    num INTEGER PRIMARY KEY, session INTEGER NOT NULL, id TEXT NOT NULL UNIQUE, applied INTEGER NOT NULL, json TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS spans (
    num INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    chapter TEXT,
    compaction TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS spans_session ON spans (session);
-- What a file held before and after the agent changed it; NULL where it wasn't there.
CREATE TABLE IF NOT EXISTS checkpoints (
    num INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL, path TEXT NOT NULL, before BLOB, after BLOB
);
