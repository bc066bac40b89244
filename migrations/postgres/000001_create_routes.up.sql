-- One row. n is the revision of the last change of any record, nonce is that
-- change's own; origin is the nonce of the database when it was empty. Every
-- writer takes this row's lock first, which puts all changes in one order.
CREATE TABLE counter (
    id     integer PRIMARY KEY CHECK (id = 1),
    n      bigint  NOT NULL CHECK (n >= 0),
    nonce  text    NOT NULL,
    origin text    NOT NULL
);
INSERT INTO counter (id, n, nonce, origin)
VALUES (1, 0, '', replace(gen_random_uuid()::text, '-', ''));
UPDATE counter SET nonce = origin;

-- The records of the moment. Names sort by their bytes, in any database.
-- The defaults are for rows that are put in by hand.
CREATE TABLE routes (
    service  text COLLATE "C" PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 0,
    nonce    text   NOT NULL DEFAULT '0',
    record   jsonb  NOT NULL
);

-- Every change there was: before is null where there was no record, after where
-- it was deleted. Its oldest part may be cut; what is left has no gaps.
CREATE TABLE history (
    revision bigint PRIMARY KEY,
    nonce    text   NOT NULL,
    service  text COLLATE "C" NOT NULL,
    before   jsonb,
    after    jsonb,
    who      text   NOT NULL,
    why      text   NOT NULL,
    at       timestamptz NOT NULL
);
CREATE INDEX history_service ON history (service, revision);
