#!/bin/sh
# Makes a tarball of sojourn-device for a device without packages: one folder with all libraries, the C library too.
#   device_folder.sh PROGRAM AGENT VERSION OUTPUT
# PROGRAM and AGENT are stripped. SOURCE_DATE_EPOCH is the time of all files. Needs Debian, because the licenses of the
# libraries are those of their packages.
set -eu
program=$1
agent=$2
version=$3
output=$4
here=$(cd "$(dirname "$0")" && pwd)
name=sojourn-device-$version-$(uname -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder=$work/$name
mkdir -p "$folder/bin" "$folder/lib/sojourn" "$folder/licenses"
install -m 0755 "$program" "$folder/bin/sojourn-device"
install -m 0644 "$agent" "$folder/lib/sojourn/libsojourn-agent.so"
install -m 0755 "$here/device_folder/sojourn-device" "$folder/sojourn-device"
install -m 0644 "$here/device_folder/README" "$here/../../LICENSE" "$folder"
sed 's#^ExecStart=/usr/bin/#ExecStart=/opt/sojourn-device/#' "$here/../../agent/daemon/systemd/sojourn-device.service" \
    >"$folder/sojourn-device.service"

# The agent needs the libraries of the program that it is loaded into, not these.
ldd "$program" | sed -n 's/^.*=> \(\/[^ ]*\).*/\1/p; s/^\t\(\/[^ ]*\) .*/\1/p' | sort -u | while read -r library; do
    case $library in
    */ld-*) install -m 0755 "$library" "$folder/lib/ld.so" ;;
    *) install -m 0644 "$library" "$folder/lib" ;;
    esac
    file=$(readlink -f "$library")
    # dpkg knows some files by their path without /usr.
    package=$({ dpkg-query -S "$file" || dpkg-query -S "${file#/usr}"; } 2>/dev/null | head -1 | cut -d: -f1)
    cp "/usr/share/doc/$package/copyright" "$folder/licenses/$package"
done
find "$folder" -type d -exec chmod 0755 {} +
find "$folder/licenses" -type f -exec chmod 0644 {} +
chmod 0644 "$folder/sojourn-device.service"
tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf "$work/tar" "$name"
xz -T1 "-${XZ_LEVEL:-9}" -c "$work/tar" >"$output/$name.tar.xz"
