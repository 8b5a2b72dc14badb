# A collector that dies and restarts gets everything once. A collector that never answers delays no program.
. "$(dirname "$0")/../support/lib.sh"

url=ipc://$scratch/collector.ipc

start_server() {
    "$sojournd" --listen "$url" --database lab.db 2>>server.txt &
    server=$!
    background="$background $server"
    wait_for test -S collector.ipc
}

start_server
"$sojourn" record -q --collector "$url" --wait 30 -- "$samples/ends" wait >out.txt &
recorder=$!
background="$background $recorder"
wait_for grep -q . out.txt
stored=0
# spools_more: true if the spool has grown by frames that no collector has accepted
spools_more() {
    [ "$(du -sb "$XDG_STATE_HOME/sojourn/spool" | cut -f 1)" -gt "$1" ]
}
for round in 1 2 3; do
    wait_for stores lab.db "$stored"
    kill -9 "$server"
    wait "$server" 2>/dev/null
    stored=$(query lab.db "SELECT sum(stored_calls) FROM sessions")
    wait_for spools_more "$(du -sb "$XDG_STATE_HOME/sojourn/spool" | cut -f 1)"
    start_server
done
wait_for stores lab.db "$stored"
kill "$recorder"
wait "$recorder"
equal "exit code of the program" 143 "$?"
kill "$server"
wait "$server"
equal "exit code of the server" 0 "$?"
equal "sessions" 1 "$(query lab.db "SELECT count(*) FROM sessions")"
equal "blocks stored twice" 0 "$(query lab.db "SELECT count(*) FROM (SELECT 1 FROM blocks
    GROUP BY stream_id, kind, first_event HAVING count(*) > 1)")"
accounted lab.db

# Without a server the program runs, the frames stay, and `flush` delivers them later, once.
rm -f collector.ipc
"$sojourn" record -q --collector "$url" --wait 1 -- "$samples/ends" return >/dev/null 2>err.txt
equal "exit code without a server" 3 "$?"
grep -q "sojourn flush" err.txt || fail "the message does not say what to do: $(cat err.txt)"
"$sojourn" flush --wait 1 2>/dev/null
equal "exit code of a flush without a server" 1 "$?"
start_server
"$sojourn" flush >out.txt || fail "flush: $(cat out.txt)"
equal "what flush said" "1 session delivered, 0 kept, 0 being recorded" "$(cat out.txt)"
"$sojourn" flush >out.txt
equal "what the second flush said" "0 sessions delivered, 0 kept, 0 being recorded" "$(cat out.txt)"
kill "$server"
wait "$server"
equal "sessions after the flush" 2 "$(query lab.db "SELECT count(*) FROM sessions")"
accounted lab.db
