#!/usr/bin/env python3
"""Removes sessions of a collector that has thousands: seconds for each removal, by HTTP and by `sojourn session remove`,
and memory of sojournd before, after the sessions were sent, and after the removals.

  tests/bench/removal_of_many.py BUILD_FOLDER [--sessions N] [--removals N] [--folder FOLDER]

Each session has four blocks of 5,000 events. FOLDER holds the database.
"""
import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system", "support"))
from fleet_testing import accepts_connections, free_port
from sojourn_testing import PATIENCE_S, check, wait_for

DEVICES = 1000
BLOCKS_A_SECOND, EVENTS, SECONDS = 2, 5000, 2


def resident_mb(pid, field="VmRSS"):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field + ":")) / 1e3


def ask(port, token, method, path, body=None):
    """Returns the answer of the collector, parsed."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request(method, path, json.dumps(body) if body else None,
                       {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    check(answer.status in (200, 202), f"{path}: {answer.status} {text[:200]}")
    return json.loads(text)


def remove_by_http(port, token, session):
    begun = time.monotonic()
    ask(port, token, "POST", "/api/v1/sessions", {"do": "remove", "sessions": [str(session)]})
    return time.monotonic() - begun


def remove_by_command(program, database, session):
    """Returns the seconds and the command's memory at most, in MB."""
    begun = time.monotonic()
    removing = subprocess.Popen([program, "session", "--database", database, "remove", str(session)],
                                stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(removing.pid, 0)
    check(status == 0, f"sojourn session remove: {status}")
    return time.monotonic() - begun, used.ru_maxrss / 1e3


def seconds_of(name, spent):
    print(f"{name}: {len(spent)} removals, median {statistics.median(spent):.3f} s, at most {max(spent):.3f} s")


def measure_removals(options, collector, port, database):
    with open(database + ".token", encoding="ascii") as file:
        token = file.read().strip()
    print(f"sojournd with {options.sessions} sessions: {resident_mb(collector.pid):.0f} MB, at most "
          f"{resident_mb(collector.pid, 'VmHWM'):.0f} MB; file {os.stat(database).st_size / 1e6:.0f} MB")
    sessions = iter(range(options.sessions // 2, options.sessions))
    seconds_of("HTTP", [remove_by_http(port, token, next(sessions)) for _ in range(options.removals)])
    print(f"sojournd after them: {resident_mb(collector.pid):.0f} MB")
    done = [remove_by_command(f"{options.build}/bin/sojourn", database, next(sessions)) for _ in range(options.removals)]
    seconds_of("command", [seconds for seconds, _ in done])
    print(f"the command: at most {max(mb for _, mb in done):.0f} MB")


def send_sessions(options, folder, port):
    """Sends all sessions, those of at most DEVICES devices at once."""
    for first in range(1, options.sessions + 1, DEVICES):
        count = min(DEVICES, options.sessions + 1 - first)
        words = [f"{options.build}/bench/fleet_load", count, BLOCKS_A_SECOND, EVENTS, SECONDS, "-", port, first]
        load = subprocess.run(list(map(str, words)), cwd=folder, stdout=subprocess.PIPE, text=True)
        check(load.returncode == 0, f"a block was refused: {load.stdout}")


def measure(options, folder):
    sending, http_port = free_port(), free_port()
    database = os.path.join(folder, "fleet.db")
    collector = subprocess.Popen([f"{options.build}/bin/sojournd", "--listen", f"tcp://127.0.0.1:{sending}", "--http",
                                  f"127.0.0.1:{http_port}", "--database", database], stderr=subprocess.DEVNULL)
    try:
        wait_for("the collector", lambda: accepts_connections(sending) and accepts_connections(http_port))
        print(f"sojournd at its start: {resident_mb(collector.pid):.0f} MB")
        send_sessions(options, folder, sending)
        measure_removals(options, collector, http_port, database)
    finally:
        collector.terminate()
        collector.wait(PATIENCE_S)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=os.path.abspath)
    parser.add_argument("--sessions", type=int, default=6100)
    parser.add_argument("--removals", type=int, default=5)
    parser.add_argument("--folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measure(options, folder)


if __name__ == "__main__":
    main()
