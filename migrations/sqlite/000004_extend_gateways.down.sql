ALTER TABLE gateways DROP COLUMN since;
ALTER TABLE gateways DROP COLUMN follows;
