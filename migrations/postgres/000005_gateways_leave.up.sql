-- When a gateway last said that it ends. It has left unless it was seen after that: versions
-- that do not know of it move seen_at alone.
ALTER TABLE gateways ADD COLUMN left_at timestamptz;
