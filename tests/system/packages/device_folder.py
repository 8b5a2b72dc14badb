#!/usr/bin/env python3
"""The tarball of sojourn-device records on systems that cannot run programs built on this one. These are Debian 11,
whose glibc has dlsym in a separate library, and a root of BusyBox and musl.

device_folder.py BUILD_FOLDER PACKAGES_FOLDER; exits with 77 if debootstrap, root or namespaces are not available.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fresh_root import Root, cached_root, enter_namespaces
from sojourn_testing import build_sample, check, main, wait_for

MIRROR = "http://deb.debian.org/debian"
COLLECTOR = "tls+tcp://127.0.0.1:7655"
OLDEST_GLIBC = (2, 17)
MOST_BYTES = 6000000


def tarball(packages):
    found = glob.glob(f"{packages}/*.tar.xz")
    check(len(found) == 1 and os.path.getsize(found[0]) < MOST_BYTES, f"the tarball: {found}")
    return found[0]


def musl_root(sojourn):
    """Returns the folder of a root with BusyBox, musl and a program that is linked against it."""
    folder = sojourn.path("musl-base")
    for name in ("bin", "usr/bin", "lib", "opt", "proc", "dev", "srv", "tmp"):
        os.makedirs(f"{folder}/{name}")
    shutil.copy(shutil.which("busybox"), f"{folder}/bin/busybox")
    for name in ("sh", "dirname", "readlink", "ls", "cat"):
        os.symlink("busybox", f"{folder}/bin/{name}")
    os.symlink("/bin/busybox", f"{folder}/usr/bin/env")
    shutil.copy("/lib/ld-musl-x86_64.so.1", f"{folder}/lib/ld-musl-x86_64.so.1")
    build_sample(sojourn, "ends.c", program=f"{folder}/bin/ends", compiler="musl-gcc")
    return folder


def the_agent_needs_only_old_glibc(root, folder):
    """The agent needs only versions of glibc's functions that the oldest supported system has."""
    agent = f"{root.path}{folder}/lib/sojourn/libsojourn-agent.so"
    listed = subprocess.run(["objdump", "-T", agent], check=True, capture_output=True, text=True).stdout
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", listed)}
    check(versions and max(versions) <= OLDEST_GLIBC, f"the agent needs glibc {max(versions)}")


def records(sojourn, archive, root, name, program):
    """A device in the root enrols. A program that is launched there arrives at the collector with all its calls."""
    folder = "/opt/sojourn-device"
    os.makedirs(root.path + folder)
    subprocess.run(["tar", "-xJf", archive, "-C", root.path + folder, "--strip-components=1"], check=True)
    the_agent_needs_only_old_glibc(root, folder)
    check(re.match(r"sojourn-device \d", root.run(f"{folder}/sojourn-device", "--version")), "its version")
    database, invitation = sojourn.path("lab.db"), f"{root.path}/srv/invitation"
    device = [sojourn.program, "device", "--database", database]
    subprocess.run([*device, "--collector", COLLECTOR, "invite", invitation], check=True, capture_output=True)
    root.run(f"{folder}/sojourn-device", "enroll", "--token-file", "/srv/invitation", "--name", name)
    daemon = root.start(f"{folder}/sojourn-device", "run", log=sojourn.path(f"{name}.log"))
    launched = subprocess.run([*device, name, "launch", *program], capture_output=True, text=True, check=False)
    check(launched.returncode == 0, f"launch on {name}: {launched.stdout}{launched.stderr}")
    wait_for(f"the session of {name}", lambda: sojourn.sql(
        database, "SELECT stored_calls AS n FROM sessions JOIN devices USING (device_id) "
        f"WHERE state = 'completed' AND stored_calls > 0 AND devices.name = '{name}'"))
    daemon.terminate()
    check(daemon.wait() == 0, f"the daemon of {name} ended by {daemon.returncode}")


def test(sojourn, arguments):
    if not os.environ.get("SJ_INSIDE_NAMESPACES"):
        if not shutil.which("busybox"):
            print("skipped: needs busybox")
            sys.exit(77)
        os.environ["SJ_BASE_ROOT"] = cached_root("bullseye", "bullseye", MIRROR)
    enter_namespaces()
    log_path = sojourn.path("sojournd.log")
    with open(log_path, "wb") as log:
        collector = subprocess.Popen([f"{sojourn.program}d", "--listen", COLLECTOR, "--database",
                                      sojourn.path("lab.db")], stderr=log)
    wait_for("the collector", lambda: "collecting into" in open(log_path, encoding="utf-8").read())
    archive = tarball(arguments[0])
    debian = Root(os.environ["SJ_BASE_ROOT"], os.path.abspath("mounted-debian11"))
    records(sojourn, archive, debian, "debian11", ("/usr/bin/perl", "-e", "1"))
    musl = Root(musl_root(sojourn), os.path.abspath("mounted-musl"))
    records(sojourn, archive, musl, "musl", ("/bin/ends", "return"))
    collector.terminate()
    check(collector.wait() == 0, f"the collector ended by {collector.returncode}")


main(test)
