-- The tables of a campaign, archive version 4. docs/archive.md explains them; the comments travel in the file.

CREATE TABLE campaign (  -- one row: what the campaign is
  id              INTEGER PRIMARY KEY CHECK (id = 1),
  kind            TEXT NOT NULL CHECK (kind IN ('comparison', 'scaling')),
  created         TEXT NOT NULL,  -- RFC 3339
  widthwise       TEXT NOT NULL,  -- the version that began it
  command         TEXT NOT NULL,  -- JSON: the words of the command line
  program         TEXT NOT NULL,  -- its name
  program_version TEXT NOT NULL,
  spec            TEXT NOT NULL,  -- a widthwise.toml that asks the same question
  seed            TEXT NOT NULL,  -- decimal; it may be beyond a signed 64-bit integer
  machine         TEXT NOT NULL,  -- JSON: the machine record
  scaling         TEXT  -- JSON: the cells of a scaling campaign; NULL: it is a comparison
) STRICT;

CREATE TABLE fingerprint (  -- what must be the same on resume
  what  TEXT PRIMARY KEY,
  value TEXT NOT NULL  -- a digest or a version
) STRICT, WITHOUT ROWID;

CREATE TABLE variant (
  id   INTEGER PRIMARY KEY,  -- the order of the tables
  name TEXT NOT NULL UNIQUE,
  slug TEXT NOT NULL UNIQUE,  -- the name as a file name
  role TEXT NOT NULL CHECK (role IN ('baseline', 'variant', 'control'))
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
  stopped    TEXT  -- why it ended; NULL: it was killed, or it is still running
) STRICT;

CREATE TABLE round (
  number    INTEGER PRIMARY KEY CHECK (number BETWEEN 0 AND 4294967294),
  session   INTEGER NOT NULL REFERENCES session,
  kind      TEXT NOT NULL CHECK (kind IN ('warmup', 'timed', 'emulated', 'memory', 'interrupted')),
  planned   INTEGER NOT NULL CHECK (planned BETWEEN 0 AND 4294967295),  -- how many runs it was to have
  finished  INTEGER NOT NULL DEFAULT 0 CHECK (finished IN (0, 1)),  -- 0: killed, or still running
  cpu       INTEGER CHECK (cpu BETWEEN 0 AND 4294967295),  -- NULL: not pinned
  steal     REAL,  -- shares of the round's time, 0 to 1
  pressure  REAL,  -- NULL: no PSI here
  others    REAL,
  others_ns INTEGER,  -- CPU time of other tasks since the round before, as far as ticks tell: only its sum means something
  throttled INTEGER CHECK (throttled >= 0)
) STRICT;

CREATE TABLE run (
  id       INTEGER PRIMARY KEY,
  round    INTEGER NOT NULL REFERENCES round,
  variant  INTEGER NOT NULL REFERENCES variant,
  position INTEGER NOT NULL CHECK (position BETWEEN 0 AND 4294967295),  -- in the round's random order
  began_ns INTEGER NOT NULL CHECK (began_ns >= 0),  -- since the campaign's first run
  ended    TEXT NOT NULL CHECK (ended IN ('done', 'exit', 'signal', 'timeout', 'output-limit', 'spawn-failed', 'hook-failed')),
  number   INTEGER,  -- exit: the status; signal: its number; timeout: nanoseconds; output-limit: bytes
  reason   TEXT,  -- spawn-failed and hook-failed: the step that failed
  output_digest TEXT,
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

CREATE TABLE bound (  -- a reading that is only known to be reached: the true amount lies between its value and this
  run    INTEGER NOT NULL,
  metric INTEGER NOT NULL,
  upper  REAL,  -- in the metric's unit; NULL: nothing bounds it
  PRIMARY KEY (run, metric)
) STRICT, WITHOUT ROWID;

CREATE TABLE process (  -- the processes of a run, one row per command name
  run                 INTEGER NOT NULL,
  comm                TEXT NOT NULL,
  count               INTEGER NOT NULL CHECK (count >= 0),
  max_rss_bytes REAL NOT NULL,  -- of the largest of them
  cpu_ns              REAL NOT NULL,  -- of all of them
  source              TEXT NOT NULL
) STRICT;

CREATE TABLE group_run (  -- a run of several members, of a scaling campaign; amounts are bytes, times nanoseconds
  id         INTEGER PRIMARY KEY,
  round      INTEGER NOT NULL REFERENCES round,
  position   INTEGER NOT NULL CHECK (position BETWEEN 0 AND 4294967295),  -- in the round's random order
  purpose    TEXT NOT NULL,  -- warmup, timed, one-event, half-of-events, memory
  variant    INTEGER NOT NULL REFERENCES variant,
  mode       TEXT NOT NULL,  -- fork, jobs, threads
  placement  TEXT NOT NULL,
  members    INTEGER NOT NULL CHECK (members > 0),
  sound      INTEGER NOT NULL CHECK (sound IN (0, 1)),  -- its figures may be used
  elapsed_ns INTEGER NOT NULL CHECK (elapsed_ns >= 0),
  cpu_ns     INTEGER NOT NULL CHECK (cpu_ns >= 0),
  record     TEXT NOT NULL CHECK (json_valid(record)),  -- JSON: the whole run, its members and its memory
  UNIQUE (round, position, purpose)
) STRICT;

CREATE TABLE memory_series (  -- the memory of a run over time: one row for each run in which it was read
  run      INTEGER PRIMARY KEY REFERENCES run,
  wall_ns  INTEGER NOT NULL CHECK (wall_ns >= 0),
  spent_ns INTEGER NOT NULL CHECK (spent_ns >= 0),  -- time that the sampler spent
  statm_samples   INTEGER NOT NULL CHECK (statm_samples >= 0),  -- how many were made; not all are kept
  pagemap_scans   INTEGER NOT NULL CHECK (pagemap_scans >= 0),
  smaps_snapshots INTEGER NOT NULL CHECK (smaps_snapshots >= 0)
) STRICT;

CREATE TABLE memory_process (  -- the processes of the tree
  run      INTEGER NOT NULL REFERENCES memory_series,
  process  INTEGER NOT NULL CHECK (process >= 0),  -- counted from 0
  pid      INTEGER NOT NULL CHECK (pid BETWEEN 0 AND 4294967295),
  parent   INTEGER NOT NULL CHECK (parent BETWEEN 0 AND 4294967295),
  name     TEXT NOT NULL,
  began_ns INTEGER NOT NULL CHECK (began_ns >= 0),  -- times of a series count from the program's execve
  ended_ns INTEGER NOT NULL CHECK (ended_ns >= 0),
  PRIMARY KEY (run, process)
) STRICT, WITHOUT ROWID;

CREATE TABLE statm_sample (  -- /proc/PID/statm, cheap; amounts are bytes
  run       INTEGER NOT NULL REFERENCES memory_series,
  at_ns     INTEGER NOT NULL CHECK (at_ns >= 0),
  process   INTEGER NOT NULL CHECK (process >= 0),
  resident  INTEGER NOT NULL CHECK (resident >= 0),
  anonymous INTEGER NOT NULL CHECK (anonymous >= 0),
  virtual   INTEGER NOT NULL CHECK (virtual >= 0),
  PRIMARY KEY (run, at_ns, process)
) STRICT, WITHOUT ROWID;

CREATE TABLE memory_snapshot (  -- smaps snapshots, /proc/PID/smaps and status, and pagemap scans, /proc/PID/pagemap; amounts are bytes
  run         INTEGER NOT NULL REFERENCES memory_series,
  at_ns       INTEGER NOT NULL CHECK (at_ns >= 0),
  process     INTEGER NOT NULL CHECK (process >= -1),  -- -1: the whole tree, in which what is shared counts once
  resident    INTEGER NOT NULL CHECK (resident >= 0),
  pss         INTEGER CHECK (pss >= 0),  -- NULL, as all that may be: a pagemap scan does not know it
  anonymous   INTEGER NOT NULL CHECK (anonymous >= 0),
  file        INTEGER CHECK (file >= 0),
  shared      INTEGER CHECK (shared >= 0),
  swap        INTEGER CHECK (swap >= 0),
  virtual     INTEGER NOT NULL CHECK (virtual >= 0),
  page_tables INTEGER CHECK (page_tables >= 0),
  huge        INTEGER CHECK (huge >= 0),
  PRIMARY KEY (run, at_ns, process)
) STRICT, WITHOUT ROWID;

CREATE TABLE memory_part (  -- what the tree's memory is for, at each of these
  run       INTEGER NOT NULL REFERENCES memory_series,
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

CREATE TABLE mark (  -- lines that the program wrote: each begins a phase
  run    INTEGER NOT NULL REFERENCES memory_series,
  number INTEGER NOT NULL CHECK (number >= 0),
  at_ns  INTEGER NOT NULL CHECK (at_ns >= 0),
  text   TEXT NOT NULL,
  PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE variant_status (  -- the last one of each variant; a variant without a row is ready
  variant INTEGER PRIMARY KEY REFERENCES variant,
  status  TEXT NOT NULL,
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

CREATE TABLE output_difference (  -- how a variant's output differs from the baseline's
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
CREATE TRIGGER bound_is_kept BEFORE DELETE ON bound BEGIN SELECT raise(ABORT, 'readings are only ever added'); END;
CREATE TRIGGER bound_is_final BEFORE UPDATE ON bound BEGIN SELECT raise(ABORT, 'readings are only ever added'); END;
CREATE TRIGGER process_is_kept BEFORE DELETE ON process BEGIN SELECT raise(ABORT, 'processes are only ever added'); END;
CREATE TRIGGER process_is_final BEFORE UPDATE ON process BEGIN SELECT raise(ABORT, 'processes are only ever added'); END;

CREATE TRIGGER group_run_is_kept BEFORE DELETE ON group_run BEGIN SELECT raise(ABORT, 'runs are only ever added'); END;
CREATE TRIGGER group_run_is_final BEFORE UPDATE ON group_run BEGIN SELECT raise(ABORT, 'runs are only ever added'); END;
CREATE TRIGGER memory_series_is_kept BEFORE DELETE ON memory_series BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER memory_series_is_final BEFORE UPDATE ON memory_series BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER memory_process_is_kept BEFORE DELETE ON memory_process BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER memory_process_is_final BEFORE UPDATE ON memory_process BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER statm_sample_is_kept BEFORE DELETE ON statm_sample BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER statm_sample_is_final BEFORE UPDATE ON statm_sample BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER memory_snapshot_is_kept BEFORE DELETE ON memory_snapshot BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER memory_snapshot_is_final BEFORE UPDATE ON memory_snapshot BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER memory_part_is_kept BEFORE DELETE ON memory_part BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER memory_part_is_final BEFORE UPDATE ON memory_part BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER mark_is_kept BEFORE DELETE ON mark BEGIN SELECT raise(ABORT, 'series are only ever added'); END;
CREATE TRIGGER mark_is_final BEFORE UPDATE ON mark BEGIN SELECT raise(ABORT, 'series are only ever added'); END;

-- For people: rounds with the kind that counts, and every reading with its names.
CREATE VIEW rounds AS
  SELECT number AS round, CASE finished WHEN 1 THEN kind ELSE 'interrupted' END AS kind,
         planned, cpu, steal, pressure, others, others_ns, throttled
    FROM round;

CREATE VIEW samples AS
  SELECT run.round, rounds.kind, variant.name AS variant, run.position, run.ended,
         metric.name AS metric, reading.value, metric.unit, reading.source, reading.coverage,
         bound.run IS NOT NULL AS bounded, bound.upper
    FROM run
    JOIN rounds  ON rounds.round = run.round
    JOIN variant ON variant.id = run.variant
    JOIN reading ON reading.run = run.id
    JOIN metric  ON metric.id = reading.metric
    LEFT JOIN bound ON bound.run = reading.run AND bound.metric = reading.metric;

CREATE VIEW members AS  -- the members of group runs, one row each, from the record of their run
  SELECT group_run.round, group_run.purpose, variant.name AS variant, group_run.mode, group_run.placement,
         group_run.members AS processes, member.key AS member, member.value ->> '$.pid' AS pid,
         member.value ->> '$.cpu' AS cpu, member.value ->> '$.began_ns' AS began_ns,
         member.value ->> '$.ended_ns' AS ended_ns, member.value ->> '$.cpu_ns' AS cpu_ns,
         member.value ->> '$.exact' AS exact, member.value ->> '$.max_rss' AS max_rss
    FROM group_run
    JOIN variant ON variant.id = group_run.variant
    JOIN json_each(group_run.record, '$.members') AS member;

CREATE VIEW memory AS
  SELECT run.round, variant.name AS variant, memory_part.at_ns, memory_part.class, memory_part.name,
         memory_part.resident, memory_part.pss, memory_part.anonymous, memory_part.swap, memory_part.virtual
    FROM memory_part
    JOIN run     ON run.id = memory_part.run
    JOIN variant ON variant.id = run.variant;
