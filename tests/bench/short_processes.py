#!/usr/bin/env python3
"""Measures what recording costs programs that hardly live: a shell that runs one program again and again.

  tests/bench/short_processes.py BUILD_FOLDER [BUILD_FOLDER ...] [--rounds N] [--count N] [--program COMMAND]

Each round runs the loop alone and recorded under each build, by turns. Told are milliseconds of CPU a
process: of the program with the agent in it, and of all with the recorder and the embedded collector;
medians, with the interval that holds the median with 90 %; and by how much each build differs from
the first one in the same round.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile

from budget import interval


def cpu_ms(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e3


def record(build, loop, scratch):
    database, summary = os.path.join(scratch, "bench.db"), os.path.join(scratch, "summary.json")
    for name in os.listdir(scratch):
        os.unlink(os.path.join(scratch, name))
    everything = cpu_ms([os.path.join(build, "bin", "sojourn"), "record", "-q", "-o", database, "--summary",
                         summary, "--", *loop])
    with open(summary, encoding="utf-8") as file:
        told = json.load(file)
    return told["traced_cpu_ns"] / 1e6, everything


def row_of(samples, first, plain):
    low, high = interval(samples)
    median = statistics.median(samples)
    ratios = [sample / alone for sample, alone in zip(samples, plain)]
    differences = [sample - other for sample, other in zip(samples, first)]
    return f"{median:.2f} ({low:.2f} to {high:.2f}) | {statistics.median(ratios):.2f} | {statistics.median(differences):+.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--count", type=int, default=100, help="processes a round")
    parser.add_argument("--program", default="/bin/true")
    options = parser.parse_args()
    loop = ["/bin/sh", "-c",
            f"i=0; while [ $i -lt {options.count} ]; do {options.program}; i=$((i + 1)); done"]
    plain, programs, everything = [], {}, {}
    with tempfile.TemporaryDirectory(prefix="sojourn-bench-") as scratch:
        for _ in range(options.rounds):
            plain.append(cpu_ms(loop) / options.count)
            for build in options.builds:
                program, total = record(build, loop, scratch)
                programs.setdefault(build, []).append(program / options.count)
                everything.setdefault(build, []).append(total / options.count)
    print(f"{options.program}: {statistics.median(plain):.2f} ms alone\n")
    print("| build | program, ms | / alone | beside the first | all, ms | / alone | beside the first |")
    print("|---|---|---|---|---|---|---|")
    first = options.builds[0]
    for build in options.builds:
        print(f"| {build} | {row_of(programs[build], programs[first], plain)} "
              f"| {row_of(everything[build], everything[first], plain)} |")


if __name__ == "__main__":
    main()
