-- The tables of a campaign, archive version 1. docs/archive.md explains them; the comments travel in the file.

CREATE TABLE campaign (  -- one row: what the campaign is
  id              INTEGER PRIMARY KEY CHECK (id = 1),
  created         TEXT NOT NULL,  -- RFC 3339
  widthwise       TEXT NOT NULL,  -- the version that began it
  command         TEXT NOT NULL,  -- JSON: the words of the command line
  program_version TEXT NOT NULL,
  spec            TEXT NOT NULL,  -- a widthwise.toml that asks the same question
  seed            TEXT NOT NULL,  -- decimal; it may be beyond a signed 64-bit integer
  machine         TEXT NOT NULL   -- JSON: the machine record
) STRICT;

CREATE TABLE identity (  -- what must be the same on resume
  what  TEXT PRIMARY KEY,
  value TEXT NOT NULL  -- a digest or a version
) STRICT, WITHOUT ROWID;

CREATE TABLE variant (
  id   INTEGER PRIMARY KEY,  -- the order of the tables
  name TEXT NOT NULL UNIQUE,
  slug TEXT NOT NULL UNIQUE,  -- the name as a file name
  role TEXT NOT NULL CHECK (role IN ('baseline', 'variant', 'again'))
) STRICT;

CREATE TABLE metric (
  id    INTEGER PRIMARY KEY,  -- the order of the columns
  name  TEXT NOT NULL UNIQUE,
  title TEXT NOT NULL,
  unit  TEXT NOT NULL,  -- nanoseconds, bytes, count
  about TEXT NOT NULL
) STRICT;

CREATE TABLE session (  -- one row for the beginning, and one for each resume
  id         INTEGER PRIMARY KEY,
  began      TEXT NOT NULL,  -- RFC 3339, UTC
  elapsed_ns INTEGER NOT NULL DEFAULT 0 CHECK (elapsed_ns >= 0),  -- up to its last finished round, or as it said at its end
  stopped    TEXT  -- why it ended; NULL: it was cut off, or it is still running
) STRICT;

CREATE TABLE round (
  number    INTEGER PRIMARY KEY CHECK (number BETWEEN 0 AND 4294967294),
  session   INTEGER NOT NULL REFERENCES session,
  kind      TEXT NOT NULL CHECK (kind IN ('warmup', 'timed', 'simulated', 'interrupted')),
  planned   INTEGER NOT NULL CHECK (planned BETWEEN 0 AND 4294967295),  -- how many runs it was to have
  finished  INTEGER NOT NULL DEFAULT 0 CHECK (finished IN (0, 1)),  -- 0: cut off, or still running
  cpu       INTEGER CHECK (cpu BETWEEN 0 AND 4294967295),  -- NULL: not pinned
  steal     REAL,  -- shares of the round's time, 0 to 1
  pressure  REAL,  -- NULL: no PSI here
  others    REAL,
  throttled INTEGER CHECK (throttled >= 0)
) STRICT;

CREATE TABLE run (
  id       INTEGER PRIMARY KEY,
  round    INTEGER NOT NULL REFERENCES round,
  variant  INTEGER NOT NULL REFERENCES variant,
  position INTEGER NOT NULL CHECK (position BETWEEN 0 AND 4294967295),  -- in the round's random order
  began_ns INTEGER NOT NULL CHECK (began_ns >= 0),  -- since the campaign's first run
  ended    TEXT NOT NULL CHECK (ended IN ('done', 'exit', 'signal', 'timeout', 'flood', 'not-started', 'around')),
  number   INTEGER,  -- exit: the status; signal: its number; timeout: nanoseconds; flood: bytes
  reason   TEXT,  -- not-started and around: the step that failed
  answer   TEXT,  -- a digest of what it answered
  UNIQUE (round, variant)  -- so that no run counts twice
) STRICT;

CREATE TABLE reading (
  run      INTEGER NOT NULL,
  metric   INTEGER NOT NULL,
  value    REAL NOT NULL,  -- in the metric's unit
  source   TEXT NOT NULL,
  coverage REAL NOT NULL,  -- 1 unless the kernel multiplexed the counter
  PRIMARY KEY (run, metric)
) STRICT, WITHOUT ROWID;

CREATE TABLE process (  -- the processes of a run, one row per command name
  run                 INTEGER NOT NULL,
  comm                TEXT NOT NULL,
  count               INTEGER NOT NULL CHECK (count >= 0),
  peak_resident_bytes REAL NOT NULL,  -- of the largest of them
  cpu_ns              REAL NOT NULL,  -- of all of them
  source              TEXT NOT NULL
) STRICT;

CREATE TABLE standing (  -- how each variant stands: the last word counts
  variant INTEGER PRIMARY KEY REFERENCES variant,
  state   TEXT NOT NULL,
  reason  TEXT NOT NULL
) STRICT;

CREATE TABLE build (
  variant      INTEGER PRIMARY KEY REFERENCES variant,
  compiler     TEXT NOT NULL,
  cflags       TEXT NOT NULL,
  binary_bytes INTEGER CHECK (binary_bytes >= 0),
  digest       TEXT,
  log          TEXT NOT NULL,
  seconds      REAL NOT NULL,
  cached       INTEGER NOT NULL CHECK (cached IN (0, 1))
) STRICT;

CREATE TABLE difference (  -- how a variant's answer differs from the baseline's
  variant INTEGER PRIMARY KEY REFERENCES variant,
  diff    TEXT NOT NULL
) STRICT;

CREATE TABLE warning (
  id   INTEGER PRIMARY KEY,
  text TEXT NOT NULL UNIQUE
) STRICT;

-- Raw samples are only ever added.
CREATE TRIGGER run_is_kept BEFORE DELETE ON run BEGIN SELECT raise(ABORT, 'runs are only ever added'); END;
CREATE TRIGGER run_is_final BEFORE UPDATE ON run BEGIN SELECT raise(ABORT, 'runs are only ever added'); END;
CREATE TRIGGER reading_is_kept BEFORE DELETE ON reading BEGIN SELECT raise(ABORT, 'readings are only ever added'); END;
CREATE TRIGGER reading_is_final BEFORE UPDATE ON reading BEGIN SELECT raise(ABORT, 'readings are only ever added'); END;
CREATE TRIGGER process_is_kept BEFORE DELETE ON process BEGIN SELECT raise(ABORT, 'processes are only ever added'); END;
CREATE TRIGGER process_is_final BEFORE UPDATE ON process BEGIN SELECT raise(ABORT, 'processes are only ever added'); END;

-- For people: rounds with the kind that counts, and every reading with its names.
CREATE VIEW rounds AS
  SELECT number AS round, CASE finished WHEN 1 THEN kind ELSE 'interrupted' END AS kind,
         planned, cpu, steal, pressure, others, throttled
    FROM round;

CREATE VIEW samples AS
  SELECT run.round, rounds.kind, variant.name AS variant, run.position, run.ended,
         metric.name AS metric, reading.value, metric.unit, reading.source, reading.coverage
    FROM run
    JOIN rounds  ON rounds.round = run.round
    JOIN variant ON variant.id = run.variant
    JOIN reading ON reading.run = run.id
    JOIN metric  ON metric.id = reading.metric;
