-- title: Never entered
-- question: Which hooked functions did the session never enter?
-- parameter: session = last | the session
-- column: module | file
-- column: function | name
-- column: size_bytes | bytes of code
-- example: sojourn sql --query never_entered
WITH inherited AS MATERIALIZED ( -- methods that were entered as those of a subclass
    SELECT DISTINCT class || coalesce('(' || category || ')', '') || ' ' || selector AS method
    FROM methods JOIN function_stats USING (function_id)
    WHERE session_id = :session AND receiver IS NOT NULL)
SELECT m.path AS module, f.name AS function, f.size_bytes
FROM session_modules AS sm
JOIN modules AS m USING (module_id)
JOIN functions AS f USING (module_id)
WHERE sm.session_id = :session
  AND NOT EXISTS (SELECT 1 FROM function_stats AS s
                  WHERE s.session_id = sm.session_id AND s.function_id = f.function_id)
  AND NOT EXISTS (SELECT 1 FROM call_paths AS p
                  WHERE p.session_id = sm.session_id AND p.function_id = f.function_id)
  AND NOT EXISTS (SELECT 1 FROM unhooked_functions AS u
                  WHERE u.session_id = sm.session_id AND u.function_id = f.function_id)
  AND NOT (f.name GLOB '[-+][[]*]' AND
           substr(f.name, 3, length(f.name) - 3) IN (SELECT method FROM inherited))
ORDER BY f.size_bytes DESC
