-- title: Functions left alone
-- question: Which functions were not instrumented, and why?
-- parameter: session = last | the session
-- column: reason | why
-- column: functions | how many
-- column: bytes | bytes of their code
-- column: example | one of them
-- example: sojourn sql --query unhooked
SELECT reason, count(*) AS functions, sum(size_bytes) AS bytes, min(name) AS example
FROM unhooked_functions
WHERE session_id = :session
GROUP BY reason
ORDER BY functions DESC
