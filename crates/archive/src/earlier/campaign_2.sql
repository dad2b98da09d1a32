-- The tables of a campaign, archive version 2. docs/archive.md explains them; the comments travel in the file.

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
  kind      TEXT NOT NULL CHECK (kind IN ('warmup', 'timed', 'simulated', 'memory', 'interrupted')),
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

CREATE TABLE series (  -- the memory of a run over time: one row for each run in which it was read
  run      INTEGER PRIMARY KEY REFERENCES run,
  wall_ns  INTEGER NOT NULL CHECK (wall_ns >= 0),
  spent_ns INTEGER NOT NULL CHECK (spent_ns >= 0),  -- for so much of that somebody was reading
  glances  INTEGER NOT NULL CHECK (glances >= 0),  -- how many were made; not all are kept
  surveys  INTEGER NOT NULL CHECK (surveys >= 0),
  readings INTEGER NOT NULL CHECK (readings >= 0)
) STRICT;

CREATE TABLE series_process (  -- the processes of the tree
  run      INTEGER NOT NULL REFERENCES series,
  process  INTEGER NOT NULL CHECK (process >= 0),  -- counted from 0
  pid      INTEGER NOT NULL CHECK (pid BETWEEN 0 AND 4294967295),
  parent   INTEGER NOT NULL CHECK (parent BETWEEN 0 AND 4294967295),
  name     TEXT NOT NULL,
  began_ns INTEGER NOT NULL CHECK (began_ns >= 0),  -- times of a series count from the program's execve
  ended_ns INTEGER NOT NULL CHECK (ended_ns >= 0),
  PRIMARY KEY (run, process)
) STRICT, WITHOUT ROWID;

CREATE TABLE series_glance (  -- cheap readings, /proc/PID/statm; amounts are bytes
  run       INTEGER NOT NULL REFERENCES series,
  at_ns     INTEGER NOT NULL CHECK (at_ns >= 0),
  process   INTEGER NOT NULL CHECK (process >= 0),
  resident  INTEGER NOT NULL CHECK (resident >= 0),
  anonymous INTEGER NOT NULL CHECK (anonymous >= 0),
  virtual   INTEGER NOT NULL CHECK (virtual >= 0),
  PRIMARY KEY (run, at_ns, process)
) STRICT, WITHOUT ROWID;

CREATE TABLE series_reading (  -- full readings, /proc/PID/smaps and status, and surveys, /proc/PID/pagemap; amounts are bytes
  run         INTEGER NOT NULL REFERENCES series,
  at_ns       INTEGER NOT NULL CHECK (at_ns >= 0),
  process     INTEGER NOT NULL CHECK (process >= -1),  -- -1: the whole tree, in which what is shared counts once
  resident    INTEGER NOT NULL CHECK (resident >= 0),
  pss         INTEGER CHECK (pss >= 0),  -- NULL, as all that may be: this is a survey, which does not know
  anonymous   INTEGER NOT NULL CHECK (anonymous >= 0),
  file        INTEGER CHECK (file >= 0),
  shared      INTEGER CHECK (shared >= 0),
  swap        INTEGER CHECK (swap >= 0),
  virtual     INTEGER NOT NULL CHECK (virtual >= 0),
  page_tables INTEGER CHECK (page_tables >= 0),
  huge        INTEGER CHECK (huge >= 0),
  PRIMARY KEY (run, at_ns, process)
) STRICT, WITHOUT ROWID;

CREATE TABLE series_part (  -- what the tree's memory is for, at each of these
  run       INTEGER NOT NULL REFERENCES series,
  at_ns     INTEGER NOT NULL CHECK (at_ns >= 0),
  class     TEXT NOT NULL,
  name      TEXT NOT NULL,  -- of a library; empty for other classes
  resident  INTEGER NOT NULL CHECK (resident >= 0),
  pss       INTEGER CHECK (pss >= 0),
  anonymous INTEGER CHECK (anonymous >= 0),
  swap      INTEGER CHECK (swap >= 0),
  virtual   INTEGER NOT NULL CHECK (virtual >= 0),
  PRIMARY KEY (run, at_ns, class, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE series_mark (  -- lines that the program wrote: each begins a phase
  run    INTEGER NOT NULL REFERENCES series,
  number INTEGER NOT NULL CHECK (number >= 0),
  at_ns  INTEGER NOT NULL CHECK (at_ns >= 0),
  text   TEXT NOT NULL,
  PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

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

CREATE TRIGGER series_is_kept BEFORE DELETE ON series BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER series_is_final BEFORE UPDATE ON series BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER series_process_is_kept BEFORE DELETE ON series_process BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER series_process_is_final BEFORE UPDATE ON series_process BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER series_glance_is_kept BEFORE DELETE ON series_glance BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER series_glance_is_final BEFORE UPDATE ON series_glance BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER series_reading_is_kept BEFORE DELETE ON series_reading BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER series_reading_is_final BEFORE UPDATE ON series_reading BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER series_part_is_kept BEFORE DELETE ON series_part BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER series_part_is_final BEFORE UPDATE ON series_part BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER series_mark_is_kept BEFORE DELETE ON series_mark BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER series_mark_is_final BEFORE UPDATE ON series_mark BEGIN SELECT raise(ABORT, 'series are only ever added'); END;

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

CREATE VIEW memory AS
  SELECT run.round, variant.name AS variant, series_part.at_ns, series_part.class, series_part.name,
         series_part.resident, series_part.pss, series_part.anonymous, series_part.swap, series_part.virtual
    FROM series_part
    JOIN run     ON run.id = series_part.run
    JOIN variant ON variant.id = run.variant;
