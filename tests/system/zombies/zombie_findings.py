#!/usr/bin/env python3
"""Findings of freed memory at the collector. One mistake in many sessions of three devices and two builds is one
row. Users resolve it and keep notes, also over HTTP. A command to a device makes a process keep less. If a process
is killed, no report is lost or doubled.

zombie_findings.py BUILD_FOLDER SAMPLES: six sessions, each build on each device; 100 with SJ_LONG=1.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from attaching import Target
from fleet_testing import Collector, Device, enrol, free_port
from heap_attached import Heap
from sojourn_testing import IS_LONG, PATIENCE_S, check, children, main, wait_for

WATCH = ["--profile", "--exclude", "*", "--zombies", "heap"]
SESSIONS = 100 if IS_LONG else 6
FINDING = "SELECT kind, used_in, freed_in, reports, sessions, devices, builds, state, note FROM zombie_findings"


def another_build(program, copy):
    """Returns a copy of the program with another build-id."""
    shutil.copy(program, copy)
    read = subprocess.run(["readelf", "-n", copy], capture_output=True, text=True, check=True).stdout
    old = bytes.fromhex(next(line.split()[-1] for line in read.splitlines() if "Build ID" in line))
    with open(copy, "r+b") as file:
        place = file.read().index(old)
        file.seek(place)
        file.write(bytes(255 - byte for byte in old))


def reports_in(collector):
    """Reads the database's file directly, so that it works without a collector, too."""
    done = subprocess.run(["sqlite3", "-cmd", ".timeout 5000", collector.database,
                           "SELECT count(*), coalesce(sum(reports), 0) FROM zombies"],
                          capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return tuple(map(int, done.stdout.strip().split("|")))


def record(sojourn, collector, device, program, *words):
    done = sojourn.run(["record", "-q", "--collector", collector.plain, "--wait", str(PATIENCE_S), *WATCH, "--", program, *words],
                       env=device.environment, capture_output=True, text=True)
    check(done.returncode == 0, f"{program} on {device.name}: {done}")


def test_two_builds_and_three_devices_make_one_finding(sojourn, collector, devices, program):
    """Builds are distinguished by their build-id, not by their path."""
    os.mkdir(sojourn.path("new"))
    newer = sojourn.path("new/heap")
    another_build(program, newer)
    for number in range(SESSIONS):
        record(sojourn, collector, devices[number % 3], (program, newer)[number % 2], "1")
    wait_for("all reports", lambda: reports_in(collector)[1] == SESSIONS)
    found = [tuple(row.values()) for row in collector.sql(FINDING)]
    check(found == [("use_after_free", "read_block", "drop_block", SESSIONS, SESSIONS, 3, 2, "open", "")], f"{found}")


def post(port, token, path, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(),
                                     {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_people(sojourn, collector, device, program, port):
    with open(collector.database + ".token", encoding="utf-8") as file:
        token = file.read().strip()
    check(post(port, token, "/api/v1/zombies/1", {"note": "seen", "state": "resolved"}) == 202, "resolving over HTTP")
    check(post(port, token, "/api/v1/zombies/1", {"state": "open"}) == 400, "another state")
    check(post(port, token, "/api/v1/zombies/9", {"note": "seen"}) == 404, "no such finding")
    check(post(port, "no", "/api/v1/zombies/1", {"note": "not mine"}) in (401, 403), "without a token")
    rows = collector.sql("SELECT state, note FROM zombies")
    check(rows == [{"state": "resolved", "note": "seen"}], f"{rows}")
    record(sojourn, collector, device, program, "1")
    wait_for("it is seen again", lambda: collector.sql("SELECT state FROM zombies") == [{"state": "reopened"}])
    done = sojourn.run(["zombies", "note", "1", "again", "--database", collector.database])
    check(done.returncode == 0 and collector.sql("SELECT note FROM zombies") == [{"note": "again"}], "note")
    check(sojourn.run(["check", "--zombies", collector.database], capture_output=True).returncode == 4, "check")


class Recorded(Heap):
    """Runs the sample under a recorder that sends to the collector."""

    def __init__(self, sojourn, collector, device, program):
        Target.__init__(self, [sojourn.program, "record", "-q", "--collector", collector.plain, "--wait", str(PATIENCE_S), *WATCH, "--", program, "-"],
                        env=device.environment)
        self.ready()
        self.program = children(self.pid)[0]


def test_shrink(sojourn, collector, device, program):
    """A command to the device makes the process keep less."""
    target = Recorded(sojourn, collector, device, program)
    target.obey(0)
    check(collector.ask(device.name, "shrink", str(target.program)) == {"shrunk": target.program}, "shrink")
    refused = collector.device(device.name, "shrink", str(os.getpid()), code=1)
    check(str(os.getpid()) in refused.stderr, f"{refused.stderr}")
    check(target.finish()[0] == 0, "the program did not end well")


def test_kills(sojourn, collector, device, program):
    """App, recorder or collector is killed after a report was made. Each report is stored once."""
    for victim in ("app", "recorder", "collector"):
        before = reports_in(collector)[1]
        target = Recorded(sojourn, collector, device, program)
        target.obey(1)
        if victim == "app":
            os.kill(target.program, signal.SIGKILL)
        elif victim == "recorder":
            os.kill(target.pid, signal.SIGKILL)
            target.process.stdin.close()
        else:
            collector.stop(signal.SIGKILL)
            target.obey(2)
            collector.start()
        made = 2 if victim == "collector" else 1
        if victim == "collector":
            check(target.finish()[0] == 0, "the program did not end well")
        else:
            target.process.wait(PATIENCE_S)
            flushed = sojourn.run(["flush"], env=device.environment, capture_output=True, text=True)
            check(flushed.returncode == 0, f"flush: {flushed}")
        wait_for(f"the reports after the {victim} was killed", lambda: reports_in(collector)[1] >= before + made)
        wait_for("an empty spool", lambda: not device.spool())
        check(reports_in(collector)[1] == before + made, f"{victim}: {before} reports, then {reports_in(collector)}")


def test(sojourn, arguments):
    program = os.path.join(arguments[0], "gcc-O2", "heap")
    port = free_port()
    plain = f"tcp://127.0.0.1:{free_port()}"
    collector = Collector(sojourn, "--http", f"127.0.0.1:{port}", "--listen", plain, "--open")
    collector.plain = plain
    devices = [Device(sojourn, f"phone{number}") for number in range(3)]
    try:
        test_two_builds_and_three_devices_make_one_finding(sojourn, collector, devices, program)
        test_people(sojourn, collector, devices[0], program, port)
        enrol(collector, devices[1])
        devices[1].start()
        test_shrink(sojourn, collector, devices[1], program)
        test_kills(sojourn, collector, devices[1], program)
    finally:
        for party in (*devices, collector):
            if party.process is not None and party.process.poll() is None:
                party.process.kill()
                party.process.wait()


if __name__ == "__main__":
    main(test)
