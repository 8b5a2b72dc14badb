-- Statements of fleet/api_tokens.c. ?1 is the present time.

-- part: token_is_valid
revoked_realtime_ns IS NULL AND coalesce(expires_realtime_ns > ?1, 1)

-- name: api_token_add
-- Adds a token. Replaces one of the same name unless that is valid.
INSERT INTO api_tokens (created_realtime_ns, name, token_hash, role, expires_realtime_ns)
VALUES (?1, ?2, ?3, ?4, nullif(?5, 0))
ON CONFLICT (name) DO UPDATE SET created_realtime_ns = ?1, token_hash = ?3, role = ?4,
    expires_realtime_ns = nullif(?5, 0), revoked_realtime_ns = NULL
WHERE NOT ({token_is_valid})

-- name: api_token_revoke
UPDATE api_tokens SET revoked_realtime_ns = ?1 WHERE name = ?2 AND {token_is_valid}

-- name: api_tokens_valid
SELECT token_id, name, role, token_hash FROM api_tokens WHERE {token_is_valid}
