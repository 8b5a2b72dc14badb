#!/usr/bin/env python3
"""Calls that end by a jump to another hooked function end when that one begins, to the nanosecond:
the clock is read once for both. tail_calls.py BUILD_FOLDER SAMPLE..."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main

ROUNDS = 20000
CALLS = {"tail_start": 2 * ROUNDS, "tail_chain": ROUNDS, "tail_maybe": ROUNDS, "tail_to_loop": ROUNDS,
         "tail_loop": ROUNDS, "tail_end": 5 * ROUNDS // 2, "main": 1}
# Who jumps to whom, and how often.
JUMPS = {("tail_start", "tail_end"): 2 * ROUNDS, ("tail_chain", "tail_start"): ROUNDS,
         ("tail_maybe", "tail_end"): ROUNDS // 2, ("tail_to_loop", "tail_loop"): ROUNDS}
COUNTS = "SELECT name, calls FROM function_stats JOIN functions USING (function_id) WHERE name != '_start'"
ORDER = "SELECT name, start_ns, end_ns, depth FROM calls JOIN functions USING (function_id) ORDER BY call_id"
CALLEES = {"tail_end", "tail_loop"}


def jumps(rows):
    """Counts of jumps, and of those that are one moment. A call that a caller begins with is none."""
    found, moments = {}, {}
    for (name, _, end, depth), (callee, start, _, callee_depth) in zip(rows, rows[1:]):
        pair = (name, callee)
        if pair in JUMPS and depth == callee_depth:
            found[pair] = found.get(pair, 0) + 1
            moments[pair] = moments.get(pair, 0) + (end == start)
    return found, moments


def record(sojourn, program, label, options=()):
    database = sojourn.path(f"{os.path.basename(program)}-{label}.db")
    done, _ = sojourn.record([program], database, ["--block-ms", "10000", *options])
    check(done.returncode == 0, f"{program} ended with {done.returncode}: {done.stderr.decode()}")
    check_accounts(sojourn, database)
    counts = {row["name"]: row["calls"] for row in sojourn.sql(database, COUNTS)}
    rows = [tuple(row.values()) for row in sojourn.sql(database, ORDER)]
    return done.stdout, counts, rows


def test(sojourn, arguments):
    for program in arguments:
        output, counts, rows = record(sojourn, program, "all")
        check(counts == CALLS, f"{program}: calls {counts}")
        found, moments = jumps(rows)
        check(found == JUMPS, f"{program}: jumps {found}")
        for pair, count in JUMPS.items():
            # But for what a chunk of records ends between.
            check(moments[pair] > 0.99 * count, f"{program}: {pair}: {moments[pair]} of {count} at one moment")
        free, counts, _ = record(sojourn, program, "free", ["--exclude", "tail_end", "--exclude", "tail_loop"])
        check(free == output, f"{program} said {free}, not {output}")
        expected = {name: calls for name, calls in CALLS.items() if name not in CALLEES}
        check(counts == expected, f"{program}, without those jumped to: {counts}")


if __name__ == "__main__":
    main(test)
