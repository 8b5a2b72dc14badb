#!/usr/bin/env python3
"""`flush --discard` deletes the frames of one session that no collector will ever store, and says how many.

discarded_spool.py BUILD_FOLDER
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, main


def spooled_sessions(sojourn):
    root = sojourn.path("state/sojourn/spool")
    return {name[:-3] for name in os.listdir(root) if name.endswith(".to")}, set(os.listdir(root))


def record_without_collector(sojourn):
    before = spooled_sessions(sojourn)[0] if os.path.isdir(sojourn.path("state/sojourn/spool")) else set()
    done = sojourn.run(["record", "--quiet", "--wait", "0", "--collector", "ipc://" + sojourn.path("none"), "--",
                        "perl", "-e", "1"], capture_output=True, text=True)
    new = spooled_sessions(sojourn)[0] - before
    check(len(new) == 1, f"the spool has no session: {done}")
    return new.pop()


def test(sojourn, _arguments):
    first = record_without_collector(sojourn)
    second = record_without_collector(sojourn)

    done = sojourn.run(["flush", "--discard", "zz"], capture_output=True, text=True)
    check(done.returncode != 0 and "begins with zz" in done.stderr, f"no such session: {done}")
    done = sojourn.run(["flush", "--discard", ""], capture_output=True, text=True)
    check(done.returncode != 0 and "2 sessions" in done.stderr, f"both match: {done}")

    done = sojourn.run(["flush", "--discard", first[:12], "--json"], capture_output=True, text=True)
    check(done.returncode == 0, f"{done}")
    told = json.loads(done.stdout)["rows"][0]
    check(told["discarded"] == first and told["frames"] > 0 and told["bytes"] > 0, f"{told}")
    sessions, names = spooled_sessions(sojourn)
    check(sessions == {second} and not any(first in name for name in names), f"left in the spool: {names}")

    database = sojourn.path("rest.db")
    done = sojourn.run(["flush", "--wait", "0s"], capture_output=True, text=True)
    check("1 kept" in done.stdout, f"the other session is kept: {done}")
    done = sojourn.run(["flush", "--discard", second], capture_output=True, text=True)
    check(done.returncode == 0 and "frames" in done.stdout, f"{done}")
    check(spooled_sessions(sojourn)[1] == set() and not os.path.exists(database), "the spool is not empty")


if __name__ == "__main__":
    sys.exit(main(test))
