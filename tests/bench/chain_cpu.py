#!/usr/bin/env python3
"""CPU per call behind the program's own threads: recorder, embedded collector and durable database, of
several builds by turns.

  tests/bench/chain_cpu.py [--rounds N] [--only NAME] BUILD_FOLDER...

The programs of overhead.py are recorded whole with default settings. Told are ns of CPU a call of the
whole `sojourn record` less those of the program's threads, and the ratio to the first build in the same
round: median, least and greatest. The order of the builds turns with each round. The first build's
subjects are recorded by all.
"""
import argparse
import json
import os
import statistics
import tempfile

import overhead
import subjects


def behind_ns(sojourn, command, stdin, scratch):
    """Returns the ns of CPU time and the bytes of the database for each call."""
    database, summary = os.path.join(scratch, "chain.db"), os.path.join(scratch, "summary.json")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    cpu = overhead.cpu_of([sojourn, "record", "--quiet", "-o", database, "--summary", summary, "--", *command], stdin)
    with open(summary, encoding="utf-8") as file:
        told = json.load(file)
    return (cpu * 1e9 - told["traced_cpu_ns"]) / told["calls"], os.path.getsize(database) / told["calls"]


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="the subject of this name")
    parser.add_argument("builds", nargs="+")
    options = parser.parse_args()
    builds = [os.path.abspath(build) for build in options.builds]
    rows = [["program", "build", "ns a call", "ratio", "bytes a call"]]
    for name, command, stdin in subjects.programs(builds[0]):
        if options.only not in (None, name):
            continue
        taken = {build: [] for build in builds}
        with tempfile.TemporaryDirectory(prefix="sojourn-bench-") as scratch:
            for number in range(options.rounds):
                for build in builds if number % 2 == 0 else reversed(builds):
                    taken[build].append(behind_ns(os.path.join(build, "bin", "sojourn"), command, stdin, scratch))
        for build in builds:
            ratios = [now[0] / first[0] for now, first in zip(taken[build], taken[builds[0]])]
            rows.append([name, build, spread([ns for ns, _ in taken[build]], 1), spread(ratios, 2),
                         f"{statistics.median(size for _, size in taken[build]):.2f}"])
    print(subjects.machine(builds[0]))
    subjects.print_table(rows, False)


if __name__ == "__main__":
    main()
