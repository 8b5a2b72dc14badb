"""Programs that nobody here wrote are attached to and left at random times: their output and exit
status are those of a run without Sojourn."""
import os
import random
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import run_attached, run_plain
from sojourn_testing import check, main

PYTHON = """
import collections, json, re, threading, zlib
def work(seed, out):
    state, words = seed, collections.Counter()
    for i in range(4000 * ROUNDS):
        state = (state * 1103515245 + 12345) % 2147483648
        words[re.sub("[0-9]", "x", hex(state))] += 1
        if i % 50 == 0:
            state ^= zlib.crc32(json.dumps({"n": [state] * 9}).encode())
        try:
            [][state]
        except IndexError:
            state += 1
    out[seed] = (state, sum(words.values()), max(words.values()))
out = {}
threads = [threading.Thread(target=work, args=(n, out)) for n in range(3)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(out.items()))
"""


def test(sojourn, arguments):
    workloads = arguments[0]
    scale = 5 if os.environ.get("SJ_LONG") else 1
    seed = int(os.environ.get("SJ_SEED", "0")) or random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    noise = sojourn.path("noise")
    with open(noise, "wb") as file:
        file.write(random.Random(1).randbytes(1 << 24))
    script = sojourn.path("script.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PYTHON.replace("ROUNDS", str(40 * scale)))
    sql = sojourn.path("twice.sql")
    with open(os.path.join(workloads, "sqlite.sql"), encoding="utf-8") as file:
        text = file.read()
    with open(sql, "w", encoding="utf-8") as file:
        file.write(text)
        # Long enough to be met by an attach on any machine.
        file.write("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000000) "
                   "SELECT sum(i * i % 7) FROM n;\n")
    for command, stdin in (
        (["lua5.4", os.path.join(workloads, "lua.lua"), str(30 * scale)], None),
        (["/usr/bin/python3", script], None),
        (["sqlite3", ":memory:"], sql),
        (["zstd", "-q", "-17", "-T2", "-c", noise], None),
    ):
        if shutil.which(command[0]) is None:
            check(False, f"{command[0]} is not installed: see .ci/packages")
        expected, plain = run_plain(command, stdin)
        digest, status, rounds, calls = run_attached(sojourn, command, chance, ["--libs"], stdin)
        check((digest, status) == expected, f"{command[0]} ends with {status}, other output")
        print(f"{command[0]}: {plain:.1f} s plain, {rounds} rounds, {calls} calls")
        check(rounds > 0 and calls > 0, f"{command[0]} was never attached to")


main(test)
