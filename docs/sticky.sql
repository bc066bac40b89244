-- Which variant each key is in, computed by PostgreSQL with the formula of
-- docs/routing.md. It gives the same variant as every gateway.
--
-- $1 text: service      $2 text: salt, '' when the record has none
-- $3 text[]: keys       $4 text[]: variants in the order of the record
-- $5 bigint[]: their weights
--
-- NUL cannot be in a text of PostgreSQL, so the parts are joined as bytes. The 13
-- hexadecimal digits are the first 52 bits of the hash; 4503599627370496 is 2^52.
SELECT DISTINCT ON (key) key, variant
FROM (
    SELECT key, variant, position,
           -ln((('x' || lpad(substr(encode(sha256(
                   convert_to($1, 'UTF8') || '\x00'::bytea ||
                   convert_to($2, 'UTF8') || '\x00'::bytea ||
                   convert_to(key, 'UTF8') || '\x00'::bytea ||
                   convert_to(variant, 'UTF8')), 'hex'), 1, 13), 16, '0'))::bit(64)::bigint
               + 0.5::float8) / 4503599627370496::float8) / weight AS score
    FROM unnest($3::text[]) AS k (key)
    CROSS JOIN unnest($4::text[], $5::bigint[]) WITH ORDINALITY AS v (variant, weight, position)
    WHERE weight > 0
) AS scored
ORDER BY key, score, position;
