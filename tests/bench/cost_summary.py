#!/usr/bin/env python3
"""Is what the summary says of recording's cost true? Programs run plain and recorded by turns; the
CPU time that recording added is set beside what the summary gives (probes, hooking, starting).
cost_summary.py BUILD_FOLDER [--rounds N]"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "samples")



def cpu_of(command, **options):
    """Returns the CPU seconds of the descendants of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def told_by(sojourn, command, folder):
    summary, database = (os.path.join(folder, name) for name in ("summary.json", "run.db"))
    subprocess.run([sojourn, "record", "-q", "-o", database, "--summary", summary, "--", *command],
                   check=True, stdout=subprocess.DEVNULL)
    for name in os.listdir(folder):
        if name.startswith("run.db"):
            os.unlink(os.path.join(folder, name))
    with open(summary, encoding="utf-8") as file:
        return json.load(file)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("build")
    arguments.add_argument("--rounds", type=int, default=7)
    options = arguments.parse_args()
    sojourn = os.path.join(options.build, "bin", "sojourn")
    with tempfile.TemporaryDirectory() as folder:
        loop = os.path.join(folder, "loop")
        subprocess.run(["gcc", "-O2", "-o", loop, os.path.join(SAMPLES, "bench", "steps.c")], check=True)
        programs = {"a loop": [loop, "20000000"],
                    "perl, fib(21)": ["perl", "-e", "sub f{my $n=shift;$n<2?$n:f($n-1)+f($n-2)} f(21)"],
                    "perl -e 1": ["perl", "-e", "1"],
                    "/bin/true": ["/bin/true"],
                    "40 programs": ["sh", "-c", "for i in $(seq 20); do perl -e 1; /bin/ls / >&2; done 2>&1"],
                    "40 forks": ["sh", "-c", "for i in $(seq 40); do (:); done"],
                    "cc1": ["gcc", "-O2", "-S", "-o", "-", os.path.join(SAMPLES, "cli", "nothing.c")]}
        print("| program | plain s CPU | recorded | added | told (probes + hooking + starting) | told / added |")
        print("|---|---|---|---|---|---|")
        for name, command in programs.items():
            rows = []
            told_by(sojourn, command, folder)  # plans are in the cache
            for _ in range(options.rounds):
                plain = cpu_of(command)
                told = told_by(sojourn, command, folder)
                rows.append((plain, told["traced_cpu_ns"] / 1e9,
                             told["estimated_probe_ns"] / 1e9, told["hook_ns"] / 1e9,
                             told["start_ns"] / 1e9))
            plain, recorded, probes, hooking, starting = (statistics.median(column) for column in zip(*rows))
            added = recorded - plain
            print(f"| {name} | {plain:.4f} | {recorded:.4f} | {added:.4f} | {probes:.4f} + {hooking:.4f} + {starting:.4f} | "
                  f"{(probes + hooking + starting) / added:.2f} |")


if __name__ == "__main__":
    main()
