# Boots systemd as process 1 of its own namespaces, on a temporary copy of this machine's files.
#
# unshare --mount --pid --fork --kill-child --uts --ipc --net --cgroup sh units_boot.sh FOLDER BUILD
#
# FOLDER (empty) receives the copy, which ends with the namespaces. The programs of BUILD are in its /opt/sojourn, and
# sojourn and sojournd with their unit are in their usual places. The kernel's settings cannot be written. Of this
# machine's devices only the harmless ones are there.
set -eu
folder=$1
build=$2
root=$folder/root

mount --make-rprivate /
mount -t tmpfs tmpfs "$folder"
mkdir "$folder/changes" "$folder/work" "$root"
mount -t overlay overlay \
    -o "lowerdir=/,upperdir=$folder/changes,workdir=$folder/work" "$root"
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
for place in run tmp dev; do
    mount -t tmpfs -o mode=0755 tmpfs "$root/$place"
done
chmod 1777 "$root/tmp"
for device in null zero full random urandom tty; do
    : >"$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o mode=0755 tmpfs "$root/sys"
mkdir -p "$root/sys/fs/cgroup"
if [ -d /sys/fs/cgroup/systemd ]; then
    mkdir "$root/sys/fs/cgroup/systemd"
    mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
else
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
fi

echo "the namespaces are made" # what goes wrong from here on is a failure, no lack
mkdir -p "$root/opt/sojourn"
cp -r "$build/bin" "$build/lib" "$root/opt/sojourn"
cp "$build/tests/samples/ends" "$build/tests/samples/attach_target" "$root/opt/sojourn"
cp "$build/bin/sojourn" "$build/bin/sojournd" "$root/usr/bin"

# Only Sojourn's services run, none of this machine's.
units=$root/etc/systemd/system
rm -rf "$units"
mkdir -p "$units"
cp "$build/bin/sojournd.service" "$build/bin/sojourn-backup.service" "$units"
# A system call that the collector makes although its unit forbids it kills the collector, so that a test sees it.
mkdir "$units/sojournd.service.d"
printf '[Service]\nSystemCallErrorNumber=kill\n' >"$units/sojournd.service.d/kill.conf"
cp -r "$units/sojournd.service.d" "$units/sojourn-backup.service.d"
for unit in systemd-udevd systemd-udev-trigger systemd-sysctl systemd-modules-load \
    systemd-random-seed systemd-logind systemd-timesyncd dbus; do
    ln -s /dev/null "$units/$unit.service"
done
ln -s /dev/null "$units/timers.target"
ln -s /dev/null "$units/getty.target"
: >"$root/etc/fstab"
: >"$root/etc/machine-id"
python3 -c 'import fcntl, socket, struct  # the loopback interface: up
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 1))'

mkdir "$root/before"
cd "$root"
pivot_root . before
umount -l /before
exec env -i container=sojourn-test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    setpriv --bounding-set -sys_time,-sys_module,-sys_rawio,-syslog,-sys_boot --inh-caps -all \
    /lib/systemd/systemd --system --unit=multi-user.target --log-target=null --show-status=0
