#!/usr/bin/env python3
"""Measures what recording costs: nanoseconds and bytes per call, for Sojourn and for uftrace (Debian's, fully
dynamic) on the same unmodified programs in the same run, as ratios to the machine's own two-clock
floor.

  tests/bench/overhead.py BUILD_FOLDER [--rounds N] [--long] [--no-uftrace] [--markdown]
                          [--only NAME] [--mode MODE]

Each program is recorded in three modes, in the same rounds: "10ns", times in steps of 10 ns; "exact",
each tick of the clock; "adaptive", the calls of short functions counted rather than timed (--clock
adaptive), of which "counted" is the share of records without a clock.

CPU figures are minima over interleaved rounds of (user + system of the traced program) minus those of
the plain run, divided by the calls. "whole chain" adds everything Sojourn's recorder and collector
used to plan, drain, encode, store durably and rebuild; for uftrace it adds `uftrace record` itself,
but no reading of its file.

"app ns/call" is with recorder and collector on the same machine: on two cores they need more than the one
that the program leaves, so that it waits for them and comes back to cold caches. app_cost.py measures
the program alone, with the collector elsewhere, as on a device.
"""
import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile

import subjects


def children_cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cpu_of(command, stdin=None, **options):
    before = children_cpu()
    with open(stdin or os.devnull, "rb") as source:
        subprocess.run(command, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       check=True, **options)
    return children_cpu() - before


def folder_bytes(folder):
    return sum(os.path.getsize(os.path.join(root, name))
               for root, _, names in os.walk(folder) for name in names)


MODES = {"10ns": [], "exact": ["--resolution", "exact"], "adaptive": ["--clock", "adaptive"]}


class Subject:
    def __init__(self, mode, name, command, stdin=None):
        self.mode, self.name, self.command, self.stdin = mode, name, command, stdin
        self.plain = self.app = self.chain = self.uftrace = float("inf")
        self.calls = self.bytes = 0
        self.uftrace_calls = self.uftrace_bytes = 0

    def round(self, sojourn, scratch, with_uftrace):
        self.plain = min(self.plain, cpu_of(self.command, self.stdin))
        self.record(sojourn, scratch)
        if with_uftrace:
            self.record_uftrace(scratch)

    def record(self, sojourn, scratch):
        database, summary = os.path.join(scratch, "bench.db"), os.path.join(scratch, "summary.json")
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(database + suffix):
                os.unlink(database + suffix)
        chain = cpu_of([sojourn, "record", "--quiet", *MODES[self.mode], "-o", database, "--summary", summary, "--", *self.command],
                       self.stdin)
        with open(summary, encoding="utf-8") as file:
            told = json.load(file)
        self.calls, self.lost = told["calls"], told["lost_calls"]
        self.counted = told["untimed_records"] / max(told["records"], 1)
        self.app = min(self.app, told["traced_cpu_ns"] / 1e9)
        self.chain = min(self.chain, chain)
        self.bytes = os.path.getsize(database)
        self.step_ns = subjects.step_ns(database)
        self.hooked, self.functions = told["hooked"], told["functions"]

    def record_uftrace(self, scratch):
        folder = os.path.join(scratch, "uftrace.data")
        shutil.rmtree(folder, ignore_errors=True)
        self.uftrace = min(self.uftrace, cpu_of(
            ["uftrace", "record", "--no-libcall", "-P", ".", "-d", folder, *self.command], self.stdin))
        self.uftrace_bytes = folder_bytes(folder)
        data = sum(os.path.getsize(os.path.join(folder, name))
                   for name in os.listdir(folder) if name.endswith(".dat"))
        self.uftrace_calls = data // 32

    def row(self, floor):
        app, chain = ((seconds - self.plain) / self.calls * 1e9 for seconds in (self.app, self.chain))
        row = [self.name, f"{self.mode}, in steps of {self.step_ns:.2f} ns", f"{self.counted:.0%}", f"{self.calls:,}", str(self.lost),
               f"{self.hooked}/{self.functions}",
               f"{floor:.1f}", f"{app:.1f}", f"{app / floor:.2f}", f"{chain:.1f}",
               f"{self.bytes / self.calls:.2f}"]
        if self.uftrace_calls:
            uftrace = (self.uftrace - self.plain) / self.uftrace_calls * 1e9
            row += [f"{uftrace:.0f}", f"{uftrace / app:.1f}", f"{uftrace / chain:.1f}",
                    f"{self.uftrace_bytes / self.uftrace_calls:.1f}"]
        else:
            row += ["-"] * 4
        return row


HEADER = ["program", "times", "counted", "calls", "lost", "hooked", "floor ns", "app ns/call", "app/floor",
          "chain ns/call", "bytes/call", "uftrace ns/call",
          "uftrace/app", "uftrace/chain", "uftrace bytes/call"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--long", action="store_true", help="100 million calls of lua, without uftrace")
    parser.add_argument("--only", help="subjects whose name contains this")
    parser.add_argument("--no-uftrace", action="store_true")
    parser.add_argument("--mode", action="append", choices=MODES, help="only this one (repeatable)")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    programs = [("lua, long", subjects.lua(build, 30))] if options.long else subjects.programs(build)
    measured = [Subject(mode, *program) for program in programs
                if options.only is None or options.only in program[0]
                for mode in options.mode or MODES]
    sojourn = os.path.join(build, "bin", "sojourn")
    floor = subjects.two_clocks_ns(build)
    with tempfile.TemporaryDirectory(prefix="sojourn-bench-") as scratch:
        for number in range(options.rounds):
            for subject in measured:
                print(f"round {number + 1}/{options.rounds}: {subject.name}, {subject.mode}", file=sys.stderr)
                with_uftrace = not options.long and not options.no_uftrace
                subject.round(sojourn, scratch, with_uftrace)
    print(subjects.machine(build))
    subjects.print_table([HEADER, *(subject.row(floor) for subject in measured)], options.markdown)


if __name__ == "__main__":
    main()
