# Programs that cannot be recorded give one clear sentence and the exit code of env(1), and leave nothing behind.
. "$(dirname "$0")/../support/lib.sh"

# refused EXIT WORDS PROGRAM...
refused() {
    code=$1
    words=$2
    shift 2
    "$sojourn" record -- "$@" >out.txt 2>err.txt
    equal "exit code for $1" "$code" "$?"
    equal "sentences for $1" 1 "$(wc -l <err.txt)"
    grep -q -- "$words" err.txt || fail "$1: $(cat err.txt)"
    grep -qF -- "$1" err.txt || fail "$1 is not named: $(cat err.txt)"
    equal "files left after $1" "" "$(ls | grep '\.db')"
    [ ! -s out.txt ] || fail "$1: something went to standard output"
}

printf 'echo no\n' >no_bit
printf 'echo no interpreter\n' >no_format
printf '#!%s/none\n' "$scratch" >no_interpreter
chmod +x no_format no_interpreter
head -c 20 "$sojourn" >cut
chmod +x cut
# A 32-bit ELF head is enough to be recognised.
printf '\177ELF\001\001\001\0\0\0\0\0\0\0\0\0\002\0\003\0\001\0\0\0' >bits32
chmod +x bits32

refused 127 "no such program" sojourn-no-such-program
refused 127 "No such file" ./missing
refused 126 "not executable" ./no_bit
refused 126 "neither an ELF" ./no_format
refused 126 "does not exist" ./no_interpreter
refused 126 "neither an ELF" ./cut
refused 126 "directory" "$scratch"
refused 125 "32-bit" ./bits32
refused 125 "AddressSanitizer" "$samples/ends_sanitized"
refused 125 "statically linked" "$samples/ends_static"
equal "nothing was begun" "" \
    "$(ls "$XDG_STATE_HOME" 2>/dev/null; ls "$XDG_RUNTIME_DIR")"

# The dynamic loader would ignore an agent of another machine, and the program would run unrecorded.
other_agent=$(dirname "$sojourn")/../lib/libsojourn-agent-aarch64.so
"$sojourn" record --agent "$other_agent" -- true >out.txt 2>err.txt
equal "exit code with the agent of another machine" 125 "$?"
equal "sentences about the agent of another machine" 1 "$(wc -l <err.txt)"
grep -q "libsojourn-agent-aarch64.so is built for aarch64, and the program for x86-64; install" err.txt ||
    fail "the agent of another machine: $(cat err.txt)"
equal "recordings with the agent of another machine" "" "$(ls "$XDG_STATE_HOME/sojourn/spool"; ls "$XDG_RUNTIME_DIR")"
