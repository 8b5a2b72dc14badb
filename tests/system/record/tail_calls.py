#!/usr/bin/env python3
"""Calls that end by a jump to another hooked function are shown as its callers; their stack frames
end when that one's begins. tail_calls.py BUILD_FOLDER SAMPLE..."""
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
ORDER = (
    "SELECT call_id, name, parent_id, tail_caller_id, physical_parent_id, start_ns, end_ns, duration_ns, "
    "physical_duration_ns FROM calls JOIN functions USING (function_id) ORDER BY call_id"
)
CALLEES = {"tail_end", "tail_loop"}


def jumps(rows, program):
    """Counts of tail calls. The caller goes on until the callee ends, but its frame does not."""
    calls = {row["call_id"]: row for row in rows}
    found = {}
    for row in rows:
        caller = calls.get(row["tail_caller_id"])
        if caller is None:
            check(row["physical_parent_id"] == row["parent_id"], f"{program}: {row}")
            continue
        pair = (caller["name"], row["name"])
        found[pair] = found.get(pair, 0) + 1
        check(row["parent_id"] == row["tail_caller_id"], f"{program}: {row} of {caller}")
        check(row["physical_parent_id"] == caller["physical_parent_id"], f"{program}: {row} of {caller}")
        check(caller["end_ns"] == row["end_ns"], f"{program}: {row} ends, {caller} goes on")
        left = caller["start_ns"] + caller["physical_duration_ns"]
        check(left == row["start_ns"], f"{program}: {caller} left {left}, {row} entered")
    return found


def record(sojourn, program, label, options=()):
    database = sojourn.path(f"{os.path.basename(program)}-{label}.db")
    done, _ = sojourn.record([program], database, ["--block-ms", "10000", *options])
    check(done.returncode == 0, f"{program} ended with {done.returncode}: {done.stderr.decode()}")
    check_accounts(sojourn, database)
    counts = {row["name"]: row["calls"] for row in sojourn.sql(database, COUNTS)}
    rows = sojourn.sql(database, ORDER)
    return done.stdout, counts, rows


def test(sojourn, arguments):
    for program in arguments:
        output, counts, rows = record(sojourn, program, "all")
        check(counts == CALLS, f"{program}: calls {counts}")
        found = jumps(rows, program)
        check(found == JUMPS, f"{program}: tail calls {found}")
        free, counts, _ = record(sojourn, program, "free", ["--exclude", "tail_end", "--exclude", "tail_loop"])
        check(free == output, f"{program} said {free}, not {output}")
        expected = {name: calls for name, calls in CALLS.items() if name not in CALLEES}
        check(counts == expected, f"{program}, without those jumped to: {counts}")


if __name__ == "__main__":
    main(test)
