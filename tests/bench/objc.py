#!/usr/bin/env python3
"""Measures what recording costs an Objective-C program: CPU nanoseconds of its thread per message, beyond the
plain run of the same round, by technique and as a ratio to the two-clock floor of the same round.
Medians over the rounds, with the interval that holds the median with 90 %.

  tests/bench/objc.py BUILD_FOLDER [--rounds N] [--only WORKLOAD]
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

from budget import interval

WORKLOADS = {"empty": 1000000, "work": 700000, "foundation": 30}
WAYS = {
    "methods": ["--objc", "methods"],
    "methods with receivers": ["--objc", "methods", "--receivers"],
    "dispatch": ["--objc", "dispatch"],
    "methods with an argument": ["--objc", "methods", "--value", "-[BenchObject *](1:ulong)"],
    "methods with a result": ["--objc", "methods", "--value", "-[BenchObject *](result:ulong)"],
    "methods with a text": ["--objc", "methods", "--value", "-[BenchObject *](1:string)"],
    "methods, not selected": ["--objc", "methods", "--function", "no such function", "--allow-unmatched"],
    "dispatch, not selected": ["--objc", "dispatch", "--function", "no such function"],
}


def run_one(build, workload, way, scratch):
    """Returns the CPU ns of the workload and the number of recorded calls."""
    command = [os.path.join(build, "bench/objc_bench"), workload, str(WORKLOADS[workload])]
    summary = os.path.join(scratch, "summary.json")
    if way is not None:
        libraries = ["--module", "libgnustep-base*"] if workload == "foundation" else []
        database = os.path.join(scratch, "bench.db")
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(database + suffix):
                os.unlink(database + suffix)
        command = [
            os.path.join(build, "bin/sojourn"), "record", "-q", "-o", database, "--summary",
            summary, "--block-ms", "10000", *WAYS[way], *libraries, "--", *command,
        ]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    calls = 0
    if way is not None:
        with open(summary, encoding="utf-8") as file:
            calls = json.load(file)["calls"]
    return int(done.stdout), calls


def ways_of(workload):
    """Values are of the benchmark's own class, whose methods the Foundation workload does not send."""
    return [way for way, options in WAYS.items()
            if "--value" not in options or workload != "foundation"]


def start_calls(build, way, scratch):
    """Calls of the program's start, which the workload's figure does not count."""
    before = WORKLOADS["foundation"]
    WORKLOADS["foundation"] = 0
    calls = run_one(build, "foundation", way, scratch)[1]
    WORKLOADS["foundation"] = before
    return calls


def taken_out(build, workload, technique, scratch):
    """Returns the CPU ns of the workload in one process: before it is hooked, and after the detach."""
    environment = dict(os.environ, OBJC_SWITCH_FOLDER=scratch)
    if technique == "dispatch":
        environment["LD_PRELOAD"] = os.path.join(build, "lib/libobjc_switch.so")
    command = [os.path.join(build, "bench/objc_bench"), workload, str(WORKLOADS[workload]), "again"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env=environment)
    before = int(process.stdout.readline())
    if technique == "methods":
        subprocess.run([os.path.join(build, "bin/sojourn"), "attach", "-q", "--libs", "--receivers",
                        "--for", "200ms", "-o", os.path.join(scratch, "out.db"), str(process.pid)],
                       check=True)
        os.unlink(os.path.join(scratch, "out.db"))
    output, _ = process.communicate("\n")
    for name in os.listdir(scratch):
        if name.endswith(".arena"):
            os.unlink(os.path.join(scratch, name))
    return before, int(output.split()[-1])


def print_taken_out(build, rounds, scratch):
    print("\n| workload | way | ns before | ns after it was taken out | ratio |\n|---|---|---|---|---|")
    for workload, count in WORKLOADS.items():
        for technique in ("methods", "dispatch"):
            pairs = [taken_out(build, workload, technique, scratch) for _ in range(rounds)]
            before, after = (min(column) / count for column in zip(*pairs))
            print(f"| {workload} | {technique} | {before:.2f} | {after:.2f} | {after / before:.3f} |")


def read_floor(build):
    done = subprocess.run([os.path.join(build, "bench/floor")], capture_output=True, check=True,
                          text=True)
    return float(done.stdout)


def one_round(build, workloads, starts, scratch):
    """Returns (floor, plain ns for each message, additional ns for each message) by workload and way."""
    found = {}
    for workload in workloads:
        count, seen = WORKLOADS[workload], {}
        for way in ways_of(workload):
            floor = read_floor(build)
            plain, _ = run_one(build, workload, None, scratch)
            taken, calls = run_one(build, workload, way, scratch)
            if workload == "foundation":
                calls = max(calls - starts[way], 0)
            # For messages that are not selected, the cost is divided by the number of messages in the workload's other rows.
            calls = seen[way.split(",")[0]] if "," in way else max(calls, count)
            seen[way] = calls
            found[workload, way] = (floor, plain / count, (taken - plain) / calls)
    return found


def print_rounds(rounds):
    floors = [floor for found in rounds for floor, _, _ in found.values()]
    print(f"floor {statistics.median(floors):.1f} ns (two clock reads), {min(floors):.1f} to "
          f"{max(floors):.1f}\n")
    print("| workload | way | plain ns | more ns a message | / floor of the round | interval |")
    print("|---|---|---|---|---|---|")
    for workload, way in rounds[0]:
        samples = [found[workload, way] for found in rounds]
        ratios = [more / floor for floor, _, more in samples]
        low, high = interval(ratios)
        print(f"| {workload} | {way} | {statistics.median(plain for _, plain, _ in samples):.1f} "
              f"| {statistics.median(more for _, _, more in samples):.2f} "
              f"| {statistics.median(ratios):.2f} | {low:.2f} to {high:.2f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=WORKLOADS, help="one workload, and no taking out")
    arguments = parser.parse_args()
    workloads = [arguments.only] if arguments.only else list(WORKLOADS)
    with tempfile.TemporaryDirectory() as scratch:
        starts = {way: start_calls(arguments.build, way, scratch)
                  for way in ways_of("foundation") if "foundation" in workloads}
        print_rounds([one_round(arguments.build, workloads, starts, scratch)
                      for _ in range(arguments.rounds)])
        if not arguments.only:
            print_taken_out(arguments.build, arguments.rounds, scratch)


if __name__ == "__main__":
    main()
