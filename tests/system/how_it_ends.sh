# However a program ends, its exit is handed on, its calls are exact and its state is told.
. "$(dirname "$0")/lib.sh"

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

# Killed from outside, in the middle of its work.
rm -f run.db
"$sojourn" record -q -o run.db -- "$samples/ends" wait >out.txt &
recorder=$!
background=$recorder
wait_for 10 pgrep -P "$recorder" -x ends
wait_for 10 grep -q . out.txt
sleep 0.3
kill -9 "$(pgrep -P "$recorder" -x ends)"
wait "$recorder"
equal "exit code after kill -9" 137 "$?"
equal "state after kill -9" killed "$(query run.db "SELECT state FROM sessions")"
[ "$(calls run.db ends_step)" -gt 1000 ] || fail "calls before kill -9 are missing"
accounted run.db
