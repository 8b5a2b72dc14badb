# Readers change nothing: a recording that ended stays one file, an empty file is refused, and a file of an older
# version is read through a copy. Every command takes its database as --database and, where possible, as its last
# argument.
. "$(dirname "$0")/../../system/support/lib.sh"

"$sojourn" record -o run.db -- sh -c 'true' >record.txt 2>&1 || fail "record: $(cat record.txt)"
equal "files of a recording that ended" "run.db" "$(ls run.db*)"

# unchanged FILE: checks that the file is the same, and has no new files beside it
unchanged() {
    equal "$1" "$(cat "$1.sum")" "$(sha256sum <"$1")"
    equal "files beside $1" "$1" "$(ls -- "$1" "$1"-* 2>/dev/null)"
}

read_all() {
    for command in "report" "tree" "replay --count 3" "sessions" "sql --query storage" "export" \
        "sql --query hot_spots" "devices" "zombies" "flame -o $1.svg"; do
        # shellcheck disable=SC2086 # a list of words
        "$sojourn" $command --database "$1" >out.txt 2>error.txt || fail "$command: $(cat error.txt)"
        unchanged "$1"
    done
}

for copy in development.db older.db; do
    cp run.db $copy
done
sha256sum <run.db >run.db.sum
read_all run.db
for command in report tree replay sessions devices export ui verify; do
    "$sojourn" "$command" -d run.db other.db >out.txt 2>error.txt
    equal "$command with two databases" 2 "$?"
    grep -q 'two databases' error.txt || fail "$command: $(cat error.txt)"
done
for command in "diff 1 1" "sql 'SELECT 1'"; do
    eval "'$sojourn' $command -d run.db" >out.txt 2>error.txt || fail "$command: $(cat error.txt)"
done
"$sojourn" session -d run.db note 1 seen || fail "session -d"
"$sojourn" verify -d run.db >out.txt || fail "verify -d"

cp run.db newer.db
sqlite3 newer.db 'PRAGMA user_version=9999'
for command in report tree sessions "ui --no-open"; do
    # shellcheck disable=SC2086 # a list of words
    timeout 60 "$sojourn" $command -d newer.db >out.txt 2>error.txt
    equal "$command of a newer version" 1 "$?"
    grep -q 'written by a newer Sojourn' error.txt || fail "$command: $(cat error.txt)"
done

: >empty.db
sha256sum <empty.db >empty.db.sum
for command in report tree replay sessions "sql --query storage"; do
    # shellcheck disable=SC2086 # a list of words
    "$sojourn" $command -d empty.db >out.txt 2>error.txt
    equal "$command of an empty file" 3 "$?"
    grep -q 'empty.db is empty' error.txt || fail "$command: $(cat error.txt)"
    unchanged empty.db
done

sqlite3 development.db 'PRAGMA application_id=0x534a4442; PRAGMA user_version=44'
sha256sum <development.db >development.db.sum
for command in "report development.db" "tree -d development.db" "sessions -d development.db" "verify -d development.db" \
    "ui --no-open -d development.db" "backup -d development.db copy.db" "salvage development.db copy.db"; do
    # shellcheck disable=SC2086 # a list of words
    timeout 60 "$sojourn" $command >out.txt 2>error.txt
    equal "$command of a development version" 1 "$?"
    grep -q 'development.db was written by a development version' error.txt || fail "$command: $(cat error.txt)"
    unchanged development.db
done

# This is a made-up later version, for which run.db is an older one.
next=$build/tests/sojourn-next
sha256sum <older.db >older.db.sum
mkdir temporary
for command in report tree sessions "sql 'SELECT count(*) FROM sessions'"; do
    eval "TMPDIR='$PWD/temporary' '$next' $command -d older.db" >out.txt 2>error.txt ||
        fail "$command: $(cat error.txt)"
    [ -s out.txt ] || fail "$command of an older version prints nothing"
    unchanged older.db
done
equal "copies that are left" "" "$(ls temporary)"
"$next" verify --rebuild all older.db >out.txt || fail "verify: $(cat out.txt)"
equal "version after verify" "$(($(sqlite3 run.db 'PRAGMA user_version') + 1))" \
    "$(sqlite3 older.db 'PRAGMA user_version')"
