#!/usr/bin/env python3
"""If a call ends by a jump to another hooked function, it is shown as the caller of that function. Its stack frame
ends when that function's frame begins. tail_calls.py BUILD_FOLDER SAMPLE... FORMS FORMS_AARCH64"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import EMULATOR, PATIENCE_S, check, check_accounts, main

ROUNDS = 1000
CALLS = {"tail_start": 2 * ROUNDS, "tail_chain": ROUNDS, "tail_maybe": ROUNDS, "tail_to_loop": ROUNDS,
         "tail_loop": ROUNDS, "tail_end": 5 * ROUNDS // 2, "main": 1}
# The jumping function, its target, and how often it jumps.
JUMPS = {("tail_start", "tail_end"): 2 * ROUNDS, ("tail_chain", "tail_start"): ROUNDS,
         ("tail_maybe", "tail_end"): ROUNDS // 2, ("tail_to_loop", "tail_loop"): ROUNDS}
COUNTS = "SELECT name, calls FROM function_stats JOIN functions USING (function_id) WHERE name != '_start'"
ORDER = (
    "SELECT call_id, name, parent_id, tail_caller_id, physical_parent_id, start_ns, end_ns, duration_ns, "
    "physical_duration_ns FROM calls JOIN functions USING (function_id) ORDER BY call_id"
)
CALLEES = {"tail_end", "tail_loop"}
# The functions of tail_forms.c that do not jump to `leaf`. Two jump to unhooked code.
FORM_CALLEES = {"jump_near_at_once": "near_leaf", "jump_far": "far_leaf", "jump_if_far": "far_leaf",
                "jump_to_mark": "marked_leaf", "jump_to_tiny": "tiny", "jump_with_carry": "carry_leaf",
                "jump_if_with_carry": "carry_leaf", "through_mark": "marked_leaf", "through_tiny": "tiny",
                "through_carry": "carry_leaf", "to_linkage_table": "library_leaf", "to_import": "library_leaf",
                "packed": "packed_leaf", "jump_with_flags": "flag_leaf", "jump_if_with_flags": "flag_leaf",
                "jump_to_signing": "signing_leaf", "through_flags": "flag_leaf", "through_x0": "leaf_of_x1"}
UNHOOKED = {"to_unhooked", "through_unhooked"}
FORM_NAME = re.compile("jump_|through_|to_|from_|packed$")


def jumps(rows, program):
    """Returns the counts of tail calls by caller and callee. Checks that the caller's call lasts until the callee
    ends, and that its stack frame does not."""
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
        check(caller["end_ns"] == row["end_ns"], f"{program}: {row} ends, {caller} continues")
        left = caller["start_ns"] + caller["physical_duration_ns"]
        check(left == row["start_ns"], f"{program}: {caller} left {left}, {row} entered")
    return found


def record(sojourn, command, label, options=()):
    program = command[0]
    database = sojourn.path(f"{os.path.basename(program)}-{label}.db")
    done, _ = sojourn.record(command, database, ["--block-ms", "10000", *options])
    check(done.returncode == 0, f"{program} ended with {done.returncode}: {done.stderr.decode()}")
    check_accounts(sojourn, database)
    counts = {row["name"]: row["calls"] for row in sojourn.sql(database, COUNTS)}
    rows = sojourn.sql(database, ORDER)
    return done.stdout, counts, rows


def test_forms(sojourn, program, rounds, forms):
    """Every form of jump leads to its callee. A call after a jump to unhooked code is not a tail call."""
    emulator = EMULATOR if "aarch64" in program else []
    plain = subprocess.run([*emulator, program], capture_output=True, check=True, timeout=PATIENCE_S)
    output, counts, rows = record(sojourn, [program], "all", ["--libs", "--exclude", "unhooked_leaf"])
    check(output == plain.stdout, f"{program} said {output}, not {plain.stdout}")
    names = {name for name in counts if FORM_NAME.match(name)} - {"packed_leaf"}
    check(len(names) == forms, f"{program} has {len(names)} forms: {sorted(names)}")
    found = {pair: calls for pair, calls in jumps(rows, program).items() if pair[0] in names}
    wanted = {(name, FORM_CALLEES.get(name, "leaf")): rounds for name in names - UNHOOKED}
    check(found == wanted, f"{program}: {set(found.items()) ^ set(wanted.items())}")


def test(sojourn, arguments):
    *programs, forms, emulated_forms = arguments
    test_forms(sojourn, forms, 300, 31)
    test_forms(sojourn, emulated_forms, 100, 20)
    for program in programs:
        output, counts, rows = record(sojourn, [program, str(ROUNDS)], "all")
        check(counts == CALLS, f"{program}: calls {counts}")
        found = jumps(rows, program)
        check(found == JUMPS, f"{program}: tail calls {found}")
        free, counts, _ = record(sojourn, [program, str(ROUNDS)], "free", ["--exclude", "tail_end", "--exclude", "tail_loop"])
        check(free == output, f"{program} said {free}, not {output}")
        expected = {name: calls for name, calls in CALLS.items() if name not in CALLEES}
        check(counts == expected, f"{program}, without those jumped to: {counts}")


if __name__ == "__main__":
    main(test)
