-- What operators say about labels of instances, until a moment each. labels holds a
-- text for a label that is set and null for one that is hidden. Rows past their end
-- are as good as gone; a sweep deletes them, with an entry in the history.
-- The defaults are for rows that are put in by hand.
CREATE TABLE instance_labels (
    service  TEXT    NOT NULL,
    instance TEXT    NOT NULL,
    revision INTEGER NOT NULL DEFAULT 0,
    nonce    TEXT    NOT NULL DEFAULT '0',
    labels   TEXT    NOT NULL CHECK (json_valid(labels)),
    ends     TEXT    NOT NULL,
    PRIMARY KEY (service, instance)
) STRICT;
CREATE INDEX instance_labels_ends ON instance_labels (ends);

-- Every change of them. Its revisions and those of history are numbers of one
-- counter, each in one of the two; what is left after a cut has no gaps.
CREATE TABLE instance_labels_history (
    revision INTEGER PRIMARY KEY,
    nonce    TEXT NOT NULL,
    service  TEXT NOT NULL,
    instance TEXT NOT NULL,
    before   TEXT CHECK (before IS NULL OR json_valid(before)),
    after    TEXT CHECK (after IS NULL OR json_valid(after)),
    who      TEXT NOT NULL,
    why      TEXT NOT NULL,
    at       TEXT NOT NULL
) STRICT;
CREATE INDEX instance_labels_history_instance ON instance_labels_history (service, instance, revision);
