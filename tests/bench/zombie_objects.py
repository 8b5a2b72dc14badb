#!/usr/bin/env python3
"""Measures what keeping freed Objective-C objects costs: ns for an object that is made and freed, for a retain or
release, for one of 20,000 that are freed and made anew at random, and MiB of memory beyond the limit of
the queue, beside the plain run of the same round; medians (least to most). Several builds run by turns.
zombie_objects.py BUILD_FOLDER... [--rounds N] [--only POLICY]"""
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
    "no stack, queue of 1 MiB": {"stacks": 0, "queue": {"objects": 100000, "memory": "1M"}},
}
LIMITS_KIB = {"no stack, queue of 1 MiB": 1024}


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


def told(values):
    return f"+{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("builds", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only")
    arguments = parser.parse_args()
    policies = {name: objc for name, objc in POLICIES.items() if arguments.only in (None, name)}
    more = {(name, build): [] for name in policies for build in arguments.builds}
    plain = []
    with tempfile.TemporaryDirectory() as folder:
        program = compile_program(folder)
        for _ in range(arguments.rounds):
            plain.append(run([program]))
            for (name, build), rows in more.items():
                now = watched(build, folder, program, policies[name])
                rows.append([a - b for a, b in zip(now, plain[-1])])
    base = [statistics.median(row[i] for row in plain) for i in range(3)]
    print(f"plain: {base[0]:.1f} ns made and freed, {base[1]:.1f} retained or released, {base[2]:.1f} at random")
    for (name, build), rows in more.items():
        print(f"{name}{', ' + build if len(arguments.builds) > 1 else ''}: {told([row[0] for row in rows])} made and freed, "
              f"{told([row[1] for row in rows])} retained or released, {told([row[2] for row in rows])} at random, "
              f"{statistics.median(row[3] - LIMITS_KIB.get(name, 0) for row in rows) / 1024:.1f} MiB")


if __name__ == "__main__":
    main()
