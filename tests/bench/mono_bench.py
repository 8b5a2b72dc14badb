#!/usr/bin/env python3
"""Measures what recording costs a Mono program: CPU nanoseconds of its thread per call, beyond the plain run of the
same round, by engine, and as a ratio to the floor of two clock reads of the same round; the least of many
short slices each. Medians over the rounds, with the interval that holds the median with 90 %. And starting
`mcs` with its own methods recorded: CPU of the program against a plain start that compiles anew, too.

  tests/bench/mono_bench.py BUILD_FOLDER [--rounds N] [--calls N]
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
    "hooked in place from the start": ("numbers", ["--mono-engine", "in_place"]),
    "in place, two numbers and a result": ("numbers", ["--mono-engine", "in_place", *PAIR]),
    "in place, two texts": ("texts", ["--mono-engine", "in_place", *TEXTS]),
    "Mono's own --profile=log:calls": ("numbers", "log"),
}
METHODS = 2000


def record_command(build, scratch, options):
    return [os.path.join(build, "bin/sojourn"), "record", "-q", "-o", os.path.join(scratch, "bench.db"),
            "--block-ms", "10000", *options, "--"]


def clean(scratch):
    for name in os.listdir(scratch):
        if name.startswith("bench.db"):
            os.unlink(os.path.join(scratch, name))


def plain(program, workload, calls):
    done = subprocess.run(["mono", program, workload, str(calls)], capture_output=True, text=True, check=True,
                          stdin=subprocess.DEVNULL)
    return int(done.stdout) / 1000


def attached(build, program, workload, calls, scratch):
    """Returns (ns, ns) of one process: before and while it is recorded."""
    process = subprocess.Popen(["mono", program, workload, str(calls)], stdin=subprocess.PIPE,
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


def one_way(build, program, way, calls, scratch):
    workload, options = WAYS[way]
    clean(scratch)
    if options == "attach":
        return attached(build, program, workload, calls, scratch)
    if options == "log":
        output = os.path.join(scratch, "calls.mlpd")
        done = subprocess.run(["mono", f"--profile=log:calls,output={output}", program, workload, "2000"],
                              capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
        os.unlink(output)
        return plain(program, workload, calls), int(done.stdout) / 1000
    command = [*record_command(build, scratch, options), "mono"]
    done = subprocess.run([*command, program, workload, str(calls)], capture_output=True, text=True, check=True,
                          stdin=subprocess.DEVNULL)
    return plain(program, workload, calls), int(done.stdout.split()[0]) / 1000


def print_calls(build, program, arguments, scratch):
    found = {way: [] for way in WAYS}
    floors = []
    for _ in range(arguments.rounds):
        for way, samples in found.items():
            floor = read_floor(build)
            before, during = one_way(build, program, way, arguments.calls, scratch)
            floors.append(floor)
            samples.append((before, during - before, (during - before) / floor))
    print(f"floor {statistics.median(floors):.1f} ns (two clock reads), {min(floors):.1f} to {max(floors):.1f}\n")
    print("| way | plain ns | more ns a call | / floor of the round | interval |\n|---|---|---|---|---|")
    for way, samples in found.items():
        low, high = interval([ratio for _, _, ratio in samples])
        middle = [statistics.median(column) for column in zip(*samples)]
        print(f"| {way} | {middle[0]:.1f} | {middle[1]:.2f} | {middle[2]:.2f} | {low:.2f} to {high:.2f} |")


def write_methods(scratch):
    """Writes and compiles a program with many methods. Each is called once."""
    source, program = os.path.join(scratch, "Many.cs"), os.path.join(scratch, "Many.exe")
    with open(source, "w", encoding="utf-8") as file:
        file.write("using System.Runtime.CompilerServices;\nstatic class Many {\n")
        for number in range(METHODS):
            file.write(f"[MethodImpl(MethodImplOptions.NoInlining)] static int M{number}(int a, string b) {{ "
                       f"int s = {number}; for (int i = 0; i < a; i++) {{ s += b.Length ^ i; }} return s; }}\n")
        file.write("static void Main() { int s = 0;\n")
        file.writelines(f's += M{number}(3, "x");\n' for number in range(METHODS))
        file.write("System.Console.WriteLine(s); } }\n")
    subprocess.run(["mcs", source, f"-out:{program}"], check=True)
    return program


def summary_of(build, scratch, options, command):
    clean(scratch)
    path = os.path.join(scratch, "summary.json")
    subprocess.run([*record_command(build, scratch, ["--summary", path, *options]), *command], capture_output=True,
                   check=True)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def query(build, scratch, text):
    done = subprocess.run([os.path.join(build, "bin/sojourn"), "sql", "--json", text,
                           os.path.join(scratch, "bench.db")], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["rows"]


def print_methods(build, rounds, scratch):
    program = write_methods(scratch)
    print(f"\n| {METHODS} methods compiled | more CPU us a method | interval |\n|---|---|---|")
    for engine in ("callbacks", "in_place"):
        found = []
        for _ in range(rounds):
            base = cpu_of(["mono", program], os.environ)
            told = summary_of(build, scratch, ["--mono-engine", engine], ["mono", program])
            found.append((told["traced_cpu_ns"] / 1e9 - base) * 1e6 / METHODS)
        low, high = interval(found)
        print(f"| {engine} | {statistics.median(found):.1f} | {low:.1f} to {high:.1f} |")
    options = ["--function", "Mono.CSharp.*", "--allow-unmatched", "--mono-engine", "in_place"]
    told = summary_of(build, scratch, options, ["mcs", SOURCE, f"-out:{os.path.join(scratch, 'made.exe')}"])
    compiled = query(build, scratch, "SELECT count(DISTINCT function_id) AS n FROM method_code")[0]["n"]
    reasons = query(build, scratch, "SELECT reason, count(DISTINCT function_id) AS n FROM unhooked_functions "
                                    "WHERE function_id IN (SELECT function_id FROM method_code) GROUP BY reason")
    refused = sum(row["n"] for row in reasons)
    print(f"\nmcs: of {compiled} methods compiled {100 * (1 - refused / compiled):.1f} % hooked in place; the others: "
          f"{', '.join(str(row['n']) + ' ' + row['reason'] for row in reasons)}; "
          f"{told['sent_bytes'] / told['calls']:.2f} bytes a call of {told['calls']}")


def cpu_of(command, environment):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def print_start(build, rounds, scratch):
    """Prints the cost of a start. The recorder's own CPU time, from the summary, does not count for the program."""
    anew = dict(os.environ, MONO_ENV_OPTIONS="-O=-aot")
    options = ["--function", "Mono.CSharp.*", "--allow-unmatched"]
    ratios, calls = {"callbacks": [], "in_place": []}, 0
    for _ in range(rounds):
        base = cpu_of(["mcs", "--help"], anew)
        for engine, samples in ratios.items():
            told = summary_of(build, scratch, [*options, "--mono-engine", engine], ["mcs", "--help"])
            calls = told["calls"]
            samples.append(told["traced_cpu_ns"] / 1e9 / base)
    for engine, samples in ratios.items():
        low, high = interval(samples)
        print(f"\nstart of mcs, its own methods recorded, {engine} ({calls} calls): {statistics.median(samples):.2f} "
              f"times the CPU of a plain start that compiles anew, too ({low:.2f} to {high:.2f})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=50000, help="calls a slice")
    parser.add_argument("--only", choices=["calls", "methods", "start"])
    arguments = parser.parse_args()
    build = os.path.abspath(arguments.build)
    with tempfile.TemporaryDirectory() as scratch:
        program = os.path.join(scratch, "MonoBench.exe")
        subprocess.run(["mcs", SOURCE, f"-out:{program}"], check=True)
        if arguments.only in (None, "calls"):
            print_calls(build, program, arguments, scratch)
        if arguments.only in (None, "methods"):
            print_methods(build, arguments.rounds, scratch)
        if arguments.only in (None, "start"):
            print_start(build, arguments.rounds, scratch)


if __name__ == "__main__":
    main()
