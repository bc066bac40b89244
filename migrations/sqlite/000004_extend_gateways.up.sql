-- Whether a gateway has ever asked from a place in this database's history, as one that
-- took an answer in, and when it was heard of first. Rows of versions that do not
-- tell have null, and count as those of gateways that follow.
ALTER TABLE gateways ADD COLUMN follows INTEGER;
ALTER TABLE gateways ADD COLUMN since TEXT;
