-- Statements of cli/clock_mix.c.

-- name: clock_mix
SELECT count(*), sum(estimated), sum(estimated OR coalesce(adaptive, 0))
FROM (SELECT EXISTS (SELECT 1 FROM function_stats AS f WHERE f.session_id = s.session_id
    AND f.untimed_calls > 0) AS estimated,
    (SELECT min(iif(json_valid(p.document), p.document, '{}') ->> '$.calls.clock' IS 'adaptive'
    AND instr(p.not_applied, 'calls.clock') = 0) FROM policies AS p WHERE p.session_id = s.session_id) AS
    adaptive FROM (SELECT DISTINCT session_id FROM session_set(?1)) AS s)
