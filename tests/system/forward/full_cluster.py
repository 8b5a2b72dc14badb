#!/usr/bin/env python3
"""The cluster's disk gets full during batches. The cluster reports it, and the lab keeps the pending rows and
forwards each row once when there is space again. The disk is a small tmpfs in its own mount namespace.

full_cluster.py BUILD_FOLDER
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from clickhouse_node import Node
from lab_testing import Lab, check_equal, ends_of
from sojourn_testing import check, main, wait_for

STEPS_BYTES = (6000, 60_000, 200_000, 600_000)  # the space left: too little for the first part, for the fifth, ...


def fill(path, leave):
    """Fills the disk until `leave` bytes are free."""
    with open(path, "wb") as file:
        disk = os.statvfs(os.path.dirname(path))
        file.write(bytes(max(0, disk.f_bavail * disk.f_frsize - leave)))


def test(sojourn, _arguments):
    disk = sojourn.path("disk")
    os.mkdir(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", disk], check=True)
    filler = os.path.join(disk, "filler")
    ends = ends_of(sojourn)
    node = Node(os.path.join(disk, "node"))
    lab = Lab(sojourn, "lab.db", ends)
    refused = 0
    try:
        node.start()
        lab.forward("init", node.url)
        for leave in STEPS_BYTES:
            for how in ("return", "throw"):
                lab.record(how)
            fill(filler, leave)
            done = sojourn.run(["forward", "--database", lab.database, "send", node.url], capture_output=True, text=True)
            if done.returncode != 0:
                refused += 1
                print(done.stderr.strip()[:160])
                check("space" in done.stderr, f"a full disk is not named: {done.stderr}")
            os.remove(filler)
            wait_for("it is taken again", lambda: sojourn.run(["forward", "--database", lab.database, "send", node.url],
                                                              capture_output=True).returncode == 0)
            check_equal(node, [lab])
        check(refused > 0, "the disk was never full")
        print(f"refused {refused} of {len(STEPS_BYTES)} times")
    finally:
        node.stop()
        subprocess.run(["umount", "-l", disk], check=False)


if __name__ == "__main__":
    if os.environ.get("SJ_OWN_MOUNTS") != "1":
        own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
        os.execvpe(own[0], [*own, sys.executable, *sys.argv], dict(os.environ, SJ_OWN_MOUNTS="1"))
    main(test)
