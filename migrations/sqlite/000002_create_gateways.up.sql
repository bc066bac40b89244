-- What each gateway told when it last asked for changes. It can be lost: gateways
-- tell it again.
CREATE TABLE gateways (
    id        TEXT    PRIMARY KEY NOT NULL,
    version   TEXT    NOT NULL,
    revision  INTEGER NOT NULL,
    nonce     TEXT    NOT NULL,
    set_aside TEXT    NOT NULL CHECK (json_valid(set_aside)),
    seen_at   TEXT    NOT NULL
) STRICT;
