#!/usr/bin/env python3
"""Measures what watching a thread of a Java program costs while it answers, how long after a miss the dump lies in its
file, and what a value of a Java method costs. Medians over the rounds, with the interval that holds the median
with 90 %; with and without in the same round.

  tests/bench/java_stalls.py BUILD_FOLDER [--rounds N] [--seconds N]
"""
import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import tempfile
import time

from budget import interval

HERE = os.path.dirname(os.path.abspath(__file__))
CALLS = 400000
FLIGHT = {"policy": 1, "mode": "flight", "flight": {"before": "1m", "after": "100ms", "memory": "8M"},
          "triggers": [{"on": "jank", "loop": "events", "longer_than": "50ms", "do": ["dump"]}]}
MISSED = """SELECT s.started_realtime_ns + r.at_ns - (r.payload ->> 'age_ns') + (r.payload ->> 'waited_ns')
            FROM reports r JOIN sessions s USING (session_id) WHERE r.monitor = 'stall' LIMIT 1"""


class Bench:
    def __init__(self, build, scratch):
        self.build, self.scratch = os.path.abspath(build), scratch
        self.jar = os.path.join(self.build, "lib/sojourn.jar")
        for source in (f"{HERE}/workloads/StallBench.java", f"{HERE}/../samples/java/Jank.java"):
            subprocess.run(["javac", "-cp", self.jar, "-d", scratch, source], check=True)
        self.policy = os.path.join(scratch, "policy.json")
        with open(self.policy, "w", encoding="utf-8") as file:
            json.dump(FLIGHT, file)
        self.number = 0

    def java(self, *arguments):
        return ["java", "-cp", f"{self.scratch}:{self.jar}", *arguments]

    def direct(self):
        self.number += 1
        folder = os.path.join(self.scratch, f"files{self.number}")
        os.mkdir(folder)
        return folder, dict(os.environ, LD_PRELOAD=f"{self.build}/lib/libsojourn-direct.so",
                            SOJOURN_DIRECT=f"file://{folder}", SOJOURN_DIRECT_POLICY=self.policy)

    def idle(self, seconds, *watched):
        """Returns the CPU use of a resting program, in percent of a processor."""
        _, environment = self.direct()
        done = subprocess.run(self.java("StallBench", "idle", str(seconds), *watched), env=environment,
                              capture_output=True, text=True, check=True)
        return int(done.stdout) / seconds / 1e7

    def dump(self):
        """Milliseconds from the miss until the guilty call can be read in the file."""
        folder, environment = self.direct()
        program = subprocess.Popen(self.java("Jank"), env=environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL)
        written = None
        while written is None and program.poll() is None:
            for path, _, names in os.walk(folder):
                for name in names:
                    if name.endswith(".frames"):
                        with open(os.path.join(path, name), "rb") as file:
                            data = file.read()
                        # The cause of the child session, whose blocks follow at once.
                        written = time.time_ns() if b"jank events" in data else None
            time.sleep(0.002)
        program.communicate(b"x")
        subprocess.run([f"{self.build}/bin/sojourn", "flush", "--spool", folder], check=True,
                       stdout=subprocess.DEVNULL)
        with sqlite3.connect(os.path.join(folder, "sessions.db")) as database:
            missed = database.execute(MISSED).fetchone()[0]
        return (written - missed) / 1e6

    def call(self, *values):
        """Returns the CPU nanoseconds of a call of StallBench.valued."""
        done = subprocess.run(
            [f"{self.build}/bin/sojourn", "record", "-q", "--allow-unmatched", "--block-ms", "10000", "-o",
             os.path.join(self.scratch, f"calls{self.number}-{len(values)}.db"), *values, "--",
             *self.java("StallBench", "calls", str(CALLS))], capture_output=True, text=True, check=True)
        return int(done.stdout)


def tell(name, values, unit):
    low, high = interval(values)
    print(f"{name:44} {statistics.median(values):9.2f} {unit}  [{low:.2f}, {high:.2f}]")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options.build, scratch)
        watching, dumps, one, two = [], [], [], []
        for _ in range(options.rounds):
            watching.append(bench.idle(options.seconds, "watched") - bench.idle(options.seconds))
            dumps.append(bench.dump())
            plain = bench.call()
            one.append(bench.call("--value", "StallBench.valued(1:int)") - plain)
            two.append(bench.call("--value", "StallBench.valued(value:int) -> int") - plain)
    tell("watching, deadline 100 ms", watching, "% of a CPU")
    tell("from the miss to the dump in its file", dumps, "ms")
    tell("an argument", one, "ns")
    tell("an argument and the result", two, "ns")


main()
