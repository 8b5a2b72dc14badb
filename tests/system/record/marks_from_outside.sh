# `sojourn mark` reaches the recording that is running, and no other.
. "$(dirname "$0")/../support/lib.sh"

"$sojourn" record -q -o one.db -- "$samples/ends" wait >/dev/null &
first=$!
background=$first
wait_for "$sojourn" mark begin "a phase"
"$sojourn" mark end "a phase" || fail "the end was not taken"

"$sojourn" record -q -o two.db -- "$samples/ends" wait >two.txt &
second=$!
background="$first $second"
wait_for sh -c '[ "$(ls run/sojourn/*/control | wc -l)" -eq 2 ]'
wait_for grep -q . two.txt
"$sojourn" mark begin which 2>err.txt
equal "exit code when two go on" 2 "$?"
grep -q "2 recordings are running" err.txt || fail "two recordings: $(cat err.txt)"
equal "sessions listed" 2 "$(grep -c '^  [0-9a-f]\{32\}$' err.txt)"
"$sojourn" mark --session 0123456789abcdef begin which 2>err.txt
equal "exit code of an unknown session" 3 "$?"
for session in $(grep '^  [0-9a-f]' err.txt) $(ls run/sojourn); do
    "$sojourn" mark --session "$session" begin both || fail "$session was not marked"
done

kill -TERM $first $second
wait $first
wait $second
equal "marks of the first" "a phase 0,a phase 1,both 0" "$(query one.db "SELECT group_concat(m)
    FROM (SELECT name || ' ' || is_end AS m FROM marks WHERE source = 'cli' ORDER BY number)")"
equal "marks of the second" "both" "$(query two.db "SELECT group_concat(name) FROM marks")"
equal "marks in their order and within the session" 1 "$(query one.db "SELECT
    max(at_ns) FILTER (WHERE is_end) > min(at_ns) AND min(at_ns) > 0 FROM marks")"
"$sojourn" mark begin late 2>err.txt
equal "exit code without a recording" 3 "$?"
accounted one.db
accounted two.db

# A mark may come as soon as there is a socket for it, but no mark lies before the session's start.
strace -f -y -o order.txt -e trace=bind,pwrite64 "$sojourn" record -q -o three.db -- true || fail "strace: $?"
equal "what comes first, the session's first frame or the socket" ".frames>" \
    "$(grep -oE '/control"|\.frames>' order.txt | head -1)"
