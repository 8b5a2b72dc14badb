-- Statements of store/verify.c.

-- name: verify_sums
-- Compares the aggregates with the blocks. Aggregates count all blocks, or only unmarked ones if they
-- were recomputed since.
WITH stored AS (SELECT st.session_id, count(*) AS blocks, sum(b.quarantined IS NULL) AS sound,
    total(iif(b.kind = 1, b.call_count, 0)) AS calls, total(iif(b.kind = 1 AND b.quarantined IS NULL,
    b.call_count, 0)) AS sound_calls FROM streams st JOIN blocks b USING (stream_id) GROUP BY st.session_id),
    counted AS (SELECT s.session_id, s.stored_blocks, s.stored_calls - coalesce((SELECT total(calls)
    FROM profiles p WHERE p.session_id = s.session_id), 0) AS stored_calls, coalesce(t.blocks, 0) AS blocks,
    coalesce(t.calls, 0) AS calls, coalesce(t.sound, 0) AS sound, coalesce(t.sound_calls, 0) AS sound_calls
    FROM sessions s LEFT JOIN stored t USING (session_id) WHERE s.aggregates_valid_before_block IS NULL
    AND s.state <> 'removing')
SELECT session_id, stored_blocks, stored_calls, blocks, calls,
    (stored_blocks = blocks AND stored_calls = calls) OR (stored_blocks = sound
    AND stored_calls = sound_calls), coalesce((SELECT total(calls) FROM call_paths c
    WHERE c.session_id = counted.session_id), 0), coalesce((SELECT total(calls) FROM function_stats f
    WHERE f.session_id = counted.session_id), 0), coalesce((SELECT total(calls) FROM call_edges e
    WHERE e.session_id = counted.session_id), 0), calls > 0 AND NOT EXISTS (SELECT 1 FROM timeline
    JOIN streams st USING (stream_id) WHERE st.session_id = counted.session_id), (SELECT count(*)
    FROM function_stats f WHERE f.session_id = counted.session_id AND f.untimed_calls > f.calls)
FROM counted
ORDER BY 1

-- name: verify_missing
SELECT session_id, max(missing_calls, coalesce(sent_calls - stored_calls - lost_calls + missing_calls,
    0)) AS calls, max(missing_blocks, coalesce(sent_blocks - stored_blocks, 0)) AS blocks
FROM sessions
WHERE state NOT IN ('recording', 'removing')
AND aggregates_valid_before_block IS NULL
AND (calls > 0 OR blocks > 0)
ORDER BY 1
