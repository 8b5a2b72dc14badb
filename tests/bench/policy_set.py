#!/usr/bin/env python3
"""Measures how long a running program is stopped when its policy is changed, and how long the change takes.

policy_set.py BUILD_FOLDER [ROUNDS]: Debian's python3.11 computes in two threads and is attached to; its
selection goes back and forth between a few functions and all of them, then its mode changes."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system", "support"))
from attaching import start_attach
from sojourn_testing import SAMPLES, Sojourn


def change(sojourn, pid, *options):
    started = time.monotonic()
    done = sojourn.run(["policy", "set", "--json", *options, str(pid)], capture_output=True, check=True)
    return (time.monotonic() - started) * 1e3, json.loads(done.stdout)["rows"][0]


def show(name, rows):
    stops = sorted(answer["stopped_ns"] / 1e6 for _, answer in rows)
    walls = sorted(wall for wall, _ in rows)
    functions = max(answer["hooked"] + answer["freed"] for _, answer in rows)
    print(f"{name}: {functions} functions; stopped {stops[0]:.2f} ms (median "
          f"{stops[len(stops) // 2]:.2f}), command {walls[0]:.0f} ms (median "
          f"{walls[len(walls) // 2]:.0f})")


def main():
    sojourn = Sojourn(os.path.join(sys.argv[1], "bin"))
    sojourn.environment["XDG_RUNTIME_DIR"] = sojourn.folder
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    target = subprocess.Popen(["/usr/bin/python3.11", os.path.join(SAMPLES, "bench", "json_in_threads.py")])
    time.sleep(0.5)
    recorder = start_attach(sojourn, target.pid, sojourn.path("run.db"),
                            ["--profile", "--function", "PyLong_*"])
    few = ["--profile", "--function", "PyLong_*"]
    try:
        show("hooks made and written", [change(sojourn, target.pid, "--profile")])
        removed, added = [], []
        for _ in range(rounds):
            removed.append(change(sojourn, target.pid, *few))
            added.append(change(sojourn, target.pid, "--profile"))
        show("removed", removed)
        show("added again", added)
        show("mode only", [change(sojourn, target.pid, mode) for mode in ["--flight", "--profile"] * 5])
    finally:
        sojourn.run(["detach", str(target.pid)], stdout=subprocess.DEVNULL)
        recorder.wait(60)
        target.kill()


main()
