# Helpers of the system tests. Each test is a shell script that gets the build directory. A check that fails ends the
# test with a message.
set -u

build=$(cd "$1" && pwd)
sojourn=$build/bin/sojourn
sojournd=$build/bin/sojournd
samples=$build/tests/samples
tests=$(cd "$(dirname "$0")" && pwd)
tests=${tests%/tests/*}/tests
scratch=$(mktemp -d)
export XDG_STATE_HOME=$scratch/state XDG_CACHE_HOME=$scratch/cache
export XDG_RUNTIME_DIR=$scratch/run
mkdir -p "$XDG_RUNTIME_DIR"
background=
trap 'for pid in $background; do kill -9 "$pid" 2>/dev/null; done; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# equal WHAT EXPECTED ACTUAL
equal() {
    [ "$2" = "$3" ] || fail "$1: expected \"$2\", got \"$3\""
}

# query FILE SQL
query() {
    sqlite3 "$1" "$2" || fail "sqlite3 could not run: $2"
}

# answer FILE SQL: like query, and single calls can be read, too
answer() {
    "$sojourn" sql --csv "$2" "$1" >answer.csv || fail "sojourn could not run: $2"
    sed 1d answer.csv
}

# accounted FILE: checks sent = stored + counted lost in every session, by the figures of both parties. Also checks that the
# spool and the runtime directory are empty.
accounted() {
    equal "sessions that ended in $1" 0 \
        "$(query "$1" "SELECT count(*) FROM sessions WHERE sent_calls IS NULL")"
    equal "calls sent = stored + lost in $1" 0 "$(query "$1" "SELECT count(*) FROM sessions
        WHERE sent_calls != stored_calls + device_lost_calls OR lost_calls != device_lost_calls
           OR lost_events != device_lost_events OR sent_blocks != stored_blocks")"
    equal "calls in blocks and in streams of $1" "$(query "$1" "SELECT sum(call_count) FROM blocks")" \
        "$(query "$1" "SELECT sum(stored_calls) FROM sessions")"
    equal "losses counted by gaps of $1" "$(query "$1" "SELECT sum(lost_calls) FROM sessions")" \
        "$(query "$1" "SELECT coalesce(sum(calls), 0) FROM gaps")"
    equal "sums that contradict others in $1" "" \
        "$(answer "$1" "$(cat "$tests/system/support/contradictions.sql")" | head -3)"
    equal "leftovers in the spool" "" "$(ls "$XDG_STATE_HOME/sojourn/spool")"
    equal "leftovers of the session" "" "$(ls "$XDG_RUNTIME_DIR/sojourn")"
}

# calls FILE FUNCTION: prints how often the function was called and ended
calls() {
    query "$1" "SELECT coalesce(sum(calls), 0) FROM function_stats JOIN functions
        USING (function_id) WHERE name = '$2'"
}

# stores FILE CALLS: true if a running recording has stored more calls than that
stores() {
    [ "$(sqlite3 "$1" "SELECT coalesce(sum(stored_calls), 0) > $2 FROM sessions")" = 1 ]
}

# has_ended PID: true if a process is gone or a zombie that its parent does not wait for
has_ended() {
    ! grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$1/status" 2>/dev/null
}

# wait_for COMMAND...: waits until the command succeeds, five minutes at most
wait_for() {
    tries=6000
    while ! "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || fail "waited in vain for: $*"
        sleep 0.05
    done
}
