#!/usr/bin/env python3
"""Measures what recording costs a Java program, beside the plain run of the same round: CPU nanoseconds of its thread a
call, in programs that are started and in one that is attached to and left, JVMTI's MethodEntry and MethodExit
beside, and the ratio to the floor of two clock reads of the same round; CPU of javac with probes in all its
classes, and of a small program whose own classes only have them; and what a start takes longer. Medians over
the rounds, with the interval that holds the median with 90 %.

  tests/bench/jvm_bench.py BUILD_FOLDER [--rounds N] [--only PART]    parts: calls, javac, budget, small, start
"""
import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import tempfile
import time

from budget import interval
from objc import read_floor

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workloads", "JvmBench.java")
SLICES = 1500
SOURCES = 300
CHAIN = 10  # classes that extend one another: javac looks for overridden methods in all of them
WAYS = ["engine A", "attached", "left again", "engine B", "flag alone", "JVMTI events"]
TRACED = ["--java-engine", "runtime"]
BUDGET = ["--budget", "5%"]


class Bench:
    def __init__(self, build, scratch):
        self.build, self.scratch = build, scratch
        self.tool = os.path.join(build, "bin/sojourn")
        subprocess.run(["javac", "-d", scratch, SOURCE], check=True)

    def java(self, *arguments, options=()):
        return ["java", *options, "-cp", self.scratch, "JvmBench", *arguments]

    def record(self, *options):
        for name in os.listdir(self.scratch):
            if name.startswith("bench.db"):
                os.unlink(os.path.join(self.scratch, name))
        return [self.tool, "record", "-q", "-o", os.path.join(self.scratch, "bench.db"), "--summary",
                os.path.join(self.scratch, "summary.json"), *options, "--"]

    def summary(self):
        with open(os.path.join(self.scratch, "summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def fib(self, prefix=(), options=()):
        done = subprocess.run([*prefix, *self.java("fib", str(SLICES), options=options)], capture_output=True,
                              text=True, check=True, stdin=subprocess.DEVNULL)
        return int(done.stdout) / 1000

    def attached(self):
        """Measures one process before, while and after it is recorded."""
        program = subprocess.Popen(self.java("fib", str(SLICES), "again"), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        before = int(program.stdout.readline()) / 1000
        recorder = subprocess.Popen([self.tool, "attach", "-q", "-o", os.path.join(self.scratch, "bench.db.a"),
                                     str(program.pid)])
        while not re.search(rf"^ *{program.pid} .*recorded: ", subprocess.run(
                [self.tool, "ps", "--recorded"], capture_output=True, text=True, check=False).stdout, re.M):
            time.sleep(0.05)
        during = self.again(program)
        recorder.send_signal(2)
        recorder.wait()
        os.unlink(os.path.join(self.scratch, "bench.db.a"))
        after = self.again(program)
        program.communicate()
        return before, during, after

    @staticmethod
    def again(program):
        program.stdin.write("\n")
        program.stdin.flush()
        return int(program.stdout.readline()) / 1000


def cpu_of(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(label, values, digits=2):
    low, high = interval(values)
    return f"| {label} | {statistics.median(values):.{digits}f} | {low:.{digits}f} to {high:.{digits}f} |"


def print_calls(bench, rounds):
    found = {way: [] for way in WAYS}
    floors, plains = [], []
    peer = os.path.join(bench.build, "bench/libjvmti_peer.so")
    for _ in range(rounds):
        floor, plain = read_floor(bench.build), bench.fib()
        before, during, after = bench.attached()
        more = {"engine A": bench.fib(bench.record()) - plain, "attached": during - before, "left again": after - before,
                "engine B": bench.fib(bench.record(*TRACED)) - plain,
                "flag alone": bench.fib(options=["-XX:+DTraceMethodProbes"]) - plain,
                "JVMTI events": bench.fib(options=[f"-agentpath:{peer}"]) - plain}
        floors.append(floor)
        plains.append(plain)
        for way, value in more.items():
            found[way].append((value, value / floor))
    print(f"floor {statistics.median(floors):.1f} ns (two clock reads); plain {statistics.median(plains):.2f} ns a call\n")
    print("| way | more ns a call | / floor of the round | interval |\n|---|---|---|---|")
    for way, samples in found.items():
        low, high = interval([ratio for _, ratio in samples])
        middle = [statistics.median(column) for column in zip(*samples)]
        print(f"| {way} | {middle[0]:.1f} | {middle[1]:.2f} | {low:.2f} to {high:.2f} |")


def write_sources(folder):
    os.makedirs(folder)
    paths = []
    for number in range(SOURCES):
        methods = "\n".join(f"  int m{i}(int x) {{ return x < {i} ? m{(i + 1) % 20}(x + 1) : Math.max(x, {i}); }}"
                            for i in range(20))
        paths.append(os.path.join(folder, f"Made{number}.java"))
        with open(paths[-1], "w", encoding="ascii") as file:
            file.write(f"class Made{number} extends {'Object' if number % CHAIN == 0 else f'Made{number - 1}'} {{\n{methods}\n}}\n")
    return paths


def traced_cpu(bench, options, command):
    subprocess.run([*bench.record("--block-ms", "10000", *options), *command], check=True, capture_output=True)
    told = bench.summary()
    return told["traced_cpu_ns"] / 1e9, told["calls"]


def print_javac(bench, rounds):
    sources = write_sources(os.path.join(bench.scratch, "sources"))
    command = ["javac", "-d", os.path.join(bench.scratch, "made"), *sources]
    everything = ["--java-system", "java.*"]
    ways = {"probes in all of the compiler's": everything, "the same, --budget 5%": [*everything, *BUDGET],
            "the same by --java-engine runtime": [*everything, *TRACED]}
    ratios, calls = {way: [] for way in ways}, {}
    for _ in range(rounds):
        plain = cpu_of(command)
        for way, options in ways.items():
            cpu, calls[way] = traced_cpu(bench, options, command)
            ratios[way].append(cpu / plain)
    for way, found in ratios.items():
        print(row(f"javac, {SOURCES} classes, {way} ({calls[way]} calls)", found))


def print_budget(bench, rounds):
    """Prints the ratio for a long program. The CPU time of its start is subtracted from both times."""
    nothing = bench.java("mixed", "0")
    ways = {"no budget": ([], bench.java("mixed", "20")), "--budget 5%": (BUDGET, bench.java("mixed", "400"))}
    ratios = {way: [] for way in ways}
    for _ in range(rounds):
        for way, (options, work) in ways.items():
            plain = cpu_of(work) - cpu_of(nothing)
            ratios[way].append((traced_cpu(bench, options, work)[0] - traced_cpu(bench, options, nothing)[0]) / plain)
    for way, found in ratios.items():
        print(row(f"mixed work, {way}, start taken off", found, 3))


def print_small(bench, rounds):
    ratios, calls = [], 0
    for _ in range(rounds):
        plain = cpu_of(bench.java("text", "6000"))
        cpu, calls = traced_cpu(bench, [], bench.java("text", "6000"))
        ratios.append(cpu / plain)
    print(row(f"small program, system filter ({calls} calls)", ratios))


def wall_of(command):
    start = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    return time.monotonic() - start


def print_start(bench, rounds):
    more, own = [], []
    for _ in range(rounds):
        more.append(wall_of([*bench.record(), *bench.java("hello")]) - wall_of(bench.java("hello")))
        own.append(wall_of([*bench.record(), "/bin/true"]) - wall_of(["/bin/true"]))
    print(row("start and end, seconds longer than plain", more, 3))
    print(row("the same of /bin/true: the recorder's own", own, 3))
    print(row("what Java adds to that", [all_of - of for all_of, of in zip(more, own)], 3))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=["calls", "javac", "budget", "small", "start"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(os.path.abspath(arguments.build), scratch)
        if arguments.only in (None, "calls"):
            print_calls(bench, arguments.rounds)
        print("\n| what | times its CPU, or as said | interval |\n|---|---|---|")
        for name, part in (("javac", print_javac), ("budget", print_budget), ("small", print_small),
                           ("start", print_start)):
            if arguments.only in (None, name):
                part(bench, arguments.rounds)


if __name__ == "__main__":
    main()
