-- title: What takes the space
-- question: Which sessions take how much of the database, and may they be removed?
-- column: session_id | the session
-- column: device | name
-- column: bytes | bytes of its blocks
-- column: calls | calls that are stored
-- column: bytes_per_call | bytes of blocks per call
-- column: pinned | 1: retention leaves it alone
-- column: tags | JSON
-- example: sojourn sql --query storage
SELECT x.session_id, d.name AS device, x.stored_bytes AS bytes, x.stored_calls AS calls,
       CAST(x.stored_bytes AS REAL) / nullif(x.stored_calls, 0) AS bytes_per_call, x.pinned, x.tags
FROM sessions AS x JOIN devices AS d USING (device_id)
ORDER BY x.stored_bytes DESC
