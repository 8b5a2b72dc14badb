-- title: Functions left alone
-- question: Which functions were not instrumented, and why?
-- parameter: session = last | the session
-- column: reason | why
-- column: functions | how many
-- column: bytes | bytes of their code
-- column: example | one of them
-- example: sojourn sql --cluster URL --query unhooked
SELECT reason, functions, bytes, example
FROM unhooked
WHERE session = :session
ORDER BY functions DESC
