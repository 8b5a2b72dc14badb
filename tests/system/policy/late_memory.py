#!/usr/bin/env python3
"""A policy of a running recording asks for the memory of calls. It is counted from that policy on, in launched and
attached programs, whether threads were counted before or not. If the counting cannot begin, that is reported at
once.

late_memory.py BUILD_FOLDER
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, code_bytes, look, set_policy, start_attach
from late_testing import build, goes_on, leave, write_policy
from sojourn_testing import check, check_accounts, children, main
MEMORY = [{"function": "late_store", "memory": True}, {"function": "late_store", "signature": "(bytes:ulong) -> ulong"}]


def test_memory(sojourn, program, launched, *options):
    """The allocations of calls are counted from the policy on, whether the allocator was patched before or is
    patched by it."""
    database = sojourn.path("memory.db")
    if os.path.exists(database):
        os.unlink(database)
    if launched:
        target = Target([sojourn.program, "record", "-q", "-o", database, "--function", "late_many", *options, "--", program],
                        env=sojourn.environment).ready()
    else:
        target = Target([program]).ready()
        before, code = look(target.pid), code_bytes(target.pid)
        recorder = start_attach(sojourn, target.pid, database, ["--function", "late_many", *options])
    try:
        pid = children(target.pid)[0] if launched else target.pid
        for rules in (MEMORY[:1], MEMORY, [], MEMORY):
            answer = set_policy(sojourn, pid, "--policy", write_policy(sojourn, "memory", rules))
            check(not [text for text in answer["not_applied"] if "rules of the old policy record until the end" not in text], f"{rules}: {answer}")
            goes_on(target, 0, "calls whose memory is counted")
        if not launched:
            leave(sojourn, target, recorder, before, code, has_heap=True)
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()
    check_accounts(sojourn, database)
    rows = sojourn.sql(database, """SELECT a.value AS held, k.allocations, k.allocated_bytes, k.frees, k.freed_bytes
        FROM call_costs AS k JOIN functions AS f USING (function_id) JOIN arguments AS a USING (call_id)
        WHERE f.name = 'late_store' AND a.position = 0""")
    check(len(rows) > 100, f"{len(rows)} calls whose memory was counted")
    wrong = [row for row in rows if list(row.values()) != [row["held"], 1, row["held"], 1, row["held"]]]
    check(not wrong, f"{wrong[:3]}")
    print(f"memory of {len(rows)} calls")


def test_memory_refused(sojourn, program):
    """An allocator whose entries are patched to watch freed memory does not begin to count. That is reported at
    once."""
    target = Target([sojourn.program, "record", "-q", "-o", sojourn.path("zombies.db"), "--zombies", "heap", "--", program],
                    env=sojourn.environment).ready()
    try:
        answer = set_policy(sojourn, children(target.pid)[0], "--policy", write_policy(sojourn, "memory", MEMORY))
        check(re.search(r"memory: .*not counted: freed memory has been watched without counting: record again",
                        "\n".join(answer["not_applied"])), f"{answer}")
        goes_on(target, 0, "calls by themselves")
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()


def test(sojourn, arguments):
    program = build(sojourn)
    test_memory(sojourn, program, True)
    test_memory(sojourn, program, True, "--thread-memory")
    test_memory(sojourn, program, False)
    test_memory_refused(sojourn, program)


if __name__ == "__main__":
    main(test)
