#!/usr/bin/env python3
"""Measures what recording costs perl's own tests of its core: hundreds of files that start thousands of short
processes.

  tests/bench/perl_tests.py BUILD_FOLDER [BUILD_FOLDER ...] [--rounds N] [--every N]

Every N-th of the files is run by Debian's perl, one after the other, alone and recorded under each
build, by turns. Told are processes, calls, seconds of CPU of the programs with the agent in them,
medians with the interval that holds the median with 90 %, and their ratio to the run alone of the same
round; and what of it the agent says that it took to start and to hook.
"""
import argparse
import glob
import json
import os
import resource
import shlex
import sqlite3
import statistics
import subprocess
import tempfile

from budget import interval

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = ["base", "cmd", "op", "re", "uni", "io", "lib", "mro"]


def cpu_s(command, folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, env=dict(os.environ, PERL_CORE="1"), check=False,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def record(build, loop, folder, scratch):
    database, summary = os.path.join(scratch, "bench.db"), os.path.join(scratch, "summary.json")
    for name in os.listdir(scratch):
        os.unlink(os.path.join(scratch, name))
    cpu_s([os.path.join(build, "bin", "sojourn"), "record", "-q", "-o", database, "--summary", summary, "--",
           *loop], folder)
    with open(summary, encoding="utf-8") as file:
        told = json.load(file)
    with sqlite3.connect(database) as connection:
        processes, = connection.execute("SELECT count(*) FROM processes").fetchone()
    return told, processes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--every", type=int, default=8)
    options = parser.parse_args()
    subjects = os.path.join(os.path.abspath(options.builds[0]), "subjects")
    subprocess.run([os.path.join(HERE, "build_subjects"), subjects, "perl"], check=True)
    folder = os.path.join(subjects, "perl-source", "t")
    files = sorted(file for part in PARTS for file in glob.glob(f"{part}/*.t", root_dir=folder))[::options.every]
    loop = ["/bin/sh", "-c", "".join(f"perl {shlex.quote(file)}; " for file in files) + "true"]
    plain, recorded, told = [], {}, {}
    with tempfile.TemporaryDirectory(prefix="sojourn-bench-") as scratch:
        for _ in range(options.rounds):
            plain.append(cpu_s(loop, folder))
            for build in options.builds:
                told[build] = record(os.path.abspath(build), loop, folder, scratch)
                recorded.setdefault(build, []).append(told[build][0]["traced_cpu_ns"] / 1e9)
    print(f"{len(files)} files, {statistics.median(plain):.2f} s of CPU alone\n")
    print("| build | processes | calls | lost | programs, s | / alone | hooking, s | starting, s |")
    print("|---|---|---|---|---|---|---|---|")
    for build in options.builds:
        summary, processes = told[build]
        low, high = interval(recorded[build])
        ratios = [sample / alone for sample, alone in zip(recorded[build], plain)]
        print(f"| {build} | {processes:,} | {summary['calls']:,} | {summary['lost_calls']:,} "
              f"| {statistics.median(recorded[build]):.2f} ({low:.2f} to {high:.2f}) "
              f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) "
              f"| {summary['hook_ns'] / 1e9:.2f} | {summary['start_ns'] / 1e9:.2f} |")


if __name__ == "__main__":
    main()
