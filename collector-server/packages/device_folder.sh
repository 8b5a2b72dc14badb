#!/bin/sh
# Makes a tarball of sojourn-device for a device without packages: one folder with all libraries, the C library too.
#   device_folder.sh PROGRAM AGENT VERSION OUTPUT [ROOT]
# PROGRAM and AGENT are stripped. ROOT has the libraries of a program for another machine. SOURCE_DATE_EPOCH is the time of all files. Needs Debian, because the licenses of the
# libraries are those of their packages.
set -eu
program=$1
agent=$2
version=$3
output=$4
root=${5:-}
here=$(cd "$(dirname "$0")" && pwd)
case $(readelf -h "$program") in
*AArch64*) machine=aarch64 ;;
*X86-64*) machine=x86_64 ;;
*) echo "device_folder.sh: $program is a program for another machine than x86-64 and AArch64" >&2; exit 1 ;;
esac
name=sojourn-device-$version-$machine
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

needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

# add_libraries FILE: puts the libraries that FILE needs, and those that they need, into the folder.
add_libraries() {
    for library in $(needed "$1"); do
        case $library in
        ld-*) as=ld.so ;;
        *) as=$library ;;
        esac
        [ ! -e "$folder/lib/$as" ] || continue
        for file in "$root/lib/$machine-linux-gnu/$library" "$root/usr/lib/$machine-linux-gnu/$library"; do
            [ ! -e "$file" ] || break
        done
        install -m 0755 "$file" "$folder/lib/$as"
        # The packages of all machines have the same names. dpkg knows some files by their path without /usr.
        package=libc6
        [ "$as" = ld.so ] || package=$(dpkg-query -S "*-linux-gnu/$(basename "$(readlink -f "$file")")" \
            "*-linux-gnu/$library" 2>/dev/null | head -1 | cut -d: -f1)
        cp "$root/usr/share/doc/$package/copyright" "$folder/licenses/$package"
        add_libraries "$file"
    done
}

# The agent needs the libraries of the program that it is loaded into, not these.
add_libraries "$program"
find "$folder/lib" -name 'lib*' -type f -exec chmod 0644 {} +
find "$folder" -type d -exec chmod 0755 {} +
find "$folder/licenses" -type f -exec chmod 0644 {} +
chmod 0644 "$folder/sojourn-device.service"
tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf "$work/tar" "$name"
xz -T1 "-${XZ_LEVEL:-9}" -c "$work/tar" >"$output/$name.tar.xz"
