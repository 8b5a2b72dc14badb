# A killed recorder loses only what it had not read into blocks, and reports it. The next start finishes its session
# from shared memory, and everything is stored once.
. "$(dirname "$0")/../support/lib.sh"

# killed CALLS: records `ends wait` into run.db and kills the recorder when more than CALLS calls are stored.
killed() {
    rm -f out.txt # an earlier command wrote it, and the shell that empties it may be late
    "$sojourn" record -q -o "$scratch/run.db" -- "$samples/ends" wait >out.txt &
    recorder=$!
    background="$background $recorder"
    wait_for grep -q . out.txt
    wait_for stores run.db "$1"
    "$sojourn" sessions run.db 2>err.txt >/dev/null
    equal "said of a living recorder" "" "$(cat err.txt)"
    if [ "$1" -gt 0 ]; then
        "$sojourn" report run.db >live.txt
        grep -Eq "; [1-4] open since [0-9.]+ [mun]?s, not counted yet" live.txt || fail "report of a recording: $(cat live.txt)"
    fi
    app=$(pgrep -P "$recorder" -x ends)
    background="$background $app"
    kill -9 "$recorder"
    wait "$recorder" 2>/dev/null
}

# consistent STATE: the stored session agrees with what recovery reports as sent, and nothing is stored twice.
consistent() {
    equal "state" "$1" "$(query run.db "SELECT state FROM sessions")"
    equal "calls sent = stored + lost" 0 "$(query run.db "SELECT count(*) FROM sessions
        WHERE sent_calls != stored_calls + device_lost_calls OR lost_calls != device_lost_calls
           OR lost_events != device_lost_events OR sent_blocks != stored_blocks")"
    equal "blocks stored twice" 0 "$(query run.db "SELECT count(*) FROM (SELECT 1 FROM blocks
        GROUP BY stream_id, kind, first_event HAVING count(*) > 1)")"
    equal "threads" 1 "$(query run.db "SELECT count(*) FROM threads")"
    equal "program of the process" ends \
        "$(query run.db "SELECT replace(executable, rtrim(executable,
            replace(executable, '/', '')), '') FROM processes")"
}

# 1. The program is dead, too. Everything that it recorded is in its arena.
killed 3000
kill -9 "$app"
wait_for has_ended "$app"
for command in sessions report; do
    "$sojourn" "$command" run.db >/dev/null 2>err.txt
    grep -q "session 1 is not recorded any more, .*sojourn flush" err.txt ||
        fail "$command does not tell: $(cat err.txt)"
done
"$sojourn" flush >out.txt || fail "flush: $(cat out.txt)"
grep -q "1 session finished whose recorder was killed" out.txt || fail "said: $(cat out.txt)"
grep -q "1 session delivered, 0 kept" out.txt || fail "said: $(cat out.txt)"
consistent lost
"$sojourn" sessions run.db >/dev/null 2>err.txt
equal "said of a finished session" "" "$(cat err.txt)"
[ "$(query run.db "SELECT max(number) FROM streams")" -gt 1 ] || fail "nothing was recovered"
equal "what is left in the runtime directory" "" "$(ls "$XDG_RUNTIME_DIR/sojourn")"
equal "what is left in the spool" "" "$(ls "$XDG_STATE_HOME/sojourn/spool")"

equal "calls of main" 1 "$(calls run.db main)"
equal "calls without a known end" 0 "$(answer run.db "SELECT count(*) FROM calls WHERE end_ns IS NULL")"
equal "figures that contradict each other" "" \
    "$(answer run.db "$(cat "$tests/system/support/contradictions.sql")" | head -3)"

# 2. The program keeps running. The next `record` finishes the session, `flush` delivers it.
rm -f run.db
killed 1000
"$sojourn" record -o other.db -- "$samples/ends" return >/dev/null 2>err.txt
grep -q "1 earlier recording was cut short; .* delivers what it holds" err.txt || fail "said: $(cat err.txt)"
"$sojourn" flush >out.txt || fail "flush: $(cat out.txt)"
consistent lost
kill -9 "$app"
accounted other.db

# 3. The recorder is killed repeatedly. Sums and identities hold at any moment of the kill.
for calls in -1 0 1000 2000 4000; do
    rm -f run.db
    killed "$calls"
    kill -9 "$app"
    "$sojourn" flush >out.txt || fail "flush: $(cat out.txt)"
    consistent lost
done

# 4. The next recording into the same file settles the session, without `flush`.
rm -f run.db
killed 1000
kill -9 "$app"
wait_for has_ended "$app"
"$sojourn" record -o run.db -- "$samples/ends" return >/dev/null 2>err.txt
grep -q "1 earlier recording that was cut short is in run.db now" err.txt || fail "said: $(cat err.txt)"
equal "states after the next recording" "lost completed" \
    "$(query run.db "SELECT state FROM sessions ORDER BY session_id" | tr '\n' ' ' | sed 's/ $//')"
accounted run.db
