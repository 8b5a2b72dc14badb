#!/usr/bin/env python3
"""The first insight into a program, by one command: how much longer `sojourn record -- PROGRAM ...` takes
than the program alone, up to the functions that took the most on the screen; without and with a cached plan.
Several builds are measured by turns, beside so many processes that do nothing but use a core.

first_insight.py [--rounds N] [--load N] [--program "WORDS"] BUILD_FOLDER...
"""
import argparse
import json
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

PERL = ["/usr/bin/perl", "-e", 'for (1..3000) { $h{"k$_"} = join "", map { chr 97 + $_ % 26 } 1..9 } print scalar(keys %h), "\\n"']
KINDS = ("no plan cached", "plan cached")


def children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def take(words, environment):
    """Seconds of the clock, seconds of CPU, what it said."""
    cpu, start = children_cpu(), time.perf_counter()
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return time.perf_counter() - start, children_cpu() - cpu, done.stderr


def measure(build, words, environment, database):
    """Seconds until the functions are on the screen, of CPU, and that the program waited for its plans."""
    summary = database + ".json"
    took, cpu, shown = take([os.path.join(build, "bin", "sojourn"), "record", "--summary", summary, "-o", database, "--", *words],
                            environment)
    if "most time" not in shown:
        sys.exit(f"no insight: {shown}")
    with open(summary, encoding="utf-8") as file:
        planned = json.load(file)["plan_ns"] / 1e9
    return took, cpu, planned


def measure_all(options, words, folder):
    plain, beyond = [], {(build, kind): [] for build in options.builds for kind in KINDS}
    for number in range(options.rounds):
        alone, alone_cpu, _ = take(words, dict(os.environ))
        plain.append(alone)
        for place, build in enumerate(options.builds):
            environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(folder, f"{number}-{place}")}
            for kind in KINDS:
                database = os.path.join(folder, f"{number}-{place}-{kind[:2]}.db")
                took, cpu, planned = measure(build, words, environment, database)
                beyond[build, kind].append((planned, took - alone, cpu - alone_cpu))
                os.unlink(database)
    return plain, beyond


def show(plain, beyond, words):
    def interval(values):
        return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"

    print(f"{words[0]} alone: {statistics.median(plain):.3f} s; median (range)\n")
    print("| build | | waited for plans, s | beyond the program, s | CPU beyond the program, s |\n|---|---|---|---|---|")
    for (build, kind), samples in beyond.items():
        print(f"| {build} | {kind} | {' | '.join(interval(values) for values in zip(*samples))} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("builds", nargs="+")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--program", type=shlex.split, default=PERL)
    options = parser.parse_args()
    busy = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) for _ in range(options.load)]
    try:
        with tempfile.TemporaryDirectory() as folder:
            plain, beyond = measure_all(options, options.program, folder)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    show(plain, beyond, options.program)


main()
