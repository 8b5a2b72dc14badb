#!/usr/bin/env python3
"""Mono: the CPU time of calls of named methods lies between what the program measures inside and outside of each
call. The calls work, wait or recurse, in two threads, with callbacks and hooked in place. A call that ends by an
exception has no value. A method with too many values is reported.

mono_costs.py BUILD_FOLDER
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, main

SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "mono", "Costs.cs")
MEASURED = ["Burn", "Wait", "Again", "Refuse"]
ROUND_NS = 20000  # the kernel reads the two clocks of a thread one after the other
CALLS = """SELECT c.call_id, f.name, c.thread_id, c.cpu_ns, c.cpu_self_ns, c.ending, g.name AS caller
    FROM calls AS c JOIN functions AS f USING (function_id) LEFT JOIN calls AS p ON p.call_id = c.parent_id
    LEFT JOIN functions AS g ON g.function_id = p.function_id WHERE f.name GLOB 'Costs:*' ORDER BY c.start_ns"""


def plain(name):
    return name.split(":")[1].split("(")[0]


def check_engine(sojourn, program, engine):
    database = sojourn.path(f"{engine}.db")
    options = [part for name in MEASURED for part in ("--cpu-time", f"Costs:{name}*")]
    done, _ = sojourn.record(["mono", program], database, ["--mono-engine", engine, "--block-ms", "10000", *options], text=True)
    check(done.returncode == 0, f"{engine}: {done}")
    check_accounts(sojourn, database)
    rows = sojourn.sql(database, CALLS)
    first = next(row["thread_id"] for row in rows if plain(row["name"]) == "Main")
    said = [line.split() for line in done.stdout.splitlines()]
    for thread in ("main", "other"):
        outer = [row for row in rows if row["caller"] is not None and plain(row["caller"]) == "Run"
                 and (row["thread_id"] == first) == (thread == "main")]
        thrown = [row for row in outer if plain(row["name"]) == "Refuse"]
        check(thrown and all(row["ending"] == "unwound" and row["cpu_ns"] is None for row in thrown), f"{engine}: {thrown[:2]}")
        ended = [row for row in outer if plain(row["name"]) in MEASURED[:3]]
        lines = [line[1:] for line in said if line[0] == thread]
        check(len(ended) == len(lines) != 0, f"{engine} {thread}: {len(ended)} calls, {len(lines)} lines")
        for row, (name, least_ns, most_ns) in zip(ended, lines):
            check(plain(row["name"]) == name, f"{engine} {thread}: {row} where {name} is")
            check(row["cpu_ns"] is not None and int(least_ns) - ROUND_NS <= row["cpu_ns"] <= int(most_ns) + ROUND_NS,
                  f"{engine} {thread} {name}: {row}, {least_ns} to {most_ns}")
            check(row["cpu_self_ns"] <= row["cpu_ns"], f"{engine}: {row}")
    sums = {plain(row["name"]): row for row in sojourn.sql(
        database, "SELECT f.name, k.calls, k.cpu_ns FROM function_costs AS k JOIN functions AS f USING (function_id)")}
    burned = [row["cpu_ns"] for row in rows if plain(row["name"]) == "Burn"]
    check((sums["Burn"]["calls"], sums["Burn"]["cpu_ns"]) == (len(burned), sum(burned)), f"{engine}: {sums}")
    return len(burned)


KINDS = ("int", "long", "uint", "ulong", "hex", "float", "double", "object")


def check_crowded(sojourn, program):
    """A method can have eight values: its CPU time and seven others. The rule that finds no free slot is reported."""
    options = [part for kind in KINDS for part in ("--value", f"Costs:Wait*(1:{kind})")]
    for more, is_crowded in (([], False), (["--cpu-time", "Costs:Wait*"], True)):
        done, _ = sojourn.record(["mono", program], sojourn.path(f"crowded{len(more)}.db"), [*options, *more], text=True)
        check(done.returncode == 0 and ("other rules use the space for values of 1 function" in done.stderr) == is_crowded,
              f"{more}: {done.stderr}")


def test(sojourn, arguments):
    program = sojourn.path("Costs.exe")
    subprocess.run(["mcs", SAMPLE, f"-out:{program}"], check=True, timeout=PATIENCE_S)
    check_crowded(sojourn, program)
    print({engine: check_engine(sojourn, program, engine) for engine in ("callbacks", "in_place")})


if __name__ == "__main__":
    main(test)
