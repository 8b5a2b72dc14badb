#!/usr/bin/env python3
"""Packages are upgraded in a fresh root while a launched and an attached program are recorded, and while the device
keeps records that no collector has taken. Both recordings continue with the agent that they have loaded, and no call is
lost. After a downgrade the collector refuses a database of a newer version.

package_upgrade.py BUILD_FOLDER PACKAGES_FOLDER; exits with 77 if debootstrap, root or namespaces are not available.
"""
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fresh_root import Root, cached_root, enter_namespaces
from package_roots import (DATABASE, MIRROR, OURS, dependencies, invite, make_state_folders, start_collector,
                           start_device, started_by)
from sojourn_testing import build_sample, check, main, wait_for

PROGRAM, END = "/srv/counts_leaves", "/srv/end"
OLDER = "~before"


def relabel(file, folder):
    """Writes the package into a folder as one of an older version: its number, and those of the packages that it
    needs, sort before the true ones."""
    unpacked = os.path.join(folder, "unpacked")
    subprocess.run(["dpkg-deb", "-R", file, unpacked], check=True)
    control = os.path.join(unpacked, "DEBIAN", "control")
    with open(control, encoding="utf-8") as text:
        fields = text.read()
    version = next(line.split()[1] for line in fields.splitlines() if line.startswith("Version:"))
    with open(control, "w", encoding="utf-8") as text:
        text.write(fields.replace(f"= {version})", f"= {version}{OLDER})").replace(
            f"Version: {version}", f"Version: {version}{OLDER}"))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "-b", unpacked, folder], check=True,
                   capture_output=True)
    subprocess.run(["rm", "-rf", unpacked], check=True)


def install(root, folder, *options):
    root.run("sh", "-c", f"apt-get -q -y {' '.join(options)} install {folder}/*.deb")


def versions(root):
    return set(root.run("dpkg-query", "-W", "-f", "${Version}\n", *OURS).split())


def ask(root, question):
    return json.loads(root.run("sojourn", "sql", "--json", question, DATABASE))["rows"]


def stored_leaves(root, name):
    """Returns the number of stored calls of leaf() in a session, and its state and losses."""
    rows = ask(root, "SELECT state, lost_calls AS lost, (SELECT total(calls) FROM function_stats JOIN functions USING "
               f"(function_id) WHERE session_id = s.session_id AND name = 'leaf') AS leaves FROM sessions s WHERE name = '{name}'")
    return rows[0] if rows else {"state": None, "lost": None, "leaves": 0}


def leaves_called(root, name):
    """Returns the number of calls of leaf() that a program counted itself."""
    with open(f"{root.path}/srv/{name}.count", encoding="ascii") as file:
        return int(file.read())


def undelivered(root):
    """Returns the number of bytes that the device keeps for the collector."""
    listed = subprocess.run(["find", f"{root.path}/var/lib/sojourn", "-name", "*.frames", "-printf", "%s\n"],
                            check=True, capture_output=True, text=True)
    return sum(map(int, listed.stdout.split()))


def end(process, what):
    process.terminate()
    check(process.wait() == 0, f"{what} ended by {process.returncode}")


def record_two(root):
    """Launches one program by the device and attaches to another. Returns the attached program."""
    running = subprocess.Popen(root.command(PROGRAM, END, "/srv/attached.count"))
    device = ("sojourn", "device", "--database", DATABASE)
    root.run(*device, "--name", "launched", "unit", "launch", PROGRAM, END, "/srv/launched.count")
    root.run(*device, "--name", "attached", "unit", "attach", str(running.pid))
    for name in ("launched", "attached"):
        wait_for(f"calls of {name}", lambda name=name: stored_leaves(root, name)["leaves"] > 0)
    return running


def upgrade_under_recordings(sojourn, root):
    make_state_folders(root)
    collector = start_collector(root, sojourn.path("collector1.log"))
    root.run("sojourn-device-install", "--token-file", invite(root), "--name", "unit")
    device = start_device(root, sojourn.path("device1.log"))
    running = record_two(root)
    end(collector, "the old collector")
    kept = undelivered(root)
    wait_for("records that no collector takes", lambda: undelivered(root) > kept)
    install(root, "/srv/newer")
    check(versions(root) == {version(root)}, f"after the upgrade: {versions(root)}")
    end(device, "the old daemon")
    collector = start_collector(root, sojourn.path("collector2.log"))
    device = start_device(root, sojourn.path("device2.log"))
    with open(f"{root.path}{END}", "wb"):
        pass
    check(running.wait() == 0, f"the attached program ended by {running.returncode}")
    for name in ("launched", "attached"):
        wait_for(lambda name=name: f"the end of {name}: {stored_leaves(root, name)}",
                 lambda name=name: stored_leaves(root, name)["state"] == "completed")
        found, called = stored_leaves(root, name), leaves_called(root, name)
        is_right = found["leaves"] == called if name == "launched" else 0 < found["leaves"] < called
        check(found["lost"] == 0 and is_right, f"{name}: {found} of {called} calls")
    root.run("sojourn", "verify", DATABASE)
    end(device, "the new daemon")
    end(collector, "the new collector")


def version(root):
    return root.run("sojourn", "version").split()[1]


def a_newer_database_is_refused(root):
    """The older packages are installed again. Their collector refuses a database that a newer version has written."""
    install(root, "/srv/older", "--allow-downgrades")
    check(all(found.endswith(OLDER) for found in versions(root)), f"after the downgrade: {versions(root)}")
    subprocess.run(["sqlite3", root.path + DATABASE, "PRAGMA user_version = 1000"], check=True)
    refused = root.try_to("timeout", "60", *started_by(root, "sojournd"))
    check(refused.returncode == 1 and "written by a newer Sojourn" in refused.stderr and DATABASE in refused.stderr,
          f"a newer database: {refused.returncode}, {refused.stderr}")


def test(sojourn, arguments):
    files = glob.glob(f"{arguments[0]}/*.deb")
    if not os.environ.get("SJ_INSIDE_NAMESPACES"):
        os.environ["SJ_BASE_ROOT"] = cached_root("bookworm", "bookworm", MIRROR, dependencies(files))
    enter_namespaces()
    root = Root(os.environ["SJ_BASE_ROOT"], os.path.abspath("mounted-upgrade"))
    for folder in ("older", "newer"):
        os.mkdir(f"{root.path}/srv/{folder}")
    for file in files:
        root.put(file, "/srv/newer")
        relabel(file, f"{root.path}/srv/older")
    build_sample(sojourn, "counts_leaves.c", program=root.path + PROGRAM)
    install(root, "/srv/older")
    upgrade_under_recordings(sojourn, root)
    a_newer_database_is_refused(root)


main(test, checks_sums=False)
