#!/usr/bin/env python3
"""What watching freed memory costs, beside the plain program, valgrind and AddressSanitizer; and which
planted mistakes each of them finds. Rounds in turn, medians of ratios to the plain
run of the same round. zombies.py BUILD_FOLDER [--rounds N] [--markdown] [--detection]"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import subjects

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES = os.path.join(HERE, "..", "samples", "zombies")
# Sample: its numbers of planted mistakes.
MISTAKES = {"heap.c": range(1, 20), "kept.cpp": range(1, 9), "objects.cpp": range(0, 7)}
MESSAGES = range(1, 60)  # those that the sample does not know end at once
PYTHON = ("import json, re\nfor i in range(6000):\n"
          " t = json.dumps({'n': [i] * (i % 60), 't': 'x' * (i % 3000)})\n"
          " json.loads(t); re.sub('[0-9]', 'y', t)\n")


def policy(folder, name, **heap):
    path = os.path.join(folder, f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "mode": "profile", "functions": {"exclude": ["*"]},
                   "zombies": {"heap": heap}}, file)
    return path


def usage(command):
    """CPU seconds of a command, and its output."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        output = process.stdout.read().decode(errors="replace")
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
    return used.ru_utime + used.ru_stime, output


class Recorder:
    def __init__(self, build, folder, document):
        self.sojourn = os.path.join(build, "bin", "sojourn")
        self.folder, self.document = folder, document

    def run(self, command):
        """As `usage`, of the program alone: its CPU time is in the summary."""
        database = os.path.join(self.folder, "run.db")
        summary = os.path.join(self.folder, "summary.json")
        for path in (database, summary):
            if os.path.exists(path):
                os.unlink(path)
        done = subprocess.run([self.sojourn, "record", "-q", "--allow-unmatched", "-o", database,
                               "--summary", summary, "--policy", self.document, "--", *command],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        with open(summary, encoding="utf-8") as file:
            return json.load(file)["traced_cpu_ns"] / 1e9, done.stdout.decode(errors="replace")


def cost(build, rounds, folder):
    """Ratios of CPU time by program and tool."""
    one = Recorder(build, folder, policy(folder, "one", one_in=5000, blocks=512))
    all_ = Recorder(build, folder, policy(folder, "all", one_in=1, blocks=16000, stack_bytes=512))
    programs = {name: command for name, command, stdin in subjects.programs(build) if name == "cc1 -O2 (stripped)"}
    programs["python3"] = ["/usr/bin/python3", "-c", PYTHON]
    rows = [["program", "plain s", "one in 5000", "every block", "valgrind"]]
    for name, command in programs.items():
        plain, ratios = [], {"one": [], "all": [], "valgrind": []}
        for number in range(rounds):
            base = usage(command)[0]
            plain.append(base)
            ratios["one"].append(one.run(command)[0] / base)
            ratios["all"].append(all_.run(command)[0] / base)
            if number < 3:
                ratios["valgrind"].append(usage(["valgrind", "-q", *command])[0] / base)
        rows.append([name, f"{min(plain):.2f}", *(f"x {statistics.median(values):.3f} "
                    f"({min(values):.3f} to {max(values):.3f})" for values in ratios.values())])
    return rows


def operations(build, rounds, folder):
    """ns of a malloc or a free."""
    bench = os.path.join(build, "bench", "heap_bench")
    one = Recorder(build, folder, policy(folder, "ops", one_in=5000, blocks=512))
    kept = Recorder(build, folder, policy(folder, "kept", one_in=1000000000, quarantine=True))
    named = Recorder(build, folder, policy(folder, "named", one_in=1000000000, guard={"bytes": [777777]}))
    tools = {"plain": lambda: usage([bench, "ops"])[1], "one in 5000": lambda: one.run([bench, "ops"])[1],
             "quarantine": lambda: kept.run([bench, "ops"])[1], "a size guarded": lambda: named.run([bench, "ops"])[1],
             "AddressSanitizer": lambda: usage([bench + "_asan", "ops"])[1],
             "valgrind": lambda: usage(["valgrind", "-q", bench, "ops"])[1]}
    found = {name: [] for name in tools}
    for number in range(rounds):
        for name, run in tools.items():
            if name != "valgrind" or number == 0:
                found[name].append(float(run()))
    return [["malloc or free", "ns"], *([name, f"{min(values):.2f}"] for name, values in found.items())]


def pages(build, rounds):
    bench = os.path.join(build, "bench", "heap_bench")
    rows = [["page of its own", "ns a pair", "alive"]]
    for kind in ("mprotect", "userfaultfd"):
        told = [usage([bench, kind])[1].split() for _ in range(rounds)]
        rows.append([kind, f"{min(float(words[0]) for words in told):.0f}", told[0][1]]
                    if told[0][0] != "not" else [kind, "not possible here", ""])
    return rows


def is_found_by(command, words, **environment):
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace",
                          env=dict(os.environ, **environment))
    return any(word in done.stderr for word in words)


class Finder:
    """Which planted mistakes tools find."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.recorder = os.path.join(build, "bin", "sojourn")
        self.everything = os.path.join(folder, "everything.json")
        with open(self.everything, "w", encoding="utf-8") as file:
            json.dump({"policy": 1, "base": "zombies", "functions": {"exclude": ["*"]}}, file)
        self.quarantine = policy(folder, "quarantine", one_in=1000000000, quarantine=True, vtables=True)

    def sample(self, name):
        return os.path.join(self.build, "tests", "samples", "zombies", "gcc-O2", name)

    def finds(self, document, program, number):
        database = os.path.join(self.folder, "found.db")
        for path in (database, database + "-wal", database + "-shm"):
            if os.path.exists(path):
                os.unlink(path)
        subprocess.run([self.recorder, "record", "-q", "--allow-unmatched", "-o", database, "--policy", document, "--",
                        program, str(number)], capture_output=True, check=False)
        checked = subprocess.run([self.recorder, "check", "--zombies", database], capture_output=True, check=False)
        return checked.returncode == 4

    def heap(self, source, numbers):
        plain = self.sample(os.path.splitext(source)[0])
        sanitized = os.path.join(self.folder, "asan")
        subprocess.run(["g++" if source.endswith("cpp") else "gcc", "-O2", "-w", "-fsanitize=address",
                        os.path.join(SAMPLES, source), "-o", sanitized, "-pthread"], check=True)
        found = [0] * 5
        for number in numbers:
            found[0] += self.finds(self.everything, plain, number)
            found[1] += self.finds(self.quarantine, plain, number)
            found[2] += is_found_by([sanitized, str(number)], ["ERROR: AddressSanitizer"])
            found[3] += is_found_by(["valgrind", "-q", "--trace-children=yes", plain, str(number)],
                                    ["Invalid", "uninitialised", "unaddressable", "Jump to the invalid"])
            found[4] += is_found_by([plain, str(number)], ["free()", "malloc", "realloc()"])
        return [f"{source}, {len(numbers)}", *map(str, found), ""]

    def messages(self):
        """Only those that the sample has, which exits with 0 under us."""
        program = self.sample("messages")
        wanted = [number for number in MESSAGES if self.finds(self.everything, program, number)]
        zombies = sum(is_found_by([program, str(number)], ["sent to deallocated", "zombie"], NSZombieEnabled="YES")
                      for number in wanted)
        return [f"messages.m, {len(wanted)} that we find", str(len(wanted)), "", "", "", "", str(zombies)]


def detection(build, folder):
    finder = Finder(build, folder)
    return [["mistakes", "preset zombies", "quarantine alone", "AddressSanitizer", "valgrind", "glibc", "NSZombie"],
            *(finder.heap(source, numbers) for source, numbers in MISTAKES.items()), finder.messages()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--detection", action="store_true")
    arguments = parser.parse_args()
    build = os.path.abspath(arguments.build)
    with tempfile.TemporaryDirectory(prefix="sojourn-bench-") as folder:
        os.environ.update(XDG_CACHE_HOME=folder, XDG_STATE_HOME=folder)
        tables = [lambda: detection(build, folder)] if arguments.detection else [
            lambda: operations(build, arguments.rounds, folder), lambda: pages(build, arguments.rounds),
            lambda: cost(build, arguments.rounds, folder)]
        for table in tables:
            subjects.print_table(table(), arguments.markdown)
            print(flush=True)


sys.exit(main())
