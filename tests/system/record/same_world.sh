# A recorded program has the same environment as without Sojourn: output, input, variables, arguments, exit code,
# descriptors, working directory, signal mask and process group.
. "$(dirname "$0")/../support/lib.sh"

# same NAME COMMAND...: checks that both outputs have the same bytes, and that the exit code is the same
same() {
    name=$1
    shift
    "$@" <"$scratch/in.txt" >plain.out 2>plain.err
    plain=$?
    rm -f run.db
    "$sojourn" record -q -o run.db -- "$@" <"$scratch/in.txt" >rec.out 2>rec.err
    equal "exit code of $name" "$plain" "$?"
    cmp plain.out rec.out || fail "output of $name differs"
    cmp plain.err rec.err || fail "errors of $name differ"
    [ "$(query run.db "SELECT stored_calls FROM sessions")" -gt 0 ] || fail "no calls of $name"
    accounted run.db
}

seq 1 2000 >in.txt
export SAMPLE="a b"
same environment bash -c 'env | grep -v "^_=\|^SHLVL=" | sort; echo "$0 $# $*"' one "two three" ""
same preload env LD_PRELOAD="$(ls /lib/*/libm.so.6)" bash -c 'echo "$LD_PRELOAD"'
same input bash -c 'read -r a; read -r b; echo "$a $b"; cat | wc -c; exit 9'
same descriptors bash -c 'ls /proc/$$/fd >fds.txt; cat fds.txt; true'
same folder bash -c 'pwd; umask; ulimit -a'
same signals grep "^Sig[BIC]\|^Shd" /proc/self/status
same group bash -c 'ps -o pgid= $$ | tr -d " "'
same subshells bash -c 'for i in 1 2 3; do (echo $i; exit $i); echo $?; done; echo a | tr a b'
same perl perl -e 'my %h; $h{$_} = $_ * 2 for 1..5000; print scalar(keys %h), "\n"; exit 4'
same lua lua5.4 -e 'print(pcall(error, "x")); local s = 0 for i = 1, 1e4 do s = s + i end print(s)'
same sqlite sqlite3 :memory: 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c
    LIMIT 5000) SELECT sum(x) FROM c;'
same awk awk '{ s += $1 } END { print s }'

# Ignored signals stay ignored, and a signal to the recorder reaches the program.
rm -f run.db
"$sojourn" record -q -o run.db -- bash -c 'trap "echo told; exit 5" TERM; echo ready
    while :; do sleep 0.05; done' >out.txt &
recorder=$!
background=$recorder
wait_for grep -q ready out.txt
kill -TERM "$recorder"
wait "$recorder"
equal "exit code after SIGTERM to the recorder" 5 "$?"
grep -q told out.txt || fail "the program never saw SIGTERM"
accounted run.db
