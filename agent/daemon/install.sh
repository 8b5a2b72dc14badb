#!/bin/sh
# Installs Sojourn on a device and enrols it in a collector, in one step:
#
#   sojourn-device-install --token-file phone7.invitation [--name NAME] [--tag KEY=VALUE]...
#                          [--collector URL] [--also] [--root DIR]
#
# With --also the collector becomes a further one of a device that is enrolled in another.
#
# The files are those beside this script. With --root they go into the image of a device instead of
# this machine, and nothing is started. Everything can be done again; an enrolled device stays as it
# is when no --token-file is given. Where the package sojourn-device has put the files already, they
# stay the package's.
set -eu

fail() {
    echo "sojourn-device-install: $*" >&2
    exit 1
}

root=
token_file=
here=$(cd "$(dirname "$0")" && pwd)
# The options of `enroll`, one to a line, so that names with blanks stay whole.
while [ $# -gt 0 ]; do
    case $1 in
    --help)
        sed -n '2,13s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    --root | --token-file | --name | --tag | --collector)
        [ $# -ge 2 ] || fail "$1 needs a value"
        case $1 in
        --root) root=$2 ;;
        --token-file) token_file=$2 ;;
        *) enrol_options="${enrol_options-}$1
$2
" ;;
        esac
        shift 2
        ;;
    --also)
        enrol_options="${enrol_options-}$1
"
        shift
        ;;
    *) fail "$1: unknown option; try --help" ;;
    esac
done

find_file() { # NAME PLACE...
    name=$1
    shift
    for place in "$@"; do
        if [ -e "$here/$place/$name" ]; then
            echo "$here/$place/$name"
            return
        fi
    done
    fail "$name is not beside this script; build Sojourn, or take the whole directory"
}

program=$(find_file sojourn-device . ../bin)
agent=$(find_file libsojourn-agent.so ../lib ../lib/sojourn)
unit=$(find_file sojourn-device.service . ../lib/systemd/system)
[ -n "$root" ] || [ "$(id -u)" -eq 0 ] || fail "needs root, or --root DIR"
[ -z "$token_file" ] || [ -r "$token_file" ] || fail "$token_file cannot be read"

unit_target=../sojourn-device.service
if [ "$program" -ef "$root/usr/bin/sojourn-device" ]; then
    unit_target=${unit#"$root"}
else
    install -D -m 0755 "$program" "$root/usr/bin/sojourn-device"
    install -D -m 0644 "$agent" "$root/usr/lib/sojourn/libsojourn-agent.so"
    install -D -m 0644 "$unit" "$root/etc/systemd/system/sojourn-device.service"
    echo "Installed in ${root:-/}."
fi
install -d -m 0700 "$root/var/lib/sojourn" "$root/var/cache/sojourn"

# Where the unit has it: state is /var/lib/sojourn, the cache /var/cache/sojourn.
export XDG_STATE_HOME="$root/var/lib" XDG_CACHE_HOME="$root/var/cache"
if [ -n "$token_file" ]; then
    set -- --token-file "$token_file"
    while IFS= read -r option; do
        [ -z "$option" ] || set -- "$@" "$option"
    done <<END
${enrol_options-}
END
    "$root/usr/bin/sojourn-device" enroll "$@"
fi
if [ -n "$root" ]; then
    mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
    ln -sf "$unit_target" \
        "$root/etc/systemd/system/multi-user.target.wants/sojourn-device.service"
    echo "It starts with the image: the unit sojourn-device.service is enabled."
elif [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl enable sojourn-device.service
    # A daemon that runs reads its collectors when it starts.
    if [ -n "$token_file" ]; then
        systemctl restart sojourn-device.service
    else
        systemctl start sojourn-device.service
    fi
else
    echo "systemd does not run here; start it with:"
    echo "  XDG_STATE_HOME=/var/lib XDG_CACHE_HOME=/var/cache /usr/bin/sojourn-device run"
fi
