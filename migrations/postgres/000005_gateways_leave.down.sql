ALTER TABLE gateways DROP COLUMN left_at;
