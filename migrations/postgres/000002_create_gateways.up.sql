-- What each gateway told when it last asked for changes, for all replicas of
-- specialroutes to see. It can be lost: gateways tell it again.
CREATE TABLE gateways (
    id        text COLLATE "C" PRIMARY KEY,
    version   text        NOT NULL,
    revision  bigint      NOT NULL,
    nonce     text        NOT NULL,
    set_aside jsonb       NOT NULL,
    seen_at   timestamptz NOT NULL
);
