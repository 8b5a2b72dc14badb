-- Sessions whose state at the cluster is not the one here (forwarder.c). ?1 is the target.

-- part: content
-- The state of a session, as far as the cluster stores it. A session whose state differs from the sent one
-- is sent again. The text begins with the version of the forwarded format. It must fit in CONTENT_BYTES.
-- Name and tags are therefore cut to 2,000 bytes; the numbers take about 200 more, and the list of tables
-- ?5 follows.
printf('5 %s %d %d %d %d %d %d ', s.state, s.stored_blocks, s.stored_bytes, s.stored_calls, s.lost_calls,
    s.folded_calls, coalesce((SELECT max(symbol_file_id) FROM symbol_files JOIN modules USING (build_id)
    JOIN session_modules USING (module_id) WHERE session_id = s.session_id), 0)) ||
    CAST(substr(CAST(coalesce(s.name, '') || ' ' || coalesce(s.tags, '') AS BLOB), 1, 2000) AS TEXT) ||
    iif(?5 = '[]', '', ' without ' || ?5)

-- part: is_ready
s.state NOT IN ('recording', 'removing') AND s.aggregates_valid_before_block IS NULL AND s.quarantine_reason
    IS NULL

-- part: given
forwarded_sessions AS f ON f.target = ?1 AND f.session_uuid = s.uuid

-- part: gone
FROM forwarded_sessions AS f WHERE f.target = ?1 AND f.content <> '' AND NOT EXISTS (SELECT 1 FROM sessions
    AS s WHERE s.uuid = f.session_uuid AND s.state <> 'removing')

-- part: is_mine(uuid)
-- True for the sessions of this forwarder's share; several forwarders may run at the same time.
unicode(substr({uuid}, -1)) % ?3 = ?4

-- name: owed_sessions
-- The session_id is 0 if the session was removed.
SELECT session_id, uuid, content, version, started_realtime_ns FROM (SELECT s.session_id, s.uuid, {content}
    AS content, f.content AS given, f.version, s.started_realtime_ns FROM sessions AS s LEFT JOIN {given}
    WHERE {is_ready} AND {is_mine(hex(s.uuid))}) WHERE content IS NOT given UNION ALL SELECT 0,
    f.session_uuid, '', f.version, 0 {gone} AND {is_mine(hex(f.session_uuid))} LIMIT ?2

-- name: count_changed
SELECT count(*) FROM (SELECT {content} AS content, f.content AS given FROM sessions AS s LEFT JOIN {given}
    WHERE {is_ready}) WHERE content IS NOT given

-- name: count_gone
SELECT count(*) {gone}

-- name: count_unready
SELECT count(*) FROM sessions AS s WHERE s.state <> 'removing' AND NOT ({is_ready})

-- name: count_forwarded
SELECT count(*), total(rows), total(bytes), max(forwarded_realtime_ns) FROM forwarded_sessions WHERE target
    = ?1 AND content <> ''

-- name: left_out
-- Searches bytes, because a name need not be UTF-8.
SELECT iif(place = 0, '', substr(content, place + length(' without '))) FROM (SELECT content, instr(content,
    CAST(' without ["' AS BLOB)) AS place FROM (SELECT CAST(content AS BLOB) AS content FROM
    forwarded_sessions WHERE target = ?1 AND content <> '' ORDER BY forwarded_realtime_ns DESC LIMIT 1))
