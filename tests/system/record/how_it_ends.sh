# However a program ends, its exit code is passed on, its calls are exact and its state is stored.
. "$(dirname "$0")/../support/lib.sh"

# ends HOW EXIT STATE OPEN: 1,000 steps, one work, and OPEN calls left open
ends() {
    rm -f run.db
    "$sojourn" record -q -o run.db -- "$samples/ends" "$1" >out.txt
    equal "exit code after $1" "$2" "$?"
    equal "output after $1" 1501500 "$(head -1 out.txt)"
    equal "state after $1" "$3" "$(query run.db "SELECT state FROM sessions")"
    equal "steps after $1" 1000 "$(calls run.db ends_step)"
    equal "open calls after $1" "$4" "$(query run.db "SELECT coalesce(group_concat(name), '') FROM
        (SELECT name FROM open_calls JOIN functions USING (function_id) ORDER BY depth)")"
    equal "open in the tree after $1" "$4" "$("$sojourn" tree --all run.db | sed -n \
        's/.* 1 open  *//p' | paste -s -d ,)"
    equal "open in the report after $1" "$(printf %s "$4" | tr , '\n' | sort | paste -s -d ,)" \
        "$("$sojourn" report --csv --columns function,open run.db | sed -n 's/,1$//p' | sort | paste -s -d ,)"
    # hidden calls are counted
    if [ -n "$4" ]; then
        "$sojourn" tree --depth 0 run.db | grep -q 'hidden: .* calls, 1 open,' ||
            fail "open calls left out after $1: $("$sojourn" tree --depth 0 run.db)"
    fi
    # open calls are counted, up to the end of their thread
    equal "calls of main after $1" 1 "$(calls run.db main)"
    equal "open calls that do not end with their thread after $1" 0 "$(answer run.db "SELECT count(*)
        FROM calls JOIN threads USING (thread_id) JOIN sessions USING (session_id) WHERE ending = 'open'
        AND (ended_ns - end_ns) * tick_ns_denominator / tick_ns_numerator NOT BETWEEN -1 AND clock_step")"
    equal "time of main after $1" 1 "$(answer run.db "SELECT count(*) FROM function_stats AS s
        JOIN functions USING (function_id) JOIN calls AS c USING (function_id)
        WHERE name = 'main' AND s.total_ns BETWEEN c.duration_ns - 1 AND c.duration_ns + 1")"
    equal "exit stored after $1" "$5" \
        "$(query run.db "SELECT coalesce(exit_code, '') || '/' || coalesce(exit_signal, '')
            FROM processes")"
    accounted run.db
}

ends return 3 completed "" 3/
ends exit 7 completed main,ends_die 7/
ends segv 139 crashed main,ends_die /11
ends abort 134 crashed main,ends_die /6
ends kill 137 killed main,ends_die /9

# The program is killed from outside, during its work.
rm -f run.db
"$sojourn" record -q -o run.db -- "$samples/ends" wait >out.txt &
recorder=$!
background=$recorder
wait_for grep -q . out.txt
wait_for stores run.db 1000
kill -9 "$(pgrep -P "$recorder" -x ends)"
wait "$recorder"
equal "exit code after kill -9" 137 "$?"
equal "state after kill -9" killed "$(query run.db "SELECT state FROM sessions")"
[ "$(calls run.db ends_step)" -gt 1000 ] || fail "calls before kill -9 are missing"
accounted run.db

# The sums of this session cannot be made. Its calls are stored, and the summary and queries say so.
rm -f run.db
"$sojourn" record -q -o run.db -- "$samples/ends" return >out.txt
query run.db "CREATE TRIGGER rotten BEFORE INSERT ON call_paths WHEN new.session_id = 2
    BEGIN SELECT RAISE(ABORT, 'no paths here'); END"
"$sojourn" record --summary summary.json -o run.db -- "$samples/ends" return >out.txt 2>err.txt
equal "exit code of a quarantined session" 3 "$?"
because=$(query run.db "SELECT quarantine_reason FROM sessions WHERE session_id = 2")
equal "reason stored" "the database refused: no paths here" "$because"
[ "$(query run.db "SELECT sum(call_count) FROM streams JOIN blocks USING (stream_id)
    WHERE session_id = 2")" -gt 1000 ] || fail "calls of a quarantined session are missing"
grep -q "has no sums .*: $because; .*--rebuild" err.txt || fail "not reported: $(cat err.txt)"
grep -q "\"quarantine_reason\": \"$because\"" summary.json || fail "not in $(cat summary.json)"
grep -q '"quarantine_remedy": ".*--rebuild' summary.json || fail "no next step in $(cat summary.json)"
"$sojourn" tree run.db >out.txt 2>err.txt || fail "tree: $(cat err.txt)"
grep -q "warning: .* lack calls: $because" err.txt || fail "tree does not warn: $(cat err.txt)"
query run.db "DROP TRIGGER rotten"
"$sojourn" verify --rebuild 2 run.db >out.txt || fail "verify: $(cat out.txt)"
"$sojourn" tree run.db >out.txt 2>err.txt || fail "tree: $(cat err.txt)"
equal "warnings after the rebuild" "" "$(cat err.txt)"
equal "sums after the rebuild" 2000 "$(calls run.db ends_step)"

# One call takes little space.
rm -f run.db
"$sojourn" record -q -o run.db -- "$samples/ends" return >out.txt
[ "$(stat -c %s run.db)" -lt 118784 ] || fail "a short recording takes $(stat -c %s run.db) bytes"
[ "$(calls run.db ends_step)" = 1000 ] || fail "calls of a packed file are missing"

# The rarest call paths of this session were folded. The summary and queries say so.
rm -f run.db
"$sojourn" record -q -o run.db -- "$samples/ends" return >out.txt
query run.db "CREATE TRIGGER folded AFTER UPDATE OF stored_blocks ON sessions
    BEGIN UPDATE sessions SET folded_paths = 7, folded_calls = 21 WHERE folded_paths = 0; END"
"$sojourn" record --summary summary.json -o run.db -- "$samples/ends" return >out.txt 2>err.txt
grep -q "the 7 rarest, with 21 calls, were folded" err.txt || fail "not reported: $(cat err.txt)"
grep -q '"folded_calls": 21' summary.json || fail "not in $(cat summary.json)"
"$sojourn" tree run.db >out.txt 2>err.txt || fail "tree: $(cat err.txt)"
grep -q "note: .* the 7 rarest, with 21 calls, were folded" err.txt || fail "not reported: $(cat err.txt)"
"$sojourn" sessions run.db | grep -q '21' || fail "sessions does not count the folded calls"
"$sojourn" check --baseline 1 2 run.db >out.txt 2>err.txt
grep -q "note: .* of the checked sessions are on rare call paths" err.txt || fail "check: $(cat err.txt)"
