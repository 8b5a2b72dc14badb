#!/usr/bin/env python3
"""What keeping freed Objective-C objects costs: ns for an object that is made and freed, and for a
retain or release, beside the plain run of the same round; medians. zombie_objects.py BUILD_FOLDER
[--rounds N]"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
POLICIES = {
    "no stack": {"stacks": 0},
    "512 B": {"stacks": 512},
    "1 KiB": {"stacks": 1024},
    "512 B, history": {"stacks": 512, "history": True},
    "history, other classes": {"classes": ["Nothing"], "history": True},
    "no stack, queue of 5,000": {"stacks": 0, "queue": {"objects": 5000}},
}


def compile_program(folder):
    flags = subprocess.run(["gnustep-config", "--objc-flags"], capture_output=True, text=True, check=True).stdout.split()
    program = os.path.join(folder, "objects_bench")
    subprocess.run(["gcc", *(flag for flag in flags if not flag.startswith("-M")), "-O2", "-std=gnu11", "-w", "-o", program,
                    os.path.join(HERE, "objects_bench.m"), "-lgnustep-base", "-lobjc"], check=True)
    return program


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def watched(build, folder, program, objc):
    policy, database = os.path.join(folder, "policy.json"), os.path.join(folder, "run.db")
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "mode": "profile", "functions": {"exclude": ["*"]}, "unmatched": "allow",
                   "zombies": {"objc": objc}}, file)
    if os.path.exists(database):
        os.unlink(database)
    return run([os.path.join(build, "bin", "sojourn"), "record", "-q", "--policy", policy, "-o", database, "--", program])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    more = {name: [] for name in POLICIES}
    plain = []
    with tempfile.TemporaryDirectory() as folder:
        program = compile_program(folder)
        for _ in range(arguments.rounds):
            plain.append(run([program]))
            for name, objc in POLICIES.items():
                now = watched(arguments.build, folder, program, objc)
                more[name].append([now[0] - plain[-1][0], now[1] - plain[-1][1]])
    print(f"plain: {statistics.median(p[0] for p in plain):.1f} ns made and freed, "
          f"{statistics.median(p[1] for p in plain):.1f} ns retained or released")
    for name, rows in more.items():
        print(f"{name}: +{statistics.median(r[0] for r in rows):.1f} ns, +{statistics.median(r[1] for r in rows):.1f} ns")


if __name__ == "__main__":
    main()
