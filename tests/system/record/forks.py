#!/usr/bin/env python3
"""Processes create children in unusual ways. Each child runs to its end and is recorded or counted. forks.py
BUILD_FOLDER SAMPLE"""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, check_same, code_bytes, look, start_attach
from sojourn_testing import PATIENCE_S, check, check_accounts, main

CALLS = 1000


def calls_of(sojourn, database, function):
    return sojourn.sql(database, "SELECT coalesce(sum(s.calls), 0) AS calls FROM function_stats AS s JOIN "
                                 f"functions AS f USING (function_id) WHERE f.name = '{function}'")[0]["calls"]


def test_locked(sojourn, program):
    """Another thread holds the loader's lock while the program forks, so the lock stays held in the child for ever."""
    database = sojourn.path("locked.db")
    done, summary = sojourn.record([program, "locked"], database, ["--zombies", "heap", "--memory", "*"])
    codes = sojourn.sql(database, "SELECT exit_code FROM processes WHERE how = 'forked'")
    check(codes == [{"exit_code": 4}] or not kernel_reports_exits(), f"{codes}")
    check(done.stdout == b"4 0\n", f"the child: {done.stdout} {done.stderr.decode()}")
    check(calls_of(sojourn, database, "in_child") == CALLS and summary["lost_calls"] == 0, f"{summary}")
    found = sojourn.run(["zombies", "show", "1", database], capture_output=True, text=True).stdout
    check("use_freed" in found and "be_child" in found, f"what the child used: {found}")
    check_accounts(sojourn, database)


def test_a_child_waits_for_the_smallest_buffer(sojourn, program):
    """The child's calls fill the smallest buffer several times. The child waits each time, and loses nothing."""
    database = sojourn.path("one-chunk.db")
    done, summary = sojourn.record([program, "locked"], database, ["--buffer", "1", "--block-ms", "10000"])
    check(done.stdout == b"4 0\n", f"the child: {done.stdout} {done.stderr.decode()}")
    check(calls_of(sojourn, database, "in_child") == CALLS, f"{summary}")
    check(summary["lost_calls"] == summary["lost_events"] == 0, f"{summary}")
    check_accounts(sojourn, database)


def test_unseen(sojourn, program):
    """Whatever the child does, the parent's calls are complete. The child is recorded, or counted once."""
    for number, (way, *options) in enumerate([("_Fork",), ("syscall",), ("instruction",),
                                              ("instruction", "--clock", "adaptive")]):
        database = sojourn.path(f"unseen-{number}.db")
        done, summary = sojourn.record([program, way], database, options)
        told = f"{way} {options}: {summary}"
        check(done.stdout == b"4 0\n" and done.returncode == 0, f"{told} {done.stdout}")
        check(calls_of(sojourn, database, "in_parent") == CALLS, told)
        check(summary["lost_calls"] == summary["lost_events"] == summary["orphan_exits"] == 0, told)
        in_child = calls_of(sojourn, database, "in_child")
        counted = sum(summary["unrecorded_programs"].values())
        check((in_child, counted) in ((CALLS, 0), (0, 1)), f"{told} {in_child}")
        check_accounts(sojourn, database)


def kernel_reports_exits():
    """True if the kernel reports processes that their parent has waited for. Kernels before 6.15 do not."""
    return tuple(int(part) for part in os.uname().release.split(".")[:2]) >= (6, 15)


def test_run(sojourn, program):
    """Programs that are started in every way join the session, do not notice it, and end the same."""
    database = sojourn.path("run.db")
    done, summary = sojourn.record([program, "run"], database)
    said = done.stdout.decode().splitlines()
    check(said == ["4 0"] * len(said) and len(said) == 9, f"{said} {done.stderr.decode()}")
    check(calls_of(sojourn, database, "leaf") == CALLS * len(said) and not summary["unrecorded_programs"],
          f"{calls_of(sojourn, database, 'leaf')} calls of leaf: {summary}")
    codes = sojourn.sql(database, "SELECT how, exit_code, count(*) AS count FROM processes GROUP BY 1, 2")
    known = sum(row["count"] for row in codes if row["how"] == "exec" and row["exit_code"] == 4)
    check(all(row["exit_code"] in (None, 0 if row["how"] == "launched" else 4) for row in codes), f"{codes}")
    check(known == len(said) or not kernel_reports_exits(), f"{codes}")


PAST = "run by a system call of the program's own instead of exec()"
UNFOLLOWED = "not followed here (`sojourn record --children all` follows them)"
EXECUTED = "executed a program that is not recorded"


def ends_of(sojourn, database):
    return [(row["how"], row["exit_code"], row["disarm_reason"]) for row in sojourn.sql(
        database, "SELECT how, exit_code, disarm_reason FROM processes ORDER BY number")]


def test_past(sojourn, program):
    """Programs that are started without libc are counted and reported, with the process that starts them."""
    other = sojourn.path("other")
    shutil.copy(program, other)
    for way, ends in ([program, "past"], [("launched", 0, ""), *2 * [("forked", 4, EXECUTED)]]), \
                     ([program, "become-past", other], [("launched", 4, EXECUTED)]):
        database = sojourn.path(f"{way[1]}.db")
        done, summary = sojourn.record(way, database)
        told = f"{way}: {done.returncode} {done.stdout} {summary} {ends_of(sojourn, database)}"
        check(summary["unrecorded_programs"] == {PAST: max(1, len(ends) - 1)}, told)
        found = ends_of(sojourn, database)
        if not kernel_reports_exits():  # the result of the first child is unknown, because its parent waits for it at once
            found[1:2] = [(how, code or 4, reason) for how, code, reason in found[1:2]]
        check(found == ends, told)
        check_accounts(sojourn, database)


def test_unfollowed(sojourn, program):
    """Programs that children start are counted as not recorded, with --children forked and with none. Programs
    that cannot be executed are not counted."""
    for children, ended in ("forked", EXECUTED), ("none", None):
        database = sojourn.path(f"unfollowed-{children}.db")
        done, summary = sojourn.record([program, "run"], database, ["--children", children])
        told = f"{children}: {done.stdout} {summary} {ends_of(sojourn, database)}"
        check(done.stdout == b"4 0\n" * 9, told)
        check(summary["unrecorded_programs"] == {UNFOLLOWED: 9}, told)
        reasons = [reason for how, _, reason in ends_of(sojourn, database) if how == "forked"]
        # Two of them only wait for the programs that they run beside them.
        check(sorted(reasons) == (sorted(7 * [ended] + 2 * [""]) if ended else []), told)


def test_attached(sojourn, program):
    """Tests the same in a process that is attached to. The detach restores it."""
    target = Target([program, "wait"]).ready()
    before, code = look(target.pid), code_bytes(target.pid)
    del before["masks"]  # the program handles SIGALRM since the attach
    database, summary = sojourn.path("attached.db"), sojourn.path("attached.json")
    recorder = start_attach(sojourn, target.pid, database, ["--summary", summary])
    target.process.stdin.write("g")
    target.process.stdin.flush()
    said = [target.process.stdout.readline() for _ in range(11)]
    check(said == ["4 0\n"] * 11, f"{said}")
    done = sojourn.run(["detach", str(target.pid)], capture_output=True, text=True)
    check(done.returncode == 0 and recorder.wait(PATIENCE_S) == 0, f"detach: {done}")
    check_same(before, look(target.pid), code, code_bytes(target.pid), "after detach")
    target.finish()
    reasons = [reason for how, _, reason in ends_of(sojourn, database) if how == "forked"]
    check(sorted(reasons) == ["", "", *9 * [EXECUTED]], f"{ends_of(sojourn, database)}")
    with open(summary, encoding="utf-8") as file:
        counted = json.load(file)["unrecorded_programs"]
    check(counted == {UNFOLLOWED: 9, PAST: 2}, f"{counted}")
    check_accounts(sojourn, database)


def test_become(sojourn, program):
    """The program that a wrapper becomes is recorded, whether children are followed or not. Programs that the
    wrapper runs beside it are recorded only with --children all."""
    for children in ("none", "forked", "all"):
        database = sojourn.path(f"become-{children}.db")
        done, summary = sojourn.record(["sh", "-c", f"{program} leaf; exec {program} become"], database,
                                       ["--children", children])
        calls = calls_of(sojourn, database, "leaf")
        check(done.returncode == 4 and calls == CALLS * (2 if children == "all" else 1),
              f"{children}: {done.returncode}, {calls} calls: {summary}")


def test(sojourn, arguments):
    test_run(sojourn, arguments[0])
    test_past(sojourn, arguments[0])
    test_unfollowed(sojourn, arguments[0])
    test_attached(sojourn, arguments[0])
    test_become(sojourn, arguments[0])
    test_locked(sojourn, arguments[0])
    test_a_child_waits_for_the_smallest_buffer(sojourn, arguments[0])
    test_unseen(sojourn, arguments[0])


if __name__ == "__main__":
    main(test)
