# Threads, forked children and programs run by them join the session; nothing is lost.
. "$(dirname "$0")/../support/lib.sh"

"$sojourn" record -q -o run.db -- "$samples/ends" threads >/dev/null
equal "exit code" 3 "$?"
equal "threads" 21 "$(query run.db "SELECT count(*) FROM threads")"
equal "steps of all threads" 3000 "$(calls run.db ends_step)"
equal "main threads" 1 "$(query run.db "SELECT sum(is_main) FROM threads")"
accounted run.db

rm run.db
"$sojourn" record -q -o run.db -- "$samples/ends" fork >/dev/null
equal "exit code with a child" 3 "$?"
equal "processes" "launched,forked" \
    "$(query run.db "SELECT group_concat(how) FROM (SELECT how FROM processes ORDER BY number)")"
equal "parent of the child" 1 "$(query run.db "SELECT parent_number FROM processes WHERE number = 2")"
equal "steps of both" 1050 "$(calls run.db ends_step)"
accounted run.db

rm run.db
"$sojourn" record -q -o run.db -- bash -c "'$samples/ends' return; true" >/dev/null
equal "exit code of the shell" 0 "$?"
accounted run.db

# A flood with one small chunk and no waiting: losses are counted to the call.
rm run.db
"$sojourn" record -q -o run.db --buffer 1 --when-full drop --summary run.json -- \
    "$samples/ends" flood >/dev/null
[ "$(query run.db "SELECT lost_calls FROM sessions")" -gt 0 ] || fail "nothing was lost: no test"
accounted run.db
# main, die, 2 works, 3,001,000 steps
equal "calls made = stored + lost" 3001004 \
    "$(query run.db "SELECT stored_calls + lost_calls FROM sessions")"

# At the size limit recording ends, and what is missing is counted.
rm run.db
"$sojourn" record -q -o run.db --max-bytes 100k -- "$samples/ends" flood >/dev/null 2>err.txt
grep -q "size limit" err.txt || fail "the limit was not told: $(cat err.txt)"
equal "calls made = stored + lost at the limit" 3001004 \
    "$(query run.db "SELECT stored_calls + lost_calls FROM sessions")"
accounted run.db
