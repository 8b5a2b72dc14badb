# `cmake --install` makes files that work below any prefix. Programs find the agent. Manual pages, header, pkg-config
# and units are where a system looks for them.
. "$(dirname "$0")/../support/lib.sh"

prefix=$PWD/prefix
cmake --install "$build" --prefix "$prefix" >install.log || fail "cmake --install: $(tail -3 install.log)"
PATH=$prefix/bin:/usr/bin:/bin

sojourn record -q -o run.db -- /usr/bin/perl -e '1' || fail "an installed sojourn does not record"
sojourn report run.db | grep -q . || fail "an installed sojourn does not report"
[ -f "$prefix/lib/sojourn/libsojourn-direct.so" ] || fail "libsojourn-direct.so is not installed"
[ -f "$prefix/lib/sojourn/libsojourn-agent-aarch64.so" ] || fail "the agent for AArch64 is not installed"
calls=$(sqlite3 run.db ".load $prefix/lib/sojourn/libsojourn-sqlite" 'SELECT count(*) > 100 FROM calls')
[ "$calls" = 1 ] || fail "the installed SQLite extension does not answer: $calls"

unzip_list=$(python3 -m zipfile -l "$prefix/share/java/sojourn.jar") || fail "sojourn.jar is not installed"
case $unzip_list in
*Commands*) fail "sojourn.jar has the agent's own class" ;;
*io/sojourn/Sojourn.class*) ;;
*) fail "sojourn.jar has no class Sojourn" ;;
esac

for page in man1/sojourn.1 man1/sojourn-record.1 man8/sojournd.8 man8/sojourn-device.8 man7/sojourn-direct.7; do
    [ -f "$prefix/share/man/$page" ] || fail "$page is not installed"
done
grep -q '^complete .* sojourn$' "$prefix/share/bash-completion/completions/sojourn" ||
    fail "no completion is installed"
grep -q "^#compdef sojourn$" "$prefix/share/zsh/vendor-completions/_sojourn" || fail "nothing for zsh is installed"
grep -q "^complete -c sojourn " "$prefix/share/fish/vendor_completions.d/sojourn.fish" || fail "nothing for fish is installed"
for unit in sojournd sojourn-device; do
    program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$prefix/lib/systemd/system/$unit.service")
    [ -x "$program" ] || fail "$unit.service starts $program, which is not there"
    "$program" --help >/dev/null || fail "$program --help"
done

# shellcheck disable=SC2046 # a list of options
cc -o marks "$tests/samples/cli/marks.c" $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags sojourn) ||
    fail "a program with the installed header does not build"
sojourn record -q -o marks.db -- ./marks || fail "a program with marks is not recorded"
marks=$(sqlite3 marks.db "SELECT count(*) FROM marks WHERE name = 'installed'")
[ "$marks" -ge 1 ] || fail "the mark is not recorded: $marks"
