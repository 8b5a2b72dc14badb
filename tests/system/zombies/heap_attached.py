#!/usr/bin/env python3
"""Freed memory is watched in processes that run: attached to, left and attached to again, or told by
a policy while they are recorded. What is left is as it was before, but for blocks that live.
heap_attached.py BUILD_FOLDER SAMPLES"""
import json
import os
import random
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from attaching import Target, check_same, code_bytes, look, run_plain, set_policy, start_attach
from heap_mistakes import FOUND, HEAP
from sojourn_testing import PATIENCE_S, check, main

WATCH = ["--profile", "--exclude", "*", "--zombies", "heap"]
THREAD = 13  # the C library keeps what it allocated for a thread
HEAP_NAME = "/memfd:sojourn-heap (deleted)"


class Heap(Target):
    """The sample, which obeys one word after the other."""

    def __init__(self, program):
        super().__init__([program, "-"])
        self.ready()

    def obey(self, *words):
        for word in words:
            self.process.stdin.write(f"{word}\n")
            self.process.stdin.flush()
            check(self.process.stdout.readline() == f"{word}\n", f"the program did not {word}")


def leave(recorder, pid):
    """Ends the recording; its summary."""
    recorder.send_signal(signal.SIGINT)
    _, told = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0, f"leaving {pid}: {told}")


def attached(sojourn, target, database, *words):
    """Obeys words while attached; the number of blocks that live when it is left."""
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
    known = {HEAP[number][:5] for number in numbers}
    check({row[:5] for row in found} <= known, f"{what}: more than was planted: {sorted(found)}")


def without_pool(looked):
    """The pool's addresses and the code that takes blocks back stay: they have no mapping before."""
    looked["mappings"] = [row for row in looked["mappings"] if row[1] != HEAP_NAME
                          and row[:2] != ("r-xp", "")]
    return looked


def test_comes_and_goes(sojourn, program):
    """Everything is found, twice; leaving restores every byte and signal."""
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
    """Blocks that live when it is left are freed later, with nobody attached or somebody else."""
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


def test_policy(sojourn, program):
    """A policy begins and ends the watch of a program that is recorded already."""
    database = sojourn.path("policy.db")
    recorder = subprocess.Popen(
        [sojourn.program, "record", "-q", "-o", database, "--profile", "--exclude", "*",
         "--allow-unmatched", "--", program, "-"],
        env=sojourn.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    check(recorder.stdout.readline() == "ready\n", "the program did not start")
    with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children", encoding="utf-8") as file:
        pid = int(file.read().split()[0])

    def obey(*words):
        for word in words:
            recorder.stdin.write(f"{word}\n")
            recorder.stdin.flush()
            check(recorder.stdout.readline() == f"{word}\n", f"the program did not {word}")

    obey("keep", 1, 2)  # nothing is seen of these
    answer = set_policy(sojourn, pid, *WATCH)
    check(answer["not_applied"] == [], f"{answer}")
    obey(3, "drop", "keep", 14)
    set_policy(sojourn, pid, "--profile", "--exclude", "*")
    obey("drop", 11)
    answer = set_policy(sojourn, pid, *WATCH)
    check(answer["not_applied"] == [], f"{answer}")
    obey(0, 12)  # a thread looks for a change every 256 allocations
    recorder.stdin.close()
    check(recorder.wait(timeout=PATIENCE_S) == 0, "the program did not end well")
    check_found(sojourn, database, [3, 14, 12], "by policy")


PYTHON = """
import hashlib, json, re, threading
def work(seed, out):
    digest = hashlib.sha256()
    for i in range(ROUNDS):
        text = json.dumps({"n": [seed * i] * (i % 60), "t": "x" * (i % 3000)})
        digest.update(re.sub("[0-9]", "y", text).encode())
        json.loads(text)
    out[seed] = digest.hexdigest()
out = {}
threads = [threading.Thread(target=work, args=(n, out)) for n in range(3)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(out.items()))
"""


def test_programs(sojourn, chance):
    """Programs that nobody here wrote are watched again and again; they say the same."""
    script, database = sojourn.path("script.py"), sojourn.path("programs.db")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PYTHON.replace("ROUNDS", "40000" if os.environ.get("SJ_LONG") else "12000"))
    policy = sojourn.path("policy.json")
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "mode": "profile", "functions": {"exclude": ["*"]},
                   "zombies": {"heap": {"one_in": 20, "blocks": 500}}}, file)
    command = ["env", "PYTHONMALLOC=malloc", "/usr/bin/python3", script]
    expected, _ = run_plain(command)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
        rounds = 0
        while program.poll() is None and rounds < 4:
            options = ["--policy", policy] if rounds % 2 else WATCH
            done = sojourn.run(["attach", "-q", "-o", database, "--for", f"{chance.randrange(50, 400)}ms",
                                *options, str(program.pid)], capture_output=True, text=True)
            rounds += done.returncode == 0
            check(done.returncode == 0 or program.poll() is not None or "ended" in done.stderr, f"{done}")
        output = program.communicate()[0]
    check(run_plain(["printf", "%s", output])[0][0] == expected[0] and program.returncode == expected[1],
          f"python3 ended with {program.returncode}: {output}")
    rows = sojourn.sql(database, "SELECT sum(guarded) AS guarded, sum(uses) AS uses FROM zombie_accounts")
    check(rounds > 0 and rows[0]["guarded"] > 0 and rows[0]["uses"] == 0, f"{rounds} rounds: {rows}")


def test(sojourn, arguments):
    program = os.path.join(arguments[0], "gcc-O2", "heap")
    seed = int(os.environ.get("SJ_SEED", "0")) or random.randrange(1 << 30)
    print(f"seed {seed}")
    test_comes_and_goes(sojourn, program)
    test_blocks_live(sojourn, program)
    test_policy(sojourn, program)
    test_programs(sojourn, random.Random(seed))


if __name__ == "__main__":
    main(test)
