# Helpers of the system tests. Each test is a shell script that is given the build directory; every
# check that does not hold ends it with a message.
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

# answer FILE SQL: as query, of single calls, too
answer() {
    "$sojourn" sql --csv "$2" "$1" >answer.csv || fail "sojourn could not run: $2"
    sed 1d answer.csv
}

# accounted FILE: sent = stored + counted lost, in every session, by both parties' own figures, and
# nothing is left in the spool or in the runtime directory.
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

# calls FILE FUNCTION: how often it was called and ended
calls() {
    query "$1" "SELECT coalesce(sum(calls), 0) FROM function_stats JOIN functions
        USING (function_id) WHERE name = '$2'"
}

# stores FILE CALLS: whether a recording that goes on has stored more calls than that
stores() {
    [ "$(sqlite3 "$1" "SELECT coalesce(sum(stored_calls), 0) > $2 FROM sessions")" = 1 ]
}

# has_ended PID: whether a process is gone, or a zombie that nobody waits for
has_ended() {
    ! grep -q '^State:[[:space:]]*[^Z[:space:]]' "/proc/$1/status" 2>/dev/null
}

# wait_for COMMAND...: until the command succeeds, five minutes at most
wait_for() {
    tries=6000
    while ! "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || fail "waited in vain for: $*"
        sleep 0.05
    done
}
