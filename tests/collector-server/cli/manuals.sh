# Every manual page is valid, and every option of a command is in its page.
. "$(dirname "$0")/../../system/support/lib.sh"
root=$2

for page in "$root"/agent/man/*.[178] "$root"/collector-server/man/*.[178]; do
    mandoc -Tlint -Wwarning "$page" >lint.txt 2>&1 || fail "$page: $(cat lint.txt)"
done

# documented PAGE COMMAND...
documented() {
    page=$(ls "$root"/*/man/"$1")
    shift
    "$@" >help.txt
    for option in $(grep -o '^ *\(-[a-z], \)\?--[a-z-]*' help.txt | grep -o '\-\-[a-z-]*'); do
        case $option in
        --help | --help-all | --version) continue ;;
        esac
        grep -q -- "Fl -${option#--}" "$page" || fail "$option is not in $page"
    done
}

documented sojournd.8 "$sojournd" --help
for command in $("$sojourn" help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    grep -q "^.It Cm $command$" "$root/collector-server/man/sojourn.1" || fail "$command is not in sojourn.1"
    case $command in
    help | version) ;;
    *) documented "sojourn-$command.1" "$sojourn" "$command" --help-all ;;
    esac
done

# The manual page of record has the groups of its help, with the same options.
"$sojourn" record --help-all | sed -n -e 's/^\([A-Z][A-Za-z -]*\):$/\1/p' -e 's/^  \(-[a-z], \)\?--\([a-z-]*\).*/  \2/p' |
    sed -e '/^  help$/d' -e '/^  help-all$/d' -e '/^Examples$/d' >groups.txt
sed -n -e 's/^\.Ss "\?\([^"]*\).*/\1/p' -e '/^\.It .*Fl -/p' "$root/collector-server/man/sojourn-record.1" |
    awk '!/^[.]It/ { print; next } { for (i = 1; i <= NF; i++) if ($i == "Fl" && $(i + 1) ~ /^-/) print "  " substr($(i + 1), 2) }' |
    sed '/^Programs that change/,$d' >sections.txt
diff groups.txt sections.txt >differing.txt || fail "sojourn-record.1 has other groups than the help: $(cat differing.txt)"
"$sojourn" record --help | sed -n 's/^  \(-[a-z], \)\?--\([a-z-]*\).*/  \2/p' | grep -vx '  help\(-all\)\?' >first.txt
equal "options of --help" "$(sed -n '2,/^[A-Z]/p' groups.txt | grep '^  ')" "$(cat first.txt)"
equal "options to begin with" 10 "$(sed -n '2,/^[A-Z]/p' groups.txt | grep -c '^  ')"

# The table of exit codes in sojourn(1) has each code of command.h, and commands return the codes as described.
codes=$(sed -n 's/^ *SJ_EXIT_[A-Z_]* = \([0-9]*\).*/\1/p' "$root/collector-server/cli/command.h")
[ "$(echo "$codes" | wc -l)" -ge 8 ] || fail "exit codes are not found in command.h"
for code in $codes; do
    grep -q "^.It $code$" "$root/collector-server/man/sojourn.1" || fail "exit code $code is not in sojourn.1"
done
# exits CODE COMMAND...
exits() {
    code=$1
    shift
    "$@" >out.txt 2>&1
    equal "exit code of $*" "$code" "$?"
}
exits 0 "$sojourn" version
exits 1 "$sojourn" report /etc/passwd
exits 2 "$sojourn" report --nothing
exits 3 "$sojourn" report missing.db
exits 125 "$sojourn" record --nothing
exits 126 "$sojourn" record -o run.db -- /etc/passwd
exits 127 "$sojourn" record -o run.db -- ./missing
exits 143 "$sojourn" record -o run.db -- sh -c 'kill -TERM $$'
