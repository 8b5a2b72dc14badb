#!/usr/bin/env python3
"""Measures how often `sojourn check` reports a slowdown that does not exist, and how often it finds a planted one.

  tests/bench/diff_power.py BUILD_FOLDER [--runs N] [--draws N] [--percent P] [--load N]
                           [--database FILE]

Records one program again and again, unchanged (A) and with one of its functions slowed by P percent
(B), in turn, so that what else the machine does falls on both. Then draws ten sessions against ten:
A against A (an alarm of any function is false), and A against B (found: the planted function is
named as slower). With --load, so many busy loops run beside the recordings; with --load 0 each
begins at a moment when nothing else runs. Draws share recordings, so they are not independent; N runs bound how finely the
rates are known.
"""
import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time

PLANTED = "sort_records"
SIDE = 10


@contextlib.contextmanager
def busy_loops(count):
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count or 0)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def wait_for_calm():
    """Waits until only this process has run for a tenth of a second."""
    calm = 0
    while calm < 10:
        with open("/proc/loadavg", encoding="ascii") as file:
            calm = calm + 1 if file.read().split()[3].startswith("1/") else 0
        time.sleep(0.01)


def record(sojourn, subject, database, percent):
    subprocess.run([sojourn, "record", "--quiet", "-o", database, "--name", f"slow{percent}", "--",
                    subject, str(percent)], check=True, stdout=subprocess.DEVNULL)


def names_of(sojourn, database):
    done = subprocess.run([sojourn, "sql", "--csv", "SELECT name, session_id FROM sessions", database],
                          check=True, capture_output=True, text=True)
    sets = {}
    for line in done.stdout.splitlines()[1:]:
        name, number = line.split(",")
        sets.setdefault(name, []).append(number)
    return sets


def check(sojourn, database, a, b):
    done = subprocess.run([sojourn, "check", "--baseline", ",".join(a), ",".join(b), database],
                          capture_output=True, text=True)
    if done.returncode not in (0, 4, 5):
        sys.exit(f"check failed: {done.stderr}")
    return done.returncode == 4, done.stdout


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("build")
    arguments.add_argument("--runs", type=int, default=40)
    arguments.add_argument("--draws", type=int, default=200)
    arguments.add_argument("--percent", type=int, default=5)
    arguments.add_argument("--load", type=int)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--database")
    options = arguments.parse_args()
    sojourn = os.path.join(options.build, "bin", "sojourn")
    subject = os.path.join(options.build, "bench", "diff_subject")
    random.seed(options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        database = options.database or os.path.join(scratch, "runs.db")
        if not os.path.exists(database):
            with busy_loops(options.load):
                for percent in [0, options.percent] * options.runs:
                    if options.load == 0:
                        wait_for_calm()
                    record(sojourn, subject, database, percent)
        sets = names_of(sojourn, database)
        plain, slowed = sets["slow0"], sets[f"slow{options.percent}"]
        false_alarms = found = 0
        for _ in range(options.draws):
            drawn = random.sample(plain, 2 * SIDE)
            alarm, _text = check(sojourn, database, drawn[:SIDE], drawn[SIDE:])
            false_alarms += alarm
            alarm, text = check(sojourn, database, random.sample(plain, SIDE),
                                random.sample(slowed, SIDE))
            found += alarm and PLANTED in text
        beside = "" if options.load is None else f"load {options.load}: "
        print(f"| {beside}{len(plain)} + {len(slowed)} runs, {options.draws} draws of {SIDE} against {SIDE} "
              f"| false alarms {100 * false_alarms / options.draws:.1f} % "
              f"| planted {options.percent} % found {100 * found / options.draws:.1f} % |")


if __name__ == "__main__":
    main()
