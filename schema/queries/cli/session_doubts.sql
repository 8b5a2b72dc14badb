-- Statements of cli/session_doubts.c. ?1 is the session.

-- part: counted_json(column, one, many)
-- A number from a report's payload, followed by its noun.
CAST({column} AS INTEGER) || iif(CAST({column} AS INTEGER) = 1, {one}, {many})

-- part: not_recorded(session_id)
-- A sentence about the parts of the program that the recorder could not record, by its last such report.
-- NULL: the recorder sent no such report.
(SELECT {counted_json(r.payload ->> 'processes', ' process', ' processes')} || ' and ' ||
    {counted_json(r.payload ->> 'modules', ' module', ' modules')} ||
    ' could not be recorded, so their calls are missing; the first: ' || (r.payload ->> 'first')
    FROM reports AS r WHERE r.session_id = {session_id} AND r.monitor = 'recorder'
    AND r.kind = 'not_recorded' AND json_valid(r.payload) ORDER BY r.number DESC LIMIT 1)

-- name: session_doubts
SELECT quarantine_reason, folded_paths, folded_calls, iif(state = 'recording', uuid, NULL),
    {not_recorded(session_id)}
FROM sessions
WHERE session_id = ?1
