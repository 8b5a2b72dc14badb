#!/usr/bin/env python3
"""Watches freed memory in running processes: attached, detached and attached again, or by a policy during a
recording. A detach restores everything except live blocks.

heap_attached.py BUILD_FOLDER SAMPLES
"""
import json
import os
import random
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from attaching import (Target, check_same, code_bytes, look, run_plain, set_policy, start_attach, reports_an_end,
                       until_met)
from heap_mistakes import FOUND, HEAP, MORE
from sojourn_testing import PATIENCE_S, SAMPLES, check, main

WATCH = ["--profile", "--exclude", "*", "--zombies", "heap"]
THREAD = 13  # the C library keeps the memory that it allocated for a thread
HEAP_NAME = "/memfd:sojourn-heap (deleted)"


class Heap(Target):
    """The sample, which runs one command word after the other."""

    def __init__(self, program):
        super().__init__([program, "-"])
        self.ready()

    def obey(self, *words):
        for word in words:
            self.process.stdin.write(f"{word}\n")
            self.process.stdin.flush()
            check(self.process.stdout.readline() == f"{word}\n", f"the program did not {word}")


def leave(recorder, pid):
    """Ends the recording. Returns its summary."""
    recorder.send_signal(signal.SIGINT)
    _, told = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0, f"leaving {pid}: {told}")


def attached(sojourn, target, database, *words):
    """Attaches, runs the words and detaches. Returns the number of blocks that were live at the detach."""
    summary = sojourn.path("left.json")
    recorder = start_attach(sojourn, target.pid, database, ["--summary", summary, *WATCH])
    target.obey(*words)
    leave(recorder, target.pid)
    with open(summary, encoding="utf-8") as file:
        return json.load(file)


def check_found(sojourn, database, numbers, what):
    found = {tuple(row.values()) for row in sojourn.sql(database, FOUND)}
    for number in numbers:
        wanted = HEAP[number]
        hits = [row for row in found if row[:5] == wanted[:5] and wanted[5] in (None, row[5])]
        check(hits, f"{what}: mistake {number}, {wanted}, is not among {sorted(found)}")
    known = {HEAP[number][:5] for number in numbers} | MORE
    check({row[:5] for row in found} <= known, f"{what}: more than was planted: {sorted(found)}")


def without_pool(looked):
    """Leaves out what stays after a detach: the pool's addresses, and the code that frees its blocks."""
    looked["mappings"] = [row for row in looked["mappings"] if row[1] != HEAP_NAME
                          and row[:2] != ("r-xp", "")]
    return looked


def test_attach_and_detach_twice(sojourn, program):
    """Each mistake is found, in both recordings. A detach restores every byte and signal handler."""
    target = Heap(program)
    before, code = without_pool(look(target.pid)), code_bytes(target.pid)
    for turn in range(2):
        database = sojourn.path(f"attached-{turn}.db")
        numbers = sorted(set(HEAP) - {THREAD})
        summary = attached(sojourn, target, database, 0, *numbers)
        check_found(sojourn, database, numbers, f"attached, turn {turn}")
        check(summary["guarded_blocks"] == 0 and summary["left_bytes"] == 0, f"{summary}")
        after = without_pool(look(target.pid))
        now = {key: value for key, value in code_bytes(target.pid).items() if key[2] != HEAP_NAME}
        check_same(before, after, code, now, f"after turn {turn}")
    code_of_program, output = target.finish()
    check(code_of_program == 0 and output == "", f"the program ended with {code_of_program}: {output}")


def test_blocks_live(sojourn, program):
    """Blocks are live at the detach. The program frees them later, without an agent or with another agent."""
    target = Heap(program)
    code = code_bytes(target.pid)
    summary = attached(sojourn, target, sojourn.path("live.db"), "keep")
    check(summary["guarded_blocks"] == 100 and summary["left_bytes"] == 0, f"{summary}")
    summary = attached(sojourn, target, sojourn.path("live-2.db"), 1)
    check(summary["guarded_blocks"] == 100, f"{summary}")
    check_found(sojourn, sojourn.path("live-2.db"), [1], "attached while blocks live")
    target.obey("drop")
    summary = attached(sojourn, target, sojourn.path("live-3.db"), "keep", "drop", 1)
    check(summary["guarded_blocks"] == 0, f"{summary}")
    for key, value in code_bytes(target.pid).items():
        check(code.get(key, value) == value, f"bytes of {key[2]} differ when no block lives")
    target.obey("touch", 0)
    attached(sojourn, target, sojourn.path("live-4.db"), THREAD)
    check_found(sojourn, sojourn.path("live-4.db"), [THREAD], "a thread that ends")
    check(target.finish()[0] == 0, "the program did not end well")


class Recorded(Heap):
    """Runs the sample under `record`."""

    def __init__(self, sojourn, program, database, *options):
        Target.__init__(self, [sojourn.program, "record", "-q", "-o", database, "--allow-unmatched",
                               *options, "--", program, "-"], env=sojourn.environment)
        self.ready()
        with open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="utf-8") as file:
            self.program = int(file.read().split()[0])

    def memory(self):
        """Returns the bytes of the process's own memory."""
        with open(f"/proc/{self.program}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon:"))

    def end(self):
        check(self.finish()[0] == 0, "the program did not end well")


def test_policy(sojourn, program):
    """A policy starts and ends the watch of a program that is recorded already."""
    database = sojourn.path("policy.db")
    target = Recorded(sojourn, program, database, "--profile", "--exclude", "*")
    target.obey("keep", 1, 2)  # the watch has not begun, so these have no findings
    answer = set_policy(sojourn, target.program, *WATCH)
    check(answer["not_applied"] == [], f"{answer}")
    target.obey(3, "drop", "keep", 14)
    set_policy(sojourn, target.program, "--profile", "--exclude", "*")
    target.obey("drop", 11)
    answer = set_policy(sojourn, target.program, *WATCH)
    check(answer["not_applied"] == [], f"{answer}")
    target.obey(0, 12)  # a thread checks for a change of the policy every 256 allocations
    target.end()
    check_found(sojourn, database, [3, 14, 12], "by policy")


def write_policy(sojourn, name, **heap):
    path = sojourn.path(f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "mode": "profile", "functions": {"exclude": ["*"]},
                   "zombies": {"heap": heap}}, file)
    return path


def test_memory(sojourn, program):
    """Freed blocks use no more memory than the policy allows, and half of that after a command. Blocks that lost
    their content are still guarded."""
    database = sojourn.path("memory.db")
    little = write_policy(sojourn, "little", blocks=4000, memory="1M", stack_bytes=0)
    target = Recorded(sojourn, program, database, "--policy", little)
    target.obey(0)
    before = target.memory()
    target.obey(0, 0, 0)
    check(target.memory() < before + (1 << 20), f"{before}, then {target.memory()} bytes")
    target.end()
    much = write_policy(sojourn, "much", blocks=4000, memory="256M", stack_bytes=0)
    target = Recorded(sojourn, program, database, "--policy", much)
    start = target.memory()
    target.obey(0, 0, 1)
    full = target.memory()
    check(full > start + (8 << 20), f"{start}, then {full} bytes")
    done = sojourn.run(["zombies", "shrink", str(target.program)], capture_output=True, text=True)
    check(done.returncode == 0, f"{done}")
    # Half of the blocks uses a quarter to three quarters of the memory.
    check(target.memory() < full - (full - start) // 4, f"{full}, then {target.memory()} bytes")
    for _ in range(12):
        sojourn.run(["zombies", "shrink", str(target.program)], capture_output=True)
    target.obey(2, 3)
    target.end()
    found = sojourn.sql(database, FOUND)
    check([(row["kind"], row["size"]) for row in found] == [("use_after_free", size) for size in (40, 100, 10000)],
          f"after shrinking: {found}")
    done = sojourn.run(["zombies", "shrink", str(os.getpid())], capture_output=True, text=True)
    check(done.returncode != 0, f"shrink of what is not watched: {done}")


def test_share(sojourn, program):
    """Only a share of the sessions is watched; no session if the share is 0."""
    policy, database = sojourn.path("share.json"), sojourn.path("share.db")
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "mode": "profile", "zombies": {"heap": True, "sessions": 0}}, file)
    done, _ = sojourn.record([program, "1"], database, ["--policy", policy])
    check(done.returncode == 0, f"{done}")
    rows = sojourn.sql(database, "SELECT count(*) AS watched FROM zombie_accounts")
    check(rows == [{"watched": 0}], f"{rows}")




def test_programs(sojourn, chance):
    """Attaches to common programs repeatedly; their output is the same."""
    database = sojourn.path("programs.db")
    policy = write_policy(sojourn, "some", one_in=20, blocks=500)
    command = ["env", "PYTHONMALLOC=malloc", "/usr/bin/python3", os.path.join(SAMPLES, "zombies/blocks.py")]
    rounds = 40000 if os.environ.get("SJ_LONG") else 6000

    def watched(size):
        return watch_program(sojourn, [*command, str(rounds * size)], database, policy, chance)

    until_met(watched)


def watch_program(sojourn, command, database, policy, chance):
    """Returns the number of rounds in which the program was watched, and the number of blocks."""
    expected, _ = run_plain(command)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
        rounds = 0
        while program.poll() is None and rounds < 4:
            options = ["--policy", policy] if rounds % 2 else WATCH
            done = sojourn.run(["attach", "-q", "-o", database, "--for", f"{chance.randrange(50, 400)}ms",
                                *options, str(program.pid)], capture_output=True, text=True)
            rounds += done.returncode == 0
            check(done.returncode == 0 or program.poll() is not None or reports_an_end(done), f"{done}")
        output = program.communicate()[0]
    check(run_plain(["printf", "%s", output])[0][0] == expected[0] and program.returncode == expected[1],
          f"python3 ended with {program.returncode}: {output}")
    if rounds == 0:
        return 0, 0
    rows = sojourn.sql(database, "SELECT coalesce(sum(guarded), 0) AS guarded, coalesce(sum(uses), 0) AS uses "
                                 "FROM zombie_accounts")
    check(rows[0]["uses"] == 0, f"{rounds} rounds: {rows}")
    return rounds, rows[0]["guarded"]


def test(sojourn, arguments):
    program = os.path.join(arguments[0], "gcc-O2", "heap")
    seed = int(os.environ.get("SJ_SEED", "0")) or random.randrange(1 << 30)
    print(f"seed {seed}")
    test_attach_and_detach_twice(sojourn, program)
    test_blocks_live(sojourn, program)
    test_policy(sojourn, program)
    test_memory(sojourn, program)
    test_share(sojourn, program)
    test_programs(sojourn, random.Random(seed))


if __name__ == "__main__":
    main(test)
