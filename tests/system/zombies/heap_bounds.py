#!/usr/bin/env python3
"""Finds accesses beyond both ends of blocks, mistakes with blocks of up to 1 MiB, and wrong buffers of system calls.
The system calls return what they return without Sojourn.

heap_bounds.py BUILD_FOLDER SAMPLES
"""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, main

(READ_AFTER, READ_BEFORE, WRITE_BEFORE, WRITE_ROUNDING, USE_LARGE, PASS_LARGE, WRITE_VECTOR, READ_VECTOR, SEND, RECEIVE,
 OPEN, STAT_PATH, STAT_INTO, COUNT_INTO, READ_TOO_MUCH, OPEN_WITHOUT_END, READ_AFTER_ALIGNED, READ_INTO_END, OPEN_AT_END,
 GROW_LARGE) = range(20)
RUNS = 12
NOT_BLOCKS = ("free_stack", "free_static", "free_plausible", "free_inside", "free_unaligned", "resize_foreign")
# mistake: (kind, function of the use, number of uses)
FOUND = {
    READ_AFTER: ("overflow", "read_at", RUNS),
    WRITE_BEFORE: ("underflow_at_call", "write_before", 1),
    WRITE_ROUNDING: ("overflow_at_call", "write_rounding", 1),
    USE_LARGE: ("use_after_free", "read_at", 5),
    PASS_LARGE: ("overflow", "write_at", 5),
    WRITE_VECTOR: ("use_after_free", "write_vector", 1),
    READ_VECTOR: ("use_after_free", "read_vector", 1),
    SEND: ("use_after_free", "send_message", 1),
    RECEIVE: ("use_after_free", "receive_message", 1),
    OPEN: ("use_after_free", "open_path", 1),
    STAT_PATH: ("use_after_free", "stat_path", 1),
    STAT_INTO: ("use_after_free", "stat_into", 1),
    COUNT_INTO: ("use_after_free", "count_into", 1),
    READ_TOO_MUCH: ("overflow", "read_too_much", 1),
    OPEN_WITHOUT_END: ("overflow", "open_without_end", 1),
    READ_AFTER_ALIGNED: ("overflow", "read_at", 1),
    READ_INTO_END: ("overflow", "read_into_end", 1),
    OPEN_AT_END: ("overflow", "open_at_end", 1),
}


def record(sojourn, program, mistakes, **heap):
    """Returns the kinds and functions that were found, and the number of uses."""
    policy, database = sojourn.path("policy.json"), sojourn.path(f"{len(mistakes)}-{'-'.join(map(str, heap.values()))}.db")
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "mode": "profile", "zombies": {"heap": {"one_in": 1, **heap}}}, file)
    command = [program, *map(str, mistakes)]
    plain = subprocess.run(command, capture_output=True, check=True)
    done, _ = sojourn.record(command, database, ["--policy", policy])
    check((done.returncode, done.stdout) == (0, plain.stdout), f"{command}: {done}, not {plain.stdout}")
    found = {(row["kind"], row["used_in"]) for row in sojourn.sql(database, "SELECT kind, used_in FROM zombies")}
    account = sojourn.sql(database, "SELECT uses, not_watched, refused_size FROM zombie_accounts")[0]
    check((account["not_watched"], account["refused_size"]) == ("", 0), f"{account}")
    return found, account["uses"]


def test_a_free_of_another_address_is_a_finding(sojourn, program, delayed):
    """A free of an address that is not a block is a finding, and the program ends as it does without Sojourn."""
    policy = sojourn.path("not_blocks.json")
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "mode": "profile", "zombies": {"heap": {"one_in": 2, "delayed_free": delayed}}}, file)
    for number, function in enumerate(NOT_BLOCKS):
        database = sojourn.path(f"{function}-{delayed}.db")
        plain = subprocess.run([program, str(number)], capture_output=True, check=False)
        done, _ = sojourn.record([program, str(number)], database, ["--policy", policy])
        check(plain.returncode in (-signal.SIGABRT, -signal.SIGSEGV), f"{function} ended with {plain} without Sojourn")
        # glibc finds some mistakes only by a fault, depending on the blocks before.
        check(done.returncode in (128 + signal.SIGABRT, 128 + signal.SIGSEGV), f"{function} ended with {done}")
        found = [tuple(row.values()) for row in sojourn.sql(database, "SELECT kind, used_in, reports FROM zombies")]
        check(found == [("invalid_free", function, 1)], f"{function}: {found}")
    shown = sojourn.run(["zombies", "show", "1", database], capture_output=True, text=True)
    check("free of an address that is not in a block, in thread" in shown.stdout, f"{shown}")


def test_growth(sojourn, program):
    """A large block that grows in small steps is not copied at each step, and the summary counts it as not watched."""
    database = sojourn.path("growth.db")
    plain = subprocess.run([program, str(GROW_LARGE)], capture_output=True, check=True)
    done, _ = sojourn.record([program, str(GROW_LARGE)], database, ["--zombies", "heap"])
    check((done.returncode, done.stdout) == (0, plain.stdout), f"{done}, not {plain.stdout}")
    account = sojourn.sql(database, "SELECT uses, refused_size, guarded FROM zombie_accounts")[0]
    check((account["uses"], account["refused_size"]) == (0, 1) and account["guarded"] < 10, f"{account}")


def test(sojourn, arguments):
    program = os.path.join(arguments[0], "gcc-O2", "bounds")
    found, uses = record(sojourn, program, list(FOUND))
    wanted = {(kind, function) for kind, function, _ in FOUND.values()}
    check(found == wanted, f"not found: {wanted - found}; too many: {found - wanted}")
    check(uses == sum(uses for _, _, uses in FOUND.values()), f"{uses} uses")
    # The page after a block is closed again when its slot is used again.
    found = record(sojourn, program, 3 * [READ_AFTER], blocks=16)
    check(found == ({("overflow", "read_at")}, 3 * RUNS), f"{found}")
    # Reads before a block are found at once if it lies at the start of its pages.
    check(record(sojourn, program, [READ_BEFORE]) == (set(), 0), "a read before a block at the end of its page")
    found = record(sojourn, program, [READ_BEFORE], align="start")
    check(found == ({("underflow", "read_at")}, RUNS), f"{found}")
    found, uses = record(sojourn, program, [READ_AFTER, READ_BEFORE], align="both")
    check(found == {("overflow", "read_at"), ("underflow", "read_at")} and RUNS // 2 < uses < 2 * RUNS, f"{found}, {uses}")
    test_growth(sojourn, program)
    for delayed in (False, True):
        test_a_free_of_another_address_is_a_finding(sojourn, os.path.join(arguments[0], "gcc-O2", "not_blocks"), delayed)


if __name__ == "__main__":
    main(test)
