-- Sojourn store, version 20: what rules changed.

DROP VIEW rule_hits;
CREATE VIEW rule_hits AS -- values that met the condition of a rule, or that it changed
SELECT h.session_id, h.rule, h.call_id, h.position, h.kind, h.value, h.note,
       (SELECT o.value FROM arguments AS o
        WHERE o.session_id = h.session_id AND o.call_id = h.call_id AND o.position = h.position
          AND o.rule = '' LIMIT 1) AS old_value -- as it came; NULL: there is none, or nobody asked
FROM arguments AS h WHERE h.rule <> '';
