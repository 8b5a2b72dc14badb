#!/usr/bin/env python3
"""Measures what values, CPU time and memory cost per call, beside uftrace -A/-R on the same functions, and per
malloc and free; what a rule costs that changes calls and does not hold, and how right a delay is. CPU ns,
by the thread's clock in the program itself; all ways in each round, one after the other.

values.py BUILD_FOLDER [ROUNDS [WAY ...]]    of the ways below, e.g. "recorded"; "least" among them: a call of
one function and two clock reads, the least of 40 slices, for a machine that others use
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

CALLS = 100000


def permit(folder, environment):
    environment["XDG_CONFIG_HOME"] = folder
    os.mkdir(os.path.join(folder, "sojourn"))
    with open(os.path.join(folder, "sojourn/changes.json"), "w", encoding="utf-8") as file:
        json.dump({"allow": [{"programs": ["*"], "functions": ["*"], "kinds": ["set", "delay"]}]}, file)


def write_policy(folder, name, more):
    path = os.path.join(folder, name + ".json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": [{"function": "one", "argument": 1, "as": "int", **more}]}, file)
    return path


def main():
    build, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 7
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, XDG_STATE_HOME=folder, XDG_CACHE_HOME=folder, XDG_RUNTIME_DIR=folder)
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "samples/values/calls.c")
        plain, profiled = os.path.join(folder, "plain"), os.path.join(folder, "profiled")
        compile_it = ["gcc", "-O2", "-g", f"-DCALLS={CALLS}", source, "-o"]
        subprocess.run([*compile_it, plain], check=True)
        subprocess.run([*compile_it, profiled, "-pg"], check=True)
        record = [os.path.join(build, "bin/sojourn"), "record", "-q", "-o", os.path.join(folder, "calls.db"),
                  "--function", "one", "--function", "two"]
        permit(folder, environment)
        never = write_policy(folder, "never", {"when": {"op": "==", "value": -5}, "change": {"set": 1}})
        late = write_policy(folder, "late", {"change": {"delay": "2ms"}})
        ways = {"plain": [plain], "recorded": [*record, "--", plain],
                "values by types": [*record, "--value", "one", "--value", "two", "--", plain],
                "memory": [*record, "--memory", "one", "--memory", "two", "--", plain],
                "a rule that does not hold": [*record, "--policy", never, "--", plain],
                "CPU time": [*record, "--cpu-time", "one", "--cpu-time", "two", "--", plain]}
        if shutil.which("uftrace"):
            data = ["uftrace", "record", "-d", os.path.join(folder, "data"), "-b", "16m", "-F", "one", "-F", "two"]
            ways["uftrace"] = [*data, profiled]
            ways["uftrace -A -R"] = [*data, "-A", "one@arg1/i32", "-R", "one@retval/i32", "-A", "two@arg1/s,arg2/s",
                                     profiled]
        ways = {way: command for way, command in ways.items() if way in sys.argv[3:] or len(sys.argv) <= 3}
        found = {way: [] for way in ways}
        least = ["least"] if "least" in sys.argv[3:] else []
        delays = []
        for _ in range(rounds):
            for way, command in ways.items():
                done = subprocess.run(command + least, env=environment, capture_output=True, text=True, check=True)
                found[way].append([float(part) for part in done.stdout.split()[-4:]])
                if os.path.exists(os.path.join(folder, "calls.db")):
                    os.unlink(os.path.join(folder, "calls.db"))
            if len(sys.argv) > 3:
                continue
            done = subprocess.run([*record, "--policy", late, "--", plain, "delayed"], env=environment, capture_output=True,
                                  text=True, check=True)
            delays.append(float(done.stdout.split()[-1]))
            os.unlink(os.path.join(folder, "calls.db"))
    for way, rows in found.items():
        columns = []
        for column in range(len(rows[0])):
            of = sorted(row[column] for row in rows)
            columns.append(f"{statistics.median(of):.1f} ({of[0]:.1f} to {of[-1]:.1f})")
        print(f"| {way} | {' | '.join(columns)} |")
    delays.sort()
    if delays:
        print(f"a delay of 2 ms takes {statistics.median(delays):.0f} us more ({delays[0]:.0f} to {delays[-1]:.0f})")


if __name__ == "__main__":
    main()
