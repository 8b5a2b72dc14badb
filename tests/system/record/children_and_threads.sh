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

# Functions that the parent entered and a forked child returns from do not count as losses.
rm run.db
"$sojourn" record -q -o run.db --summary run.json -- bash -c "/bin/true; echo" >/dev/null
equal "losses of a child that returns" 0/0 \
    "$(query run.db "SELECT lost_calls || '/' || lost_events FROM sessions")"
grep -q '"inherited_exits": [1-9]' run.json || fail "no inherited exit was counted, so this tests nothing"
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

# At the size limit all functions are unhooked. Calls missing until then are counted, and what the program begins later
# is not recorded.
rm run.db
mkfifo resume
"$sojourn" record -q -o run.db --summary run.json --max-bytes 100k -- \
    sh -c '"$0" flood; read answer <resume; "$0" return' "$samples/ends" >/dev/null 2>err.txt &
recorder=$!
background="$background $recorder"
is_shell_left() {
    [ "$(sqlite3 run.db "SELECT disarm_reason FROM processes WHERE number = 1")" = "left running" ]
}
wait_for is_shell_left
"$sojourn" ps | grep "^ *$(pgrep -P "$recorder" -x sh) " | grep -q "or left" || fail "hooks stay"
echo >resume
wait "$recorder"
equal "exit code at the limit" 3 "$?"
grep -q "size limit was reached after .*unhooked" err.txt || fail "not reported: $(cat err.txt)"
grep -q '"full_after_ns": [1-9]' run.json || fail "not in $(cat run.json)"
equal "first and last program at the limit" "left running,left running" "$(query run.db \
    "SELECT group_concat(disarm_reason) FROM processes
        WHERE number IN (1, (SELECT max(number) FROM processes))")"
equal "threads of the last program" 0 "$(query run.db "SELECT count(*) FROM threads
    WHERE process_number = (SELECT max(number) FROM processes)")"
equal "calls of the first, stored and lost" 1 \
    "$(query run.db "SELECT stored_calls > 0 AND lost_calls > 0 FROM sessions")"
accounted run.db

# A child that outlives the program is named, marked and left without hooks. marks: prints how each process joined, and
# why its recording ended
marks() {
    query run.db "SELECT group_concat(how || ':' || disarm_reason) FROM
        (SELECT how, disarm_reason FROM processes ORDER BY number)"
}
rm run.db
"$sojourn" record -o run.db --summary run.json -- "$samples/ends" daemon >/dev/null 2>err.txt
equal "exit code with a daemon" 3 "$?"
wait_for test -s daemon.pid
daemon=$(cat daemon.pid)
background=$daemon
grep -q "1 process of the program is running .*: ends ($daemon);.*--until-all-end" err.txt ||
    fail "not reported: $(cat err.txt)"
grep -q "lost  *nothing, up to the end" err.txt || fail "silent: $(cat err.txt)"
grep -q "\"left\": \[{\"pid\": $daemon, \"name\": \"ends\"}\]" run.json ||
    fail "not in $(cat run.json)"
equal "marks of a daemon" "launched:,forked:left running" "$(marks)"
"$sojourn" ps | grep "^ *$daemon " | grep -q "left by a recorder" ||
    fail "hooks stay: $("$sojourn" ps | grep "^ *$daemon ")"
touch go
wait_for has_ended "$daemon"
accounted run.db

# record_all: records a daemon until all processes have ended; `go` ends the daemon
record_all() {
    rm -f run.db go daemon.pid
    "$sojourn" record -q -o run.db --until-all-end -- "$samples/ends" daemon >/dev/null 2>err.txt &
    recorder=$!
    background=$recorder
    wait_for test -s daemon.pid
    daemon=$(cat daemon.pid)
    background="$recorder $daemon"
}
record_all
touch go
wait "$recorder"
equal "exit code until all end" 3 "$?"
equal "said of a daemon that ended" "" "$(cat err.txt)"
equal "steps of both, to the end" 1100 "$(calls run.db ends_step)"
equal "marks of a daemon that ended" "launched:,forked:" "$(marks)"
accounted run.db

# A process that continues as a program that cannot be recorded has the same result.
rm run.db
"$sojourn" record -q -o run.db --until-all-end -- \
    sh -c '"$0" spin >/dev/null & echo $! >spin.pid' "$samples/ends_static" 2>err.txt
has_ended "$(cat spin.pid)" || fail "left while a static program ran: $(cat err.txt)"
equal "a static program's process" "forked:executed a program that is not recorded" \
    "$(query run.db "SELECT how || ':' || disarm_reason FROM processes WHERE number = 2")"
accounted run.db

# A signal to the recorder ends the recording, and the daemon keeps running.
record_all
wait_for sh -c "! pgrep -P $recorder"
kill -TERM "$recorder"
wait "$recorder"
equal "exit code after a signal" 3 "$?"
equal "steps until the signal" 1050 "$(calls run.db ends_step)"
equal "marks after a signal" "launched:,forked:left running" "$(marks)"
accounted run.db
touch go
wait_for has_ended "$daemon"
