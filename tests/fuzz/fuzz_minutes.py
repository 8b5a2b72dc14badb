#!/usr/bin/env python3
"""Gives each fuzz target a number of CPU minutes, one target at a time, and prints how many each has had.

fuzz_minutes.py BUILD_FOLDER STATE_FOLDER [--minutes N] [--slice SECONDS] [--only NAME]... [--report]

BUILD_FOLDER is a build of the preset `fuzz`. STATE_FOLDER keeps the grown corpus, the findings and the CPU time of
each target, so the next run continues where the last one stopped. The target with the least CPU time runs next, for
one slice. A target with a finding is not run again until its files are removed from STATE_FOLDER/NAME/findings.
The exit status is 1 if there is a finding.
"""
import argparse
import glob
import json
import os
import resource
import signal
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MEMORY_MB = 2048
SLOWEST_INPUT_S = 60  # a slower input is a finding


class Target:
    def __init__(self, program, state):
        self.name = os.path.basename(program).removeprefix("fuzz.")
        self.program = program
        self.folder = os.path.join(state, self.name)
        self.corpus = os.path.join(self.folder, "corpus")
        self.findings_folder = os.path.join(self.folder, "findings")
        self.account = os.path.join(self.folder, "cpu.json")
        os.makedirs(self.corpus, exist_ok=True)
        os.makedirs(self.findings_folder, exist_ok=True)

    def cpu_seconds(self):
        if not os.path.exists(self.account):
            return 0.0
        with open(self.account, encoding="utf-8") as file:
            return json.load(file)["cpu_seconds"]

    def add(self, seconds):
        total = self.cpu_seconds() + seconds
        with open(self.account + ".new", "w", encoding="utf-8") as file:
            json.dump({"cpu_seconds": total}, file)
        os.replace(self.account + ".new", self.account)

    def findings(self):
        return sorted(os.listdir(self.findings_folder))

    def run(self, seconds):
        """Runs one slice. Returns False if the target ended by itself without a finding."""
        before = cpu_seconds_of_children()
        log = os.path.join(self.folder, "log")
        command = [self.program, self.corpus, os.path.join(ROOT, "tests", "fuzz", "corpus", self.name),
                   f"-max_total_time={seconds}", f"-timeout={SLOWEST_INPUT_S}",
                   f"-report_slow_units={SLOWEST_INPUT_S}", f"-rss_limit_mb={MEMORY_MB}",
                   f"-artifact_prefix={self.findings_folder}/", "-print_final_stats=1", "-verbosity=0"]
        with open(log, "w", encoding="utf-8") as out, \
                subprocess.Popen(command, stdout=out, stderr=out, cwd=self.folder) as running:
            current.append(running)
            code = running.wait()
            current.clear()
        self.add(cpu_seconds_of_children() - before)
        return code == 0 or self.findings() or is_ending


current = []  # the running target
is_ending = False


def cpu_seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def end(_signal, _frame):
    global is_ending
    is_ending = True
    for running in current:
        running.terminate()


def print_table(targets, minutes):
    print(f"{'target':20} {'CPU minutes':>11}  findings")
    for target in targets:
        print(f"{target.name:20} {target.cpu_seconds() / 60:11.1f}  {' '.join(target.findings()) or 'none'}")
    done = sum(target.cpu_seconds() >= minutes * 60 for target in targets)
    print(f"{done} of {len(targets)} targets have had {minutes:g} CPU minutes; "
          f"{sum(target.cpu_seconds() for target in targets) / 60:.1f} in all")


def find_targets(arguments):
    programs = sorted(glob.glob(os.path.join(arguments.build, "tests", "fuzz.*")))
    targets = [Target(program, arguments.state) for program in programs]
    known = [target for target in targets if not arguments.only or target.name in arguments.only]
    if not known:
        sys.exit(f"fuzz_minutes.py: {arguments.build} has no such fuzz target; build the preset `fuzz`")
    return known


def run_targets(targets, arguments):
    while not is_ending:
        waiting = [target for target in targets
                   if target.cpu_seconds() < arguments.minutes * 60 and not target.findings()]
        if not waiting:
            return
        target = min(waiting, key=Target.cpu_seconds)
        if not target.run(arguments.slice):
            sys.exit(f"fuzz_minutes.py: {target.program} cannot run; see {target.folder}/log")
        print(f"{target.name}: {target.cpu_seconds() / 60:.1f} CPU minutes", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("state")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--slice", type=int, default=60)
    parser.add_argument("--only", action="append")
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    arguments.state = os.path.abspath(arguments.state)
    arguments.build = os.path.abspath(arguments.build)
    targets = find_targets(arguments)
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    if not arguments.report:
        run_targets(targets, arguments)
    print_table(targets, arguments.minutes)
    sys.exit(1 if any(target.findings() for target in targets) else 0)


if __name__ == "__main__":
    main()
