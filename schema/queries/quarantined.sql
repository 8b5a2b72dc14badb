-- title: Damaged blocks
-- question: Which blocks cannot be read, why, and how many calls lie in them?
-- column: block_id | the block
-- column: session_id | its session
-- column: stream_id | its stream
-- column: calls | calls in it
-- column: bytes | size; NULL: it lies in a file outside of the database
-- column: why | what is wrong
-- example: sojourn sql --query quarantined
SELECT b.block_id, s.session_id, b.stream_id, b.call_count AS calls, length(b.data) AS bytes,
       b.quarantined AS why
FROM blocks AS b JOIN streams AS s USING (stream_id)
WHERE b.quarantined IS NOT NULL
ORDER BY b.block_id
