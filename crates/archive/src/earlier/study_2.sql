
-- Added by version 2: each time that the study was measured.

CREATE TABLE session (
    id         INTEGER PRIMARY KEY,
    began      TEXT NOT NULL,                                    -- RFC 3339, UTC
    elapsed_ns INTEGER NOT NULL DEFAULT 0 CHECK (elapsed_ns >= 0) -- until its last attempt
) STRICT;
