#!/bin/sh
# config_lines.sh BUILD_FOLDER: sojournd names the line of its configuration file that keeps it from starting.
set -eu
sojournd=$1/bin/sojournd
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# expect LINE TEXT: a file with TEXT as line 2 or 3 fails with its name and LINE.
expect() {
    if timeout 60 "$sojournd" --config "$folder/collector.conf" 2>"$folder/said"; then
        echo "it started with: $(cat "$folder/collector.conf")" && exit 1
    fi
    grep -qF "sojournd: $folder/collector.conf:$1: " "$folder/said" && grep -qF "$2" "$folder/said" ||
        { echo "line $1 is not named: $(cat "$folder/said")" && exit 1; }
}

for url in tcp://127.0.0.1 tcp://127.0.0.1:99999999 udp://127.0.0.1:1 ipc:///nowhere/at/all tcp://no.such.host.invalid:1; do
    printf '# devices\ndatabase = %s/lab.db\nlisten = ipc://%s/one\nlisten = %s\n' "$folder" "$folder" "$url" \
        >"$folder/collector.conf"
    expect 4 "$url"
done
for second in one one/more; do # the same address, and one that begins with another one
    printf 'database = %s/lab.db\nlisten = ipc://%s/one\nlisten = ipc://%s/%s\n' "$folder" "$folder" "$folder" \
        "$second" >"$folder/collector.conf"
    expect 3 "$folder/$second: "
done
printf 'database = %s/lab.db\nlisten = ipc://%s/one\nhttp = 127.0.0.1:none\n' "$folder" "$folder" >"$folder/collector.conf"
expect 3 'is not a port'
printf 'listen = ipc://%s/one\n\ndatabase = %s/nowhere/lab.db\n' "$folder" "$folder" >"$folder/collector.conf"
expect 3 nowhere
timeout 60 "$sojournd" --database "$folder/lab.db" --listen tcp://127.0.0.1 2>"$folder/said" && exit 1
grep -q '^sojournd: tcp://127.0.0.1: give HOST:PORT$' "$folder/said" || { cat "$folder/said" && exit 1; }
