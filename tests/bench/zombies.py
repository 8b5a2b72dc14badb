#!/usr/bin/env python3
"""Measures what watching freed memory costs, beside the plain program, valgrind and AddressSanitizer; and which
planted mistakes each of them, Electric Fence and GNUstep's NSZombie find. Tools run by turns: medians of
the difference to the plain run of the same round, or of the ratio (least to most).
zombies.py BUILD_FOLDER [--rounds N] [--markdown] [--only operations|pairs|pages|programs|every|redis|memory|
detection] [--sample heap.c|kept.cpp|objects.cpp|messages.m]"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import subjects

HERE = os.path.dirname(os.path.abspath(__file__))
for place in ("support", "zombies", "record"):
    sys.path.insert(0, os.path.join(HERE, "..", "system", place))
from objc_messages import MESSAGES

SAMPLES = os.path.join(HERE, "..", "samples", "zombies")
# The numbers of the planted mistakes, by sample.
MISTAKES = {"heap.c": range(1, 20), "kept.cpp": [*range(1, 11), 12, 13], "objects.cpp": range(0, 7)}
PYTHON = ["/usr/bin/python3", os.path.join(HERE, "..", "samples", "bench", "json_and_re.py")]
FENCE = {"LD_PRELOAD": "libefence.so.0.0", "EF_PROTECT_FREE": "1", "EF_ALLOW_MALLOC_0": "1"}
PATIENCE_S = 30  # a tool that hangs does not find it
PORT = 17391


def policy(folder, name, **heap):
    path = os.path.join(folder, f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "mode": "profile", "functions": {"exclude": ["*"]},
                   "zombies": {"heap": heap}}, file)
    return path


def usage(command, drive=None):
    """Returns the CPU seconds of a command, and its output. Calls `drive` while the command runs."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        if drive:
            drive()
        output = process.stdout.read().decode(errors="replace")
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
    return used.ru_utime + used.ru_stime, output


class Recorder:
    def __init__(self, build, folder, document, wrapper=()):
        self.sojourn = [*wrapper, os.path.join(build, "bin", "sojourn")]
        self.folder, self.document = folder, document

    def run(self, command, drive=None):
        """Does the same as `usage` for the program alone, whose CPU time is in the summary."""
        database = os.path.join(self.folder, "run.db")
        summary = os.path.join(self.folder, "summary.json")
        for path in (database, summary):
            if os.path.exists(path):
                os.unlink(path)
        with subprocess.Popen([*self.sojourn, "record", "-q", "--allow-unmatched", "-o", database,
                               "--summary", summary, "--policy", self.document, "--", *command],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            if drive:
                drive()
            output = process.stdout.read().decode(errors="replace")
        with open(summary, encoding="utf-8") as file:
            return json.load(file)["traced_cpu_ns"] / 1e9, output


def median_of(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def by_turns(rounds, tools):
    """Runs the tools by turns. Returns the results of each tool, one for each round."""
    found = {name: [] for name in tools}
    for _ in range(rounds):
        for name, run in tools.items():
            found[name].append(run())
    return found


def operations(build, rounds, folder):
    """Measures the ns of a malloc or a free."""
    bench = os.path.join(build, "bench", "heap_bench")
    one = Recorder(build, folder, policy(folder, "ops", one_in=5000, blocks=512))
    kept = Recorder(build, folder, policy(folder, "kept", one_in=1000000000, delayed_free=True))
    bare = Recorder(build, folder, policy(folder, "bare", one_in=1000000000, delayed_free=True, stack_bytes=0))
    named = Recorder(build, folder, policy(folder, "named", one_in=1000000000, guard={"bytes": [777777]}))

    def first(output):
        return float(output.split()[0])

    found = by_turns(rounds, {
        "plain": lambda: first(usage([bench, "ops"])[1]), "one in 5000": lambda: first(one.run([bench, "ops"])[1]),
        "a size guarded that never comes": lambda: first(named.run([bench, "ops"])[1]),
        "delayed free": lambda: first(kept.run([bench, "ops"])[1]),
        "delayed free, no stacks": lambda: first(bare.run([bench, "ops"])[1]),
        "AddressSanitizer": lambda: first(usage([bench + "_asan", "ops"])[1])})
    plain = found.pop("plain")
    return [["malloc or free", "ns"], ["plain", median_of(plain, 2)],
            *([name, "+" + median_of([a - b for a, b in zip(values, plain)], 2)] for name, values in found.items())]


def pairs(build, rounds, folder):
    """Measures a malloc and free of a guarded block, with guard regions and with mprotect."""
    bench = [os.path.join(build, "bench", "heap_bench"), "pairs"]
    without = [os.path.join(build, "tests", "samples", "zombies", "gcc-O2", "no_guards")]
    rows = [["guarded malloc and free", "ns", "by protection ns", "ratio"]]
    for stack in (0, 512):
        document = policy(folder, f"pairs-{stack}", one_in=1, blocks=16000, stack_bytes=stack)
        regions, protection = Recorder(build, folder, document), Recorder(build, folder, document, without)
        found = by_turns(rounds, {"regions": lambda: float(regions.run(bench)[1]),
                                  "protection": lambda: float(protection.run(bench)[1])})
        rows.append([f"stacks of {stack} bytes", median_of(found["regions"], 0), median_of(found["protection"], 0),
                     median_of([a / b for a, b in zip(*found.values())], 3)])
    return rows


def pages(build, rounds):
    """Measures what the kernel alone needs for a block with its own page."""
    bench = os.path.join(build, "bench", "heap_bench")
    kinds = ("mprotect", "guards", "userfaultfd")
    found = by_turns(rounds, {kind: lambda kind=kind: usage([bench, kind])[1].split() for kind in kinds})
    rows = [["page of its own", "ns a pair", "to mprotect", "alive"]]
    for kind, told in found.items():
        if told[0][0] == "not":
            rows.append([kind, "not possible here", "", ""])
            continue
        ratios = [float(words[0]) / float(base[0]) for words, base in zip(told, found["mprotect"])]
        rows.append([kind, median_of([float(words[0]) for words in told], 0), median_of(ratios, 3), told[0][1]])
    return rows


def ratios(name, rounds, tools):
    found = by_turns(rounds, tools)
    plain = found.pop("plain")
    return [name, f"{statistics.median(plain):.2f}",
            *("x " + median_of([a / b for a, b in zip(values, plain)], 3) for values in found.values())]


def compiler(build, folder, source):
    """Returns the command of the shipped cc1, with the source that it compiles."""
    command = next(command for name, command, _ in subjects.programs(build) if name == "cc1 -O2 (stripped)")
    return [os.path.join(folder, "out.s") if word == os.devnull else word for word in command[:-1]] + [source]


def programs(build, rounds, folder):
    """Measures ratios of CPU time with one guarded block in 5,000, for programs that run for seconds."""
    one = Recorder(build, folder, policy(folder, "one", one_in=5000, blocks=512))
    source = os.path.join(build, "subjects", "sqlite-source", "sqlite3.c")
    commands = {"cc1": [word.replace("-O2", "-O0") for word in compiler(build, folder, source)],
                "python3": [*PYTHON, "90000"]}
    return [["program", "plain s", "one in 5000"],
            *(ratios(name, rounds, {"plain": lambda command=command: usage(command)[0],
                                    "one": lambda command=command: one.run(command)[0]})
              for name, command in commands.items())]


def every(build, rounds, folder):
    """Measures ratios of CPU time with every block guarded, by guard regions and by mprotect. The runs are shorter."""
    document = policy(folder, "every", one_in=1, blocks=16000, stack_bytes=512)
    regions = Recorder(build, folder, document)
    protection = Recorder(build, folder, document,
                          [os.path.join(build, "tests", "samples", "zombies", "gcc-O2", "no_guards")])
    source = os.path.join(build, "subjects", "lua-source", "src", "lparser.c")
    commands = {"cc1": compiler(build, folder, source), "python3": [*PYTHON, "6000"]}
    return [["program", "plain s", "every block", "every block by protection"],
            *(ratios(name, rounds, {"plain": lambda command=command: usage(command)[0],
                                    "every": lambda command=command: regions.run(command)[0],
                                    "protection": lambda command=command: protection.run(command)[0]})
              for name, command in commands.items())]


REQUESTS = 60000  # of each kind in a slice


class RedisServer:
    """A server that keeps running, so that slices of load on two servers follow each other closely."""

    def __init__(self, port, folder, command=()):
        self.port = port
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen([*command, "/usr/bin/redis-server", "--port", str(port), "--save", "",
                                         "--appendonly", "no", "--dir", folder], stdout=subprocess.DEVNULL)
        while self.client("ping") != "PONG":
            time.sleep(0.05)
        found = dict(line.split(":", 1) for line in self.client("info", "server").splitlines() if ":" in line)
        self.pid = int(found["process_id"])

    def client(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True, text=True,
                              check=False).stdout.strip()

    def cpu_ns(self):
        total = 0
        for thread in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{thread}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
        return total

    def slice(self):
        """Returns the CPU ns of the server for a fixed load."""
        before = self.cpu_ns()
        subprocess.run(["redis-benchmark", "-p", str(self.port), "-q", "-n", str(REQUESTS), "-P", "16", "-d", "200",
                        "-r", "10000", "-t", "set,get,lpush,lpop,hset"], capture_output=True, check=True)
        return self.cpu_ns() - before

    def stop(self):
        self.client("shutdown", "nosave")
        self.process.wait()


def interval_of_median(values):
    """Returns the median and its 95 % interval as text. The binomial distribution of one half gives the ranks."""
    ordered, half = sorted(values), 0.98 * len(values) ** 0.5
    low = max(0, int(len(ordered) / 2 - half))
    high = min(len(ordered) - 1, int(len(ordered) / 2 + half))
    return f"x {statistics.median(values):.3f} ({ordered[low]:.3f} to {ordered[high]:.3f})"


def redis(build, rounds, folder):
    """Measures servers with slices of load by turns. A round has both orders."""
    one = Recorder(build, folder, policy(folder, "redis", one_in=5000, blocks=512))
    plain = RedisServer(PORT, folder)
    watched = RedisServer(PORT + 1, folder, [*one.sojourn, "record", "-q", "--allow-unmatched", "-o",
                                             os.path.join(folder, "redis.db"), "--policy", one.document, "--"])
    again = RedisServer(PORT + 2, folder)
    servers = {"plain": plain, "watched": watched, "again": again}
    for server in servers.values():
        server.slice()
    found = {name: [] for name in servers}
    for number in range(8 * rounds):
        names = list(servers) if number % 2 else list(servers)[::-1]
        for name in names:
            found[name].append(servers[name].slice())
    for server in servers.values():
        server.stop()
    return [["program", "plain s", "one in 5000", "a second plain one"],
            ["redis under load", f"{statistics.median(found['plain']) / 1e9:.2f}",
             *(interval_of_median([a / b for a, b in zip(found[name], found["plain"])])
               for name in ("watched", "again"))]]


def memory(build, rounds, folder):
    """Measures the MiB of the process's own memory beyond the plain run and the limits of the policy."""
    bench = [os.path.join(build, "bench", "heap_bench"), "ops", "10"]
    limits = {"one in 5000, 512 blocks, 4 MiB": ({"one_in": 5000, "blocks": 512, "memory": "4M"}, 4),
              "every block, 2,000 blocks, 8 MiB": ({"one_in": 1, "blocks": 2000, "memory": "8M", "stack_bytes": 0}, 8),
              "delayed free of 4 MiB": ({"one_in": 1000000000, "delayed_free": {"memory": "4M"}}, 4)}
    tools = {"plain": lambda: int(usage(bench)[1].split()[1])}
    for name, (heap, _) in limits.items():
        recorder = Recorder(build, folder, policy(folder, name.replace(" ", "-").replace(",", ""), **heap))
        tools[name] = lambda recorder=recorder: int(recorder.run(bench)[1].split()[1])
    found = by_turns(rounds, tools)
    plain = found.pop("plain")
    return [["memory of its own", "MiB more", "above the limit"],
            *([name, median_of([(a - b) / 1024 for a, b in zip(values, plain)], 2),
               median_of([(a - b) / 1024 - limits[name][1] for a, b in zip(values, plain)], 2)]
              for name, values in found.items())]


def run_for_a_while(command, **environment):
    """Returns the completed process, or None if it did not end in time."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, errors="replace",
                              stdin=subprocess.DEVNULL, timeout=PATIENCE_S, env=dict(os.environ, **environment))
    except subprocess.TimeoutExpired:
        return None


def is_found_by(command, words, **environment):
    done = run_for_a_while(command, **environment)
    return done is not None and any(word in done.stderr for word in words)


class Finder:
    """Tells which planted mistakes each tool finds."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.recorder = os.path.join(build, "bin", "sojourn")
        self.everything = os.path.join(folder, "everything.json")
        with open(self.everything, "w", encoding="utf-8") as file:
            json.dump({"policy": 1, "base": "zombies", "functions": {"exclude": ["*"]}}, file)
        self.delayed = policy(folder, "delayed", one_in=1000000000, delayed_free=True, vtables=True)

    def sample(self, name):
        return os.path.join(self.build, "tests", "samples", "zombies", "gcc-O2", name)

    def finds(self, document, program, number):
        database = os.path.join(self.folder, "found.db")
        for path in (database, database + "-wal", database + "-shm"):
            if os.path.exists(path):
                os.unlink(path)
        run_for_a_while([self.recorder, "record", "-q", "--allow-unmatched", "-o", database, "--policy", document, "--",
                         program, str(number)])
        checked = run_for_a_while([self.recorder, "check", "--zombies", database])
        return checked is not None and checked.returncode == 4

    @staticmethod
    def fence_finds(program, number):
        """True if Electric Fence ended the program at the mistake, or reported it."""
        done = run_for_a_while([program, str(number)], **FENCE)
        return done is not None and (done.returncode < 0 or "ElectricFence Abort" in done.stderr)

    def heap(self, source):
        numbers = MISTAKES[source]
        plain = self.sample(os.path.splitext(source)[0])
        sanitized = os.path.join(self.folder, "asan")
        subprocess.run(["g++" if source.endswith("cpp") else "gcc", "-O2", "-w", "-fsanitize=address",
                        os.path.join(SAMPLES, source), "-o", sanitized, "-pthread"], check=True)
        found = [0] * 6
        for number in numbers:
            found[0] += self.finds(self.everything, plain, number)
            found[1] += self.finds(self.delayed, plain, number)
            found[2] += is_found_by([sanitized, str(number)], ["ERROR: AddressSanitizer"])
            found[3] += is_found_by(["valgrind", "-q", "--trace-children=yes", plain, str(number)],
                                    ["Invalid", "uninitialised", "unaddressable", "Jump to the invalid"])
            found[4] += self.fence_finds(plain, number)
            found[5] += is_found_by([plain, str(number)], ["free()", "malloc", "realloc()"])
        return [f"{source}, {len(numbers)}", *map(str, found), "-"]

    def messages(self):
        """Messages to freed objects."""
        program = self.sample("messages")
        found = sum(self.finds(self.everything, program, number) for number in MESSAGES)
        zombies = sum(is_found_by([program, str(number)], ["sent to deallocated", "zombie"], NSZombieEnabled="YES")
                      for number in MESSAGES)
        fence = sum(self.fence_finds(program, number) for number in MESSAGES)
        return [f"messages.m, {len(MESSAGES)}", str(found), "-", "-", "-", str(fence), "-", str(zombies)]


def detection(build, folder, only):
    finder = Finder(build, folder)
    rows = [["mistakes", "preset zombies", "delayed free alone", "AddressSanitizer", "valgrind", "Electric Fence", "glibc",
             "NSZombie"]]
    rows += [finder.heap(source) for source in MISTAKES if only in (None, source)]
    return rows + ([finder.messages()] if only in (None, "messages.m") else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--sample")
    arguments = parser.parse_args()
    build, rounds = os.path.abspath(arguments.build), arguments.rounds
    with tempfile.TemporaryDirectory(prefix="sojourn-bench-") as folder:
        os.environ.update(XDG_CACHE_HOME=folder, XDG_STATE_HOME=folder)
        tables = {"operations": lambda: operations(build, rounds, folder), "pairs": lambda: pairs(build, rounds, folder),
                  "pages": lambda: pages(build, rounds), "programs": lambda: programs(build, rounds, folder),
                  "every": lambda: every(build, rounds, folder),
                  "redis": lambda: redis(build, rounds, folder), "memory": lambda: memory(build, rounds, folder),
                  "detection": lambda: detection(build, folder, arguments.sample)}
        for name, table in tables.items():
            if arguments.only in (None, name):
                subjects.print_table(table(), arguments.markdown)
                print(flush=True)


sys.exit(main())
