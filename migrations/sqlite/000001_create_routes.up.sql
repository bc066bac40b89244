-- One row. n is the revision of the last change of any record, nonce is that
-- change's own; origin is the nonce of the database when it was empty.
CREATE TABLE counter (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    n      INTEGER NOT NULL CHECK (n >= 0),
    nonce  TEXT    NOT NULL,
    origin TEXT    NOT NULL
) STRICT;
INSERT INTO counter (id, n, nonce, origin)
VALUES (1, 0, '', lower(hex(randomblob(16))));
UPDATE counter SET nonce = origin;

-- The records of the moment. Names sort by their bytes.
-- The defaults are for rows that are put in by hand.
CREATE TABLE routes (
    service  TEXT    PRIMARY KEY NOT NULL,
    revision INTEGER NOT NULL DEFAULT 0,
    nonce    TEXT    NOT NULL DEFAULT '0',
    record   TEXT    NOT NULL CHECK (json_valid(record))
) STRICT;

-- Every change there was: before is null where there was no record, after where
-- it was deleted. Its oldest part may be cut; what is left has no gaps. Times are
-- in UTC, written with six digits of a second, so that they sort.
CREATE TABLE history (
    revision INTEGER PRIMARY KEY,
    nonce    TEXT NOT NULL,
    service  TEXT NOT NULL,
    before   TEXT CHECK (before IS NULL OR json_valid(before)),
    after    TEXT CHECK (after IS NULL OR json_valid(after)),
    who      TEXT NOT NULL,
    why      TEXT NOT NULL,
    at       TEXT NOT NULL
) STRICT;
CREATE INDEX history_service ON history (service, revision);
