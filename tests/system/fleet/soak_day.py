#!/usr/bin/env python3
"""A collector, its retention, readers and a network that is cut for a day: nothing grows, and no call is lost.

The collector's clock runs fast (libfaketime), so its day takes some minutes. SJ_LONG=1 runs a whole day, otherwise at
least two hours pass.

soak_day.py BUILD_FOLDER
"""
import os
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cut_network import Network
from fleet_testing import accepts_connections, free_port
from sojourn_testing import PATIENCE_S, check, check_accounts, main, wait_for

SPEED = 600
HOUR_S = 3600 / SPEED
HOURS = 24 if os.environ.get("SJ_LONG") == "1" else 2
RETAINED = "2h" if HOURS == 24 else "15m"
DEVICES = 4
RECORDINGS = 12 * HOURS


class FastClock:
    """A clock that runs SPEED times as fast. All programs that get its environment see the same time."""

    def __init__(self):
        self.holder = subprocess.Popen(["faketime", "-m", "-f", f"+0 x{SPEED}", "sh", "-c", "env; exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.values = {}
        while not {"FAKETIME_SHARED", "FAKETIME", "LD_PRELOAD"} <= set(self.values):
            line = self.holder.stdout.readline()
            check(line != "", f"faketime has set only {self.values}")
            name, _, value = line.rstrip("\n").partition("=")
            if name == "LD_PRELOAD" or name.startswith("FAKETIME"):
                self.values[name] = value

    def environment(self, of):
        return {**of, **self.values}

    def stop(self):
        self.holder.communicate(timeout=PATIENCE_S)  # faketime removes what its programs shared


def size_of(process, database):
    """Returns what may grow: private memory in bytes, descriptors, threads, and the database's files in bytes."""
    private = 0
    with open(f"/proc/{process.pid}/smaps_rollup", encoding="ascii") as file:
        for line in file:
            if line.startswith(("Private_", "Swap:")):
                private += int(line.split()[1]) * 1024
    return {"memory": private, "descriptors": len(os.listdir(f"/proc/{process.pid}/fd")),
            "threads": len(os.listdir(f"/proc/{process.pid}/task")),
            "files": sum(os.path.getsize(database + end) for end in ("", "-wal") if os.path.exists(database + end))}


class Devices:
    """Devices that record one program after the other, and send it over a network that is cut now and then."""

    def __init__(self, sojourn, port):
        self.sojourn, self.port = sojourn, port
        self.is_over = threading.Event()
        self.problems, self.recordings = [], [0] * DEVICES
        self.threads = [threading.Thread(target=self.record, args=(number,)) for number in range(DEVICES)]
        for thread in self.threads:
            thread.start()

    def record(self, number):
        while not self.is_over.is_set():
            try:
                problem = self.record_once(number)
            except subprocess.TimeoutExpired as expired:
                problem = str(expired)
            if problem:
                self.problems.append(problem)
                return
            self.recordings[number] += 1

    def record_once(self, number):
        """Returns what the recorder reports: nothing, if all went well."""
        build = os.path.dirname(os.path.dirname(os.path.abspath(self.sojourn.program)))
        done = subprocess.run(
            [self.sojourn.program, "record", "-q", "--name", f"device {number}", "--collector",
             f"tcp://127.0.0.1:{self.port}", "--wait", str(PATIENCE_S), "--",
             os.path.join(build, "tests/samples/ends"), "return"],
            env=dict(self.sojourn.environment, XDG_STATE_HOME=self.sojourn.path(f"device-{number}")),
            capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)
        return done.stderr

    def stop(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()


def pass_hours(process, database, network, devices, sojourn):
    """Returns a size for each half hour. Lets more time pass until there are enough recordings."""
    sizes, dice = [], random.Random(11)
    while len(sizes) < 2 * HOURS or sum(devices.recordings) < RECORDINGS:
        end = time.monotonic() + HOUR_S / 2
        while time.monotonic() < end:
            time.sleep(HOUR_S / 20)
            if dice.random() < 0.2:
                network.cut()
        check(process.poll() is None, f"the collector ended with {process.returncode}")
        check(not devices.problems, f"{devices.problems}")
        sojourn.sql(database, "SELECT count(*), sum(calls) FROM sessions JOIN function_stats USING (session_id)")
        sizes.append(size_of(process, database))
        print(len(sizes), sizes[-1], sum(devices.recordings), flush=True)
    return sizes


def check_growth(sizes):
    """Compares the last third with the one before. The first one fills caches, and the database until sessions are
    removed."""
    third = len(sizes) // 3
    for what, slack in (("memory", 4 << 20), ("descriptors", 8), ("threads", 4), ("files", 2 << 20)):
        before = max(size[what] for size in sizes[third:-third])
        after = max(size[what] for size in sizes[-third:])
        check(after <= before * 1.1 + slack, f"{what} grew from {before} to {after}: {[size[what] for size in sizes]}")


def test(sojourn, _arguments):
    program = os.path.join(os.path.dirname(sojourn.program), "sojournd")
    database, port, clock = sojourn.path("lab.db"), free_port(), FastClock()
    server = subprocess.Popen(
        [program, "--listen", f"tcp://127.0.0.1:{port}", "--database", database, "--retain", f"all={RETAINED}"],
        env=clock.environment(sojourn.environment), stderr=subprocess.DEVNULL)
    try:
        wait_for("the collector", lambda: accepts_connections(port))
        network = Network(port)
        devices = Devices(sojourn, network.port)
        try:
            sizes = pass_hours(server, database, network, devices, sojourn)
        finally:
            devices.stop()
            network.close()
    finally:
        server.terminate()
        server.wait(PATIENCE_S)
        clock.stop()
    check_growth(sizes)
    check_accounts(sojourn, database)
    rows = sojourn.sql(database, "SELECT count(*) AS n, sum(lost_calls) AS lost FROM sessions")[0]
    check(int(rows["lost"]) == 0 and 0 < int(rows["n"]) < sum(devices.recordings),
          f"{rows} of {sum(devices.recordings)} recordings")


main(test)
