#!/bin/sh
# torture.sh FOLDER PROGRAM SWITCH [EMULATOR...]: the torture program unhooked, hooked from its start,
# hooked late, and hooked and unhooked in a loop while it runs. An emulator takes -E NAME=VALUE.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
rounds=20
if [ $# -gt 3 ]; then
    rounds=2
fi
if [ "${SJ_LONG:-}" = 1 ]; then
    rounds=100
fi
program=$1/$2
preload=LD_PRELOAD=$3
export OBJC_BUNDLE="$1/objc_bundle.so" OBJC_SWITCH_FOLDER="$folder" HOME="$folder"
shift 3

fail() {
    echo "FAILED: $1"
    cat "$folder/out"
    exit 1
}

"$@" "$program" 3 >"$folder/out" 2>&1 || fail "unhooked"
for mode in start late loop; do
    OBJC_SWITCH=$mode "${@:-env}" ${1:+-E} "$preload" "$program" $rounds >"$folder/out" 2>&1 ||
        fail "$mode"
    grep -q '^0 failures' "$folder/out" || fail "$mode"
    # A run in which nothing was hooked would prove nothing.
    stubs=$(sed -n 's/.* stubs \([0-9]*\) .*/\1/p' "$folder/out")
    [ "${stubs:-0}" -gt 10 ] || fail "$mode made ${stubs:-no} stubs"
    echo "$mode: $(grep turns "$folder/out")"
done
