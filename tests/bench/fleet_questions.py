#!/usr/bin/env python3
"""1,000 devices send 10 blocks a second each to sojournd, while every question process answers SQL without a pause:
delay of the acknowledgements, CPU of sojournd's threads for each block, and answers a second.

  tests/bench/fleet_questions.py BUILD_FOLDER [--devices N] [--seconds N] [--clients N] [--folder FOLDER]

--clients 0 measures without questions. The CPU is user and system time from the start of sojournd to the last
acknowledgement, so it depends little on the load of the machine; the delays depend on it. FOLDER holds the database.
Statements repeat, as those of dashboards do, so the audit gets few rows. The simulated devices run before sojournd
(nice -5, for root only), because real ones are on other machines.
"""
import argparse
import collections
import http.client
import os
import random
import subprocess
import sys
import tempfile
import threading
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system", "support"))
from fleet_testing import accepts_connections, free_port
from sojourn_testing import PATIENCE_S, check, wait_for

BLOCKS_A_SECOND, EVENTS = 10, 100
QUESTIONS = (
    "SELECT function_id, count(*) AS n, sum(duration_ns) AS ns FROM calls WHERE session_id = :session GROUP BY 1",
    "SELECT * FROM calls WHERE session_id = :session ORDER BY duration_ns DESC LIMIT 100",
    "SELECT function_id, sum(calls) AS n FROM function_stats GROUP BY 1 ORDER BY n DESC LIMIT 100",
    "SELECT count(*) AS n, sum(stored_calls) AS calls FROM sessions",
)


class Clients:
    """Threads that ask one question after the other, until stop()."""

    def __init__(self, count, port, token, devices):
        self.port, self.token, self.devices = port, token, devices
        self.is_over = False
        self.answers = collections.Counter()
        self.threads = [threading.Thread(target=self.ask_all, args=(number,)) for number in range(count)]
        for thread in self.threads:
            thread.start()

    def ask_all(self, number):
        dice = random.Random(number)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        while not self.is_over:
            sql = dice.choice(QUESTIONS)
            values = {"sql": sql, "p.session": dice.randint(1, self.devices)} if ":session" in sql else {"sql": sql}
            connection.request("GET", "/api/v1/sql?" + urllib.parse.urlencode(values),
                               headers={"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            answer.read()
            self.answers[answer.status] += 1

    def stop(self):
        self.is_over = True
        for thread in self.threads:
            thread.join()


def threads_cpu(pid):
    """CPU seconds of each thread of a process, by name."""
    used = collections.Counter()
    for thread in os.listdir(f"/proc/{pid}/task"):
        folder = f"/proc/{pid}/task/{thread}"
        with open(f"{folder}/schedstat", encoding="ascii") as times, open(f"{folder}/comm", encoding="utf-8") as name:
            used[name.read().strip()] += int(times.read().split()[0]) / 1e9
    return used


def measure(options, folder):
    sending, http_port = free_port(), free_port()
    database = os.path.join(folder, "fleet.db")
    collector = subprocess.Popen([f"{options.build}/bin/sojournd", "--listen", f"tcp://127.0.0.1:{sending}", "--http",
                                  f"127.0.0.1:{http_port}", "--database", database], stderr=subprocess.DEVNULL)
    clients = None
    before_others = (lambda: os.nice(-5)) if os.geteuid() == 0 else None
    try:
        wait_for("the collector", lambda: accepts_connections(sending) and accepts_connections(http_port))
        with open(database + ".token", encoding="ascii") as file:
            token = file.read().strip()
        clients = Clients(options.clients, http_port, token, options.devices)
        with subprocess.Popen([f"{options.build}/bench/fleet_load", str(options.devices), str(BLOCKS_A_SECOND),
                               str(EVENTS), str(options.seconds), "-", str(sending)], cwd=folder, preexec_fn=before_others,
                              stdout=subprocess.PIPE, text=True) as load:
            delays = [load.stdout.readline().strip() for _ in range(2)]
            used, answers = threads_cpu(collector.pid), collections.Counter(clients.answers)
            print("\n".join([*delays, load.stdout.read().strip()]))
        check(load.returncode == 0, "a block was refused")
    finally:
        if clients is not None:
            clients.stop()
        collector.terminate()
        collector.wait(PATIENCE_S)
    blocks = int(delays[-1].split()[0])
    parts = ", ".join(f"{name} {1e6 * used[name] / blocks:.1f}" for name in ("ingest:writer", "edge"))
    print(f"CPU of sojournd: {1e6 * sum(used.values()) / blocks:.1f} us a block ({parts}); {sum(answers.values())} answers, "
          f"by HTTP status {dict(answers)}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=os.path.abspath)
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measure(options, folder)


if __name__ == "__main__":
    main()
