-- A study of scale: what it is, and every attempt, as it ended. Amounts are bytes, times nanoseconds.

CREATE TABLE study (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    head    TEXT NOT NULL CHECK (json_valid(head))  -- JSON: `StudyHead`
) STRICT;

CREATE TABLE attempt (
    id         INTEGER PRIMARY KEY,
    round      INTEGER NOT NULL CHECK (round >= 0),
    position   INTEGER NOT NULL CHECK (position >= 0),  -- place in the round's random order
    purpose    TEXT NOT NULL,                           -- warmup, timed, one-event, half-of-events, memory
    variant    TEXT NOT NULL,
    mode       TEXT NOT NULL,                           -- fork, jobs, threads
    placement  TEXT NOT NULL,
    processes  INTEGER NOT NULL CHECK (processes > 0),
    sound      INTEGER NOT NULL CHECK (sound IN (0, 1)), -- its figures may be used
    elapsed_ns INTEGER NOT NULL CHECK (elapsed_ns >= 0),
    cpu_ns     INTEGER NOT NULL CHECK (cpu_ns >= 0),
    record     TEXT NOT NULL CHECK (json_valid(record)), -- JSON: the whole attempt, its members and its memory
    UNIQUE (round, position, purpose)
) STRICT;

CREATE TABLE remark (
    id   INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
) STRICT;

CREATE TRIGGER attempt_stays BEFORE UPDATE ON attempt BEGIN SELECT RAISE(ABORT, 'an attempt is never changed'); END;
CREATE TRIGGER attempt_is_kept BEFORE DELETE ON attempt BEGIN SELECT RAISE(ABORT, 'an attempt is never removed'); END;
