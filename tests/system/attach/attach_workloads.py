"""Attaches to programs of other authors, and detaches, at random times. Their output and exit status are those of a
run without Sojourn. SJ_LONG=1 runs longer programs and more rounds."""
import os
import random
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import run_attached, run_plain, until_met
from sojourn_testing import IS_LONG, SAMPLES, check, main



def test(sojourn, arguments):
    workloads = arguments[0]
    scale = 10 if IS_LONG else 1
    seed = int(os.environ.get("SJ_SEED", "0")) or random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    noise = sojourn.path("noise")
    for name in ("lua5.4", "python3", "sqlite3", "zstd"):
        check(shutil.which(name) is not None, f"{name} is not installed: see .ci/packages")
    sql = sojourn.path("twice.sql")
    with open(os.path.join(workloads, "sqlite.sql"), encoding="utf-8") as file:
        statements = file.read()

    def lua(size):
        return ["lua5.4", os.path.join(workloads, "lua.lua"), str(3 * size)], None

    def python(size):
        return ["/usr/bin/python3", os.path.join(SAMPLES, "attach/workload.py"), str(10 * size)], None

    def sqlite(size):
        with open(sql, "w", encoding="utf-8") as file:
            file.write(f"{statements}WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                       f"WHERE i < {500000 * size}) SELECT sum(i * i % 7) FROM n;\n")
        return ["sqlite3", ":memory:"], sql

    def zstd(size):
        with open(noise, "wb") as file:
            file.write(random.Random(1).randbytes((1 << 21) * size))
        return ["zstd", "-q", "-17", "-T2", "-c", noise], None

    for workload in (lua, python, sqlite, zstd):
        def attached_to(size, workload=workload):
            command, stdin = workload(size * scale)
            expected, plain = run_plain(command, stdin)
            digest, status, rounds, calls = run_attached(sojourn, command, chance, ["--libs"], stdin)
            check((digest, status) == expected, f"{command[0]} ends with {status}, other output")
            print(f"{command[0]}, size {size}: {plain:.1f} s plain, {rounds} rounds, {calls} calls")
            return rounds, calls

        until_met(attached_to, least_rounds=10 if IS_LONG else 2)


main(test)
