# The command line itself: help, versions, wrong usage, suggestions, exit codes.
. "$(dirname "$0")/../../system/support/lib.sh"

# says EXIT STREAM WORDS COMMAND...: checks that a command prints WORDS on one stream, and nothing on the other
says() {
    code=$1
    stream=$2
    words=$3
    shift 3
    "$@" >1.txt 2>2.txt
    equal "exit code of $*" "$code" "$?"
    grep -q -- "$words" "$stream.txt" || fail "$* says: $(cat 1.txt 2.txt)"
    [ ! -s "$((3 - stream)).txt" ] || fail "$* speaks on the other stream, too"
}

says 0 1 "sojourn record -- ./app" "$sojourn" help
says 0 1 "sojourn record -- ./app" "$sojourn" --help
says 2 1 "Commands:" "$sojourn"
says 0 1 "^sojourn [0-9]" "$sojourn" --version
says 2 2 'did you mean "record"' "$sojourn" recrod
says 2 2 'did you mean "functions"' "$sojourn" function
says 2 2 '"sojourn help" lists them' "$sojourn" entirely-else
says 2 2 'unknown command "nothing"' "$sojourn" help nothing
for command in record attach tree sql device mark policy trigger functions flush help version; do
    [ "$command" = help ] || says 0 1 "^Usage: sojourn $command" "$sojourn" "$command" --help
    says 0 1 "Examples:" "$sojourn" help "$command"
    [ "$(grep -c '^  sojourn ' 1.txt)" -ge 2 ] || fail "$command: two examples at least"
done
says 0 1 'contains(session_id, f, g \[, from_ns, to_ns\])' "$sojourn" sql --help
says 0 1 'concurrency(session_id, f \[, since_ns, until_ns\])' "$sojourn" sql --help
says 125 2 "name the program" "$sojourn" record
says 125 2 "unknown option --nothing" "$sojourn" record --nothing -- true
says 125 2 "needs a value" "$sojourn" record --wait
says 125 2 "needs a time" "$sojourn" record --wait soon -- true
says 2 2 'unknown option --colums; did you mean --columns' "$sojourn" report --colums calls run.db
says 2 2 'did you mean "record"' "$sojourn" help recrod
says 2 2 "did you mean 'import'" "$sojourn" session imprt run.db
says 2 2 "name an action: pin, unpin" "$sojourn" session
says 2 2 'unknown option --no-wat; did you mean --no-wait' "$sojourn" device phone ps --no-wat
says 2 2 "unknown option -x" "$sojourn" report -xd run.db
says 2 2 'from 1d to 11574d, not "11575d"' "$sojourn" forward --retain 11575d init http://127.0.0.1:1
says 2 2 "-d needs a value" "$sojourn" report -d
says 2 2 "--json takes no value" "$sojourn" report --json=yes run.db
says 2 2 "several options begin with --co" "$sojourn" report --co calls run.db
says 125 2 "needs a number up to 64" "$sojourn" record --buffer 65 -- true
says 125 2 "exclude each other" "$sojourn" record -o a --collector b -- true
says 125 2 '"block", "drop"' "$sojourn" record --when-full never -- true
says 125 2 "No such file" "$sojourn" record --map missing.map -- true
says 3 2 "missing.db" "$sojourn" sql missing.db
says 3 2 "run/missing" "$sojourn" sql --json run/missing
echo "no map" >run/garbage.map
says 125 2 "no line of a known format" "$sojourn" record --no-plan-cache --map run/garbage.map -- true
says 2 2 "begin or end, and a name" "$sojourn" mark begin
says 2 2 "begin or end, and a name" "$sojourn" mark middle phase
says 2 2 "at most 255 bytes" "$sojourn" mark begin "$(printf '%0256d' 0)"
says 3 2 "nothing is being recorded" "$sojourn" mark begin phase
says 2 2 "one program" "$sojourn" functions
says 3 2 "no such program" "$sojourn" functions sojourn-no-such-program
says 1 2 "/etc/passwd" "$sojourn" functions /etc/passwd
says 0 1 "functions, .* hookable" "$sojourn" functions "$samples/ends"
says 0 1 "0 sessions delivered" "$sojourn" flush
says 2 2 "needs a time" "$sojourn" flush --wait soon
says 0 1 "^Usage: sojournd" "$sojournd" --help
says 2 2 "unknown option" "$sojournd" --nothing
says 2 2 "needs a value" "$sojournd" --listen
says 1 2 "sojournd: " "$sojournd" --database /nowhere/lab.db --listen inproc://cli
"$sojourn" functions --json "$samples/ends" >run/functions.json
equal "JSON of functions" 1 \
    "$(sqlite3 :memory: "SELECT json_valid(CAST(readfile('run/functions.json') AS TEXT))")"
equal "files left" "1.txt 2.txt run state" "$(ls | tr '\n' ' ' | sed 's/ $//')"
printf '{"policy": 1,\n "budgte": "3%%"}' >run/bad.json
says 1 2 'run/bad.json:2:2: unknown key "budgte"; did you mean "budget"' \
    "$sojourn" policy check run/bad.json
printf '{"policy": 1, "values": [{"function": "net_*", "argument": 2, "as": "int", "change": {"set": -3, "delay": "2ms"}},
{"function": "work", "result": true, "as": "double", "change": {"set": 0.5, "errno": 4}}]}' >run/changes.json
for said in "net_\*(2:int): changes calls, set -3, delay 2.00 ms$" "work(result:double): changes calls, set 0.5, errno 4$" \
    "no calls of Java methods: errno is not set" "changes .*changes.json"; do
    says 0 1 "$said" "$sojourn" policy check run/changes.json
done
printf '{"policy": 1, "values": [{"function": "A.b", "argument": 2, "as": "int", "change": {"throw": "A", "errno": 3}}]}' >run/bad.json
says 1 2 'no function obeys this: only Java methods .*; and errno is not set' "$sojourn" policy check run/bad.json
printf '{"policy": 1,\n "budgte": "3%%"}' >run/bad.json
says 125 2 'run/bad.json:2:2: ' "$sojourn" record --policy run/bad.json -- true
says 125 2 'a budget from "0.1%"' "$sojourn" record --budget 0% -- true
says 0 1 "mode  *profile" "$sojourn" policy check default
says 0 1 "^jank$" "$sojourn" policy list
says 3 2 "shipped policies: $("$sojourn" policy list | sed ':next; N; $!b next; s/\n/, /g'))" \
    "$sojourn" policy check nothing.json

# bench: runs of one name go into one database, options of record are passed on, and a failing run ends it.
"$sojourn" bench -n 3 --warmup 1 -o bench.db --name plain -- sh -c 'echo out' >bench.txt 2>error.txt || fail "bench: $(cat error.txt)"
# Options of device may stand anywhere, except among those of a program.
says 3 2 "no device matches .phone" "$sojourn" device -d bench.db phone --timeout 5 ps --no-wait
says 3 2 "no device matches .phone" "$sojourn" device -d bench.db phone launch --no-wait ./app --timeout soon
"$sojourn" bench --runs=2 --name profiled --profile -o bench.db -- sh -c 'echo out' >>bench.txt 2>error.txt ||
    fail "bench with an option of record: $(cat error.txt)"
equal "sessions of bench" "plain|trace|3 profiled|profile|2" \
    "$(query bench.db "SELECT name, mode, count(*) FROM sessions GROUP BY name ORDER BY name" | tr '\n' ' ' | sed 's/ $//')"
equal "runs that are reported" "3 runs -> bench.db, name plain" "$(head -n 1 bench.txt)"
grep -qx out bench.txt && fail "bench shows what the program prints"
"$sojourn" diff name:plain name:profiled bench.db >out.txt 2>&1 || fail "diff of bench: $(cat out.txt)"
# two commands that write one file do not mix their output
printf half >calls.txt.unfinished
exec 9<calls.txt.unfinished
flock -n 9 || fail "no lock"
says 1 2 "cannot write calls.txt.unfinished: another command is writing it" "$sojourn" export --session 1 --format folded -o calls.txt bench.db
[ "$(cat calls.txt.unfinished)" = half ] || fail "the unfinished file was changed"
[ ! -e calls.txt ] || fail "a refused export made a file"
exec 9<&-
"$sojourn" export --session 1 --format folded -o calls.txt bench.db >out.txt 2>error.txt || fail "export: $(cat error.txt)"
[ -s calls.txt ] && [ ! -e calls.txt.unfinished ] || fail "the export is not finished"

"$sojourn" bench -n 2 -o failing.db -- sh -c 'exit 7' >out.txt 2>error.txt
equal "bench of what fails" 7 "$?"
equal "runs of what fails" 1 "$(query failing.db "SELECT count(*) FROM sessions")"
"$sojourn" bench -i -n 2 --show-output -o failing.db -- sh -c 'echo out; exit 7' >out.txt 2>error.txt || fail "bench -i"
equal "output that is shown" 2 "$(grep -cx out out.txt)"
"$sojourn" bench -n 2 >out.txt 2>error.txt
equal "bench of nothing" 2 "$?"
