-- Statements of fleet/fleet_policies.c.

-- name: fleet_policies_rules
-- Precedence: a device's rule beats a tag's rule, which beats a rule for all. Then a rule for the app
-- beats one for every program. Then the later rule wins.
SELECT r.rule_id, r.app, r.document
FROM policy_rules r, devices d
WHERE d.device_id = ?1
AND r.ended_realtime_ns IS NULL
AND (r.scope = 'all' OR (r.scope = 'device' AND r.subject = CAST(d.device_id AS TEXT)) OR (r.scope = 'tag'
    AND EXISTS (SELECT 1 FROM json_each(d.tags) AS t WHERE t.key = r.subject
    OR t.key || '=' || CAST(t.value AS TEXT) = r.subject)))
ORDER BY CASE r.scope WHEN 'device' THEN 0 WHEN 'tag' THEN 1 ELSE 2 END, r.app = '', r.rule_id DESC

-- name: fleet_policies_is_wanted
SELECT coalesce(?2, (SELECT status ->> 'policies' FROM device_status WHERE device_id = ?1), '') <> ?3
    AND NOT EXISTS (SELECT 1 FROM commands WHERE device_id = ?1 AND kind = 'policies' AND state IN ('queued',
    'sent') AND arguments ->> 'digest' = ?3)
