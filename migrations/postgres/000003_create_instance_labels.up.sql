-- What operators say about labels of instances, until a moment each. labels holds a
-- text for a label that is set and null for one that is hidden. Rows past their end
-- are as good as gone; a sweep deletes them, with an entry in the history.
-- The defaults are for rows that are put in by hand.
CREATE TABLE instance_labels (
    service  text COLLATE "C" NOT NULL,
    instance text COLLATE "C" NOT NULL,
    revision bigint NOT NULL DEFAULT 0,
    nonce    text   NOT NULL DEFAULT '0',
    labels   jsonb  NOT NULL,
    ends     timestamptz NOT NULL CHECK (ends >= '1970-01-01Z' AND ends < '9999-01-01Z'),
    PRIMARY KEY (service, instance)
);
CREATE INDEX instance_labels_ends ON instance_labels (ends);

-- Every change of them. Its revisions and those of history are numbers of one
-- counter, each in one of the two; what is left after a cut has no gaps.
CREATE TABLE instance_labels_history (
    revision bigint PRIMARY KEY,
    nonce    text   NOT NULL,
    service  text COLLATE "C" NOT NULL,
    instance text COLLATE "C" NOT NULL,
    before   jsonb,
    after    jsonb,
    who      text   NOT NULL,
    why      text   NOT NULL,
    at       timestamptz NOT NULL
);
CREATE INDEX instance_labels_history_instance ON instance_labels_history (service, instance, revision);
