#!/usr/bin/env python3
"""What recording costs an Objective-C program: CPU nanoseconds of its thread per message, beyond the
plain run, by technique and as a ratio to the two-clock floor of the same minutes.

  tests/bench/objc.py BUILD_FOLDER [--rounds N]
"""
import argparse
import json
import os
import subprocess
import tempfile

WORKLOADS = {"empty": 3000000, "work": 2000000, "foundation": 100}
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
    """CPU ns of the workload and the calls recorded."""
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
    """CPU ns of the workload in one process before it is hooked and after it was set free."""
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    floors, best = [], {}
    with tempfile.TemporaryDirectory() as scratch:
        for _ in range(arguments.rounds):
            floor = subprocess.run([os.path.join(arguments.build, "bench/floor")],
                                   capture_output=True, check=True, text=True)
            floors.append(float(floor.stdout))
            for workload in WORKLOADS:
                for way in [None, *ways_of(workload)]:
                    taken = run_one(arguments.build, workload, way, scratch)
                    best[workload, way] = min(best.get((workload, way), taken), taken)
        starts = {way: start_calls(arguments.build, way, scratch) for way in ways_of("foundation")}
    floor = min(floors)
    print(f"floor {floor:.1f} ns (two clock reads)\n")
    print("| workload | way | plain ns | ns | calls | ns per call more | / floor |")
    print("|---|---|---|---|---|---|---|")
    for (workload, way), (taken, calls) in best.items():
        if way is None:
            continue
        plain, count = best[workload, None][0], WORKLOADS[workload]
        # What is not selected is divided by the messages that the other rows of the workload count.
        seen = best[workload, way.split(",")[0]][1]
        if workload == "foundation":
            calls, seen = max(calls - starts[way], 0), seen - starts[way.split(",")[0]]
        more = (taken - plain) / max(seen, count)
        ratio = f"{more / floor:.2f}"
        print(f"| {workload} | {way} | {plain / count:.1f} | {taken / count:.1f} | {calls} "
              f"| {more:.2f} | {ratio} |")
    with tempfile.TemporaryDirectory() as scratch:
        print_taken_out(arguments.build, arguments.rounds, scratch)


if __name__ == "__main__":
    main()
