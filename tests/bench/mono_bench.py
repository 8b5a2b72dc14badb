#!/usr/bin/env python3
"""What recording costs a Mono program: CPU nanoseconds of its thread per call, beyond the plain run of the
same round, by engine, and as a ratio to the floor of two clock reads of the same round; the least of many
short slices each. Medians over the rounds, with the interval that holds the median with 90 %. And starting
`mcs` with its own methods recorded: CPU of the program against a plain start that compiles anew, too.

  tests/bench/mono_bench.py BUILD_FOLDER [--rounds N]
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

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workloads", "MonoBench.cs")
CALLS = 50000
PAIR = ["--value", "Bench:Numbers(1:int)", "--value", "Bench:Numbers(2:int)", "--value",
        "Bench:Numbers(result:int)"]
TEXTS = ["--value", "Bench:Texts(1:string)", "--value", "Bench:Texts(2:string)"]
# name: workload, options of record; attach: of a running program
WAYS = {
    "callbacks": ("numbers", []),
    "callbacks, two numbers and a result": ("numbers", PAIR),
    "callbacks, two texts": ("texts", TEXTS),
    "not selected": ("numbers", ["--function", "no such", "--allow-unmatched"]),
    "not selected, inlined": ("small", ["--function", "no such", "--allow-unmatched"]),
    "hooked in place": ("numbers", "attach"),
}


def record_command(build, scratch, options):
    return [os.path.join(build, "bin/sojourn"), "record", "-q", "-o", os.path.join(scratch, "bench.db"),
            "--block-ms", "10000", *options, "--"]


def clean(scratch):
    for name in os.listdir(scratch):
        if name.startswith("bench.db"):
            os.unlink(os.path.join(scratch, name))


def plain(program, workload):
    done = subprocess.run(["mono", program, workload, str(CALLS)], capture_output=True, text=True, check=True,
                          stdin=subprocess.DEVNULL)
    return int(done.stdout) / 1000


def attached(build, program, workload, scratch):
    """In one process, before and while it is recorded: (ns, ns)."""
    process = subprocess.Popen(["mono", program, workload, str(CALLS)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    before = int(process.stdout.readline()) / 1000
    tool = os.path.join(build, "bin/sojourn")
    recorder = subprocess.Popen([tool, "attach", "-q", "-o", os.path.join(scratch, "bench.db"), str(process.pid)])
    while not re.search(rf"^ *{process.pid} .*recorded: ", subprocess.run(
            [tool, "ps", "--recorded"], capture_output=True, text=True, check=False).stdout, re.M):
        time.sleep(0.05)
    process.stdin.write("\n")
    process.stdin.flush()
    during = int(process.stdout.readline()) / 1000
    process.communicate()
    recorder.wait()
    return before, during


def one_way(build, program, way, scratch):
    workload, options = WAYS[way]
    clean(scratch)
    if options == "attach":
        return attached(build, program, workload, scratch)
    command = [*record_command(build, scratch, options), "mono"]
    done = subprocess.run([*command, program, workload, str(CALLS)], capture_output=True, text=True, check=True,
                          stdin=subprocess.DEVNULL)
    return plain(program, workload), int(done.stdout.split()[0]) / 1000


def print_calls(build, program, rounds, scratch):
    found = {way: [] for way in WAYS}
    floors = []
    for _ in range(rounds):
        for way, samples in found.items():
            floor = read_floor(build)
            before, during = one_way(build, program, way, scratch)
            floors.append(floor)
            samples.append((before, during - before, (during - before) / floor))
    print(f"floor {statistics.median(floors):.1f} ns (two clock reads), {min(floors):.1f} to {max(floors):.1f}\n")
    print("| way | plain ns | more ns a call | / floor of the round | interval |\n|---|---|---|---|---|")
    for way, samples in found.items():
        low, high = interval([ratio for _, _, ratio in samples])
        middle = [statistics.median(column) for column in zip(*samples)]
        print(f"| {way} | {middle[0]:.1f} | {middle[1]:.2f} | {middle[2]:.2f} | {low:.2f} to {high:.2f} |")


def cpu_of(command, environment):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def print_start(build, rounds, scratch):
    """The recorder's own CPU is not the program's: the summary has it."""
    anew = dict(os.environ, MONO_ENV_OPTIONS="-O=-aot")
    ratios, methods = [], 0
    for _ in range(rounds):
        clean(scratch)
        base = cpu_of(["mcs", "--help"], anew)
        summary = os.path.join(scratch, "summary.json")
        command = record_command(build, scratch, ["--function", "Mono.CSharp.*", "--allow-unmatched",
                                                  "--summary", summary])
        subprocess.run([*command, "mcs", "--help"], capture_output=True, check=True)
        with open(summary, encoding="utf-8") as file:
            told = json.load(file)
        methods = told["calls"]
        ratios.append(told["traced_cpu_ns"] / 1e9 / base)
    low, high = interval(ratios)
    print(f"\nstart of mcs, its own methods recorded ({methods} calls): {statistics.median(ratios):.2f} times the CPU "
          f"of a plain start that compiles anew, too ({low:.2f} to {high:.2f})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    build = os.path.abspath(arguments.build)
    with tempfile.TemporaryDirectory() as scratch:
        program = os.path.join(scratch, "MonoBench.exe")
        subprocess.run(["mcs", SOURCE, f"-out:{program}"], check=True)
        print_calls(build, program, arguments.rounds, scratch)
        print_start(build, arguments.rounds, scratch)


if __name__ == "__main__":
    main()
