#!/usr/bin/env python3
"""Measures what recording costs the program's own threads, as exactly as a shared machine allows: nanoseconds
of CPU time per call, as a ratio to the machine's own two-clock floor and beside another recorder.

  tests/bench/app_cost.py BUILD_FOLDER [--samples N] [--minutes N] [--only NAME] [--markdown] [--any-speed]
                          [--beside "LD_PRELOAD=... OTHER=..." --beside-base "..."]

The collector is elsewhere, as on a device: the records are drained, encoded and spooled, but no collector is there
to take them. A virtual core that shares its hardware with someone else's runs at three quarters of its
speed or less, for seconds or hours: a sample counts only when all cores ran at their full speed right
before and right after it, at that of the fastest that this run has seen. Figures are differences of
medians, and of minima, of at least two such samples (always one of the case with the fewest next, until
all have N or the minutes are over). Where that speed does not come for hours, --any-speed counts all
samples: the cases still take turns, so they compare with each other, but not with other runs.

Each program is recorded with every clock and with adaptive ones (--clock adaptive: the calls of short
functions counted rather than timed), by turns.

"net of plain" is against the program run without anything. "net of base" is against the same recorder
that loads and patches nothing: so the figures of DESIGN.md's prototype were measured, its scan not
counted, with HOOK_FB=c, so that it records nearly all the calls that Sojourn does:

  --beside "LD_PRELOAD=agent.so HOOK_REC=8 HOOK_FB=c HOOK_MODE=b"
  --beside-base "LD_PRELOAD=agent.so HOOK_REC=8 HOOK_FB=c HOOK_MODE=n"

All figures are per call that Sojourn records. "more than beside" is what it costs more than the other
recorder, both net of base, round by round: the median, and the interval in which that lies with a
probability of 0.9 (bootstrap).
"""
import argparse
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import subjects

# If a run is slower than the fastest one by more than this, another process used the core.
FULL_SPEED = 1.08


class Sample:
    def __init__(self, cpu_ns, slowest_core):
        self.cpu_ns, self.slowest_core = cpu_ns, slowest_core


class Case:
    """One way to run a program; `run` returns its CPU time in ns."""

    def __init__(self, name, run):
        self.name, self.run, self.samples = name, run, []

    def counted(self, full_speed):
        return [sample.cpu_ns for sample in self.samples if sample.slowest_core <= full_speed]


def variables_of(words):
    return dict(word.split("=", 1) for word in words.split())


def runner(command, stdin, variables=None):
    def run():
        with open(stdin or os.devnull, "rb") as source:
            process = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env=dict(os.environ, **(variables or {})))
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{command[0]}: exit status {process.returncode}")
        return (usage.ru_utime + usage.ru_stime) * 1e9
    return run


class Recording:
    """Records the program for a collector that does not exist: port 9 is "discard", and closed."""

    def __init__(self, build, scratch, command, stdin, options):
        self.summary = os.path.join(scratch, "summary.json")
        self.spool = os.path.join(scratch, "spool")
        self.command = [os.path.join(build, "bin", "sojourn"), "record", "--quiet", "--collector",
                        "tcp://127.0.0.1:9", "--wait", "0", "--spool", self.spool, "--summary",
                        self.summary, *options, "--", *command]
        self.stdin = stdin
        self.calls = 0

    def run(self):
        shutil.rmtree(self.spool, ignore_errors=True)
        if os.path.exists(self.summary):
            os.unlink(self.summary)
        with open(self.stdin or os.devnull, "rb") as source:
            subprocess.run(self.command, stdin=source, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)
        with open(self.summary, encoding="utf-8") as file:
            told = json.load(file)
        if told["exit_code"] != 0:
            sys.exit(f"{self.command[-1]}: exit status {told['exit_code']}")
        if told["lost_calls"] != 0:
            sys.exit(f"{self.command[-1]}: {told['lost_calls']} calls lost")
        self.calls = told["calls"]
        self.counted = told["untimed_records"] / max(told["records"], 1)
        return told["traced_cpu_ns"]


class Cores:
    def __init__(self, build, any_speed):
        self.any_speed = any_speed
        self.program = os.path.join(build, "bench", "core_speed")
        self.best = min(self.slowest() for _ in range(20))

    def slowest(self):
        speed = float(subjects.output_of(self.program))
        self.best = min(speed, getattr(self, "best", speed))
        return speed

    def full_speed(self):
        return math.inf if self.any_speed else self.best * FULL_SPEED

    def wait(self, end):
        speed = self.slowest()
        while speed > self.full_speed() and time.monotonic() < end:
            time.sleep(0.05)
            speed = self.slowest()
        return speed


def collect(cases, cores, samples, end):
    def wanted():
        return min(cases, key=lambda case: (len(case.counted(cores.full_speed())), len(case.samples)))
    while time.monotonic() < end and len(wanted().counted(cores.full_speed())) < samples:
        case = wanted()
        before = cores.wait(end)
        cpu_ns = case.run()
        case.samples.append(Sample(cpu_ns, max(before, cores.slowest())))


def measure(program, options, build, scratch, cores):
    _, command, stdin = program
    recording = Recording(build, scratch, command, stdin, [])
    base = Recording(build, scratch, command, stdin, ["--function", "no such function", "--allow-unmatched"])
    adaptive = Recording(build, scratch, command, stdin, ["--clock", "adaptive"])
    cases = [Case("plain", runner(command, stdin)), Case("base", base.run), Case("recorded", recording.run),
             Case("adaptive", adaptive.run)]
    for case, words in (("beside", options.beside), ("beside base", options.beside_base)):
        if words:
            cases.append(Case(case, runner(command, stdin, variables_of(words))))
    collect(cases, cores, options.samples, time.monotonic() + options.minutes * 60)
    return recording.calls, {case.name: case for case in cases}


def net(counted, case, base, calls, of):
    """Returns how many ns a call of `case` costs more than one of `base`, by their medians or minima (`of`).
    Returns None if there are not enough samples."""
    if min(len(counted.get(case, [])), len(counted.get(base, []))) < 2:
        return None
    return (of(counted[case]) - of(counted[base])) / calls


def more_than_beside(counted, calls):
    """Returns how many ns a call costs more than with the other recorder: the median over the rounds, and an interval.
    Nine in ten of the medians of as many rounds, drawn with repetition (bootstrap), are in the interval."""
    rounds = list(zip(*(counted.get(case, []) for case in ("recorded", "base", "beside", "beside base"))))
    if len(rounds) < 2:
        return "-"
    differences = [((recorded - base) - (beside - beside_base)) / calls
                   for recorded, base, beside, beside_base in rounds]
    draws = random.Random(1)
    medians = sorted(statistics.median(draws.choices(differences, k=len(differences))) for _ in range(2000))
    return f"{statistics.median(differences):+.2f} ({medians[100]:+.2f} to {medians[-101]:+.2f})"


def row_of(name, calls, cases, cores, floor):
    counted = {key: case.counted(cores.full_speed()) for key, case in cases.items()}
    row = [name, f"{calls:,}", f"{floor:.1f}"]
    for case, base in (("recorded", "plain"), ("recorded", "base"), ("adaptive", "plain"), ("beside", "beside base")):
        median, least = (net(counted, case, base, calls, of) for of in (statistics.median, min))
        row += ["-", "-", "-"] if median is None else [f"{median:.2f}", f"{median / floor:.3f}", f"{least:.2f}"]
    return [*row, more_than_beside(counted, calls), ", ".join(f"{len(counted[key])}/{len(case.samples)}" for key, case in cases.items())]


HEADER = ["program", "calls", "floor ns", "net of plain", "/floor", "of minima", "net of base", "/floor", "of minima",
          "adaptive clocks, net of plain", "/floor", "of minima", "beside, net of its base", "/floor", "of minima",
          "more than beside", "samples counted"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--samples", type=int, default=7)
    parser.add_argument("--minutes", type=float, default=10, help="at most so long for each program")
    parser.add_argument("--any-speed", action="store_true", help="count samples at whatever speed")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--only", help="subjects whose name contains this")
    parser.add_argument("--beside", help="variables of another recorder, NAME=VALUE, separated by spaces")
    parser.add_argument("--beside-base", help="likewise: that one without its patches")
    options = parser.parse_args()
    if (options.beside is None) != (options.beside_base is None):
        parser.error("--beside and --beside-base go together")
    build = os.path.abspath(options.build)
    programs = [program for program in subjects.programs(build) if (options.only or "") in program[0]]
    cores = Cores(build, options.any_speed)
    rows = [HEADER]
    # The arena is in memory, as on a device.
    with tempfile.TemporaryDirectory(prefix="sojourn-bench-", dir="/dev/shm") as scratch:
        os.environ["XDG_RUNTIME_DIR"] = scratch
        for program in programs:
            print(f"measuring {program[0]}", file=sys.stderr)
            calls, cases = measure(program, options, build, scratch, cores)
            if calls == 0:
                print(f"{program[0]}: the cores were never at full speed within {options.minutes} minutes",
                      file=sys.stderr)
                continue
            rows.append(row_of(program[0], calls, cases, cores, subjects.two_clocks_ns(build)))
    print(subjects.machine(build))
    subjects.print_table(rows, options.markdown)
    if len(rows) <= len(programs):
        sys.exit(1)


if __name__ == "__main__":
    main()
