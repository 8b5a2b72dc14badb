#!/usr/bin/env python3
"""Processes of one session that run the same program share the stubs that the second of them made,
and are recorded like the first. ready_stubs.py BUILD_FOLDER"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main

PROCESSES = 6
# Prints which of its mappings are files of stubs, and works for a short time.
PROGRAM = ('open my $maps, "<", "/proc/self/maps"; my $found = grep { /[.]plan[.]stubs/ } <$maps>;'
           ' my $sum = 0; $sum += $_ for 1 .. 100; print "$found $sum\\n"')
BY_PROCESS = ("SELECT t.process_number, count(*) AS calls FROM calls c JOIN functions f USING (function_id)"
              " JOIN threads t USING (thread_id) WHERE f.name = 'Perl_pp_add' GROUP BY 1")


def loop():
    return ["/bin/sh", "-c", f"i=0; while [ $i -lt {PROCESSES} ]; do /usr/bin/perl -e '{PROGRAM}'; i=$((i + 1)); done"]


def record(sojourn, name, options=()):
    database = sojourn.path(name)
    done, summary = sojourn.record(loop(), database, options, text=True)
    check(done.returncode == 0 and summary["lost_calls"] == 0, f"{done.stderr}\n{summary}")
    check_accounts(sojourn, database)
    lines = [line.split() for line in done.stdout.splitlines()]
    check(len(lines) == PROCESSES and all(total == "5050" for _, total in lines), done.stdout)
    return database, [int(found) > 0 for found, _ in lines]


def test(sojourn, _arguments):
    database, shared = record(sojourn, "shared.db")
    check(shared == [False, False] + [True] * (PROCESSES - 2), f"which shared stubs: {shared}")
    counts = sojourn.sql(database, BY_PROCESS)
    check(len(counts) == PROCESSES and {row["calls"] for row in counts} == {counts[0]["calls"]},
          f"processes differ: {counts}")
    unhooked = sojourn.sql(database, "SELECT count(*) AS n FROM unhooked_functions WHERE name = 'Perl_pp_add'")
    check(unhooked[0]["n"] == 0, "Perl_pp_add is reported as unhooked")
    # Each process records values by its own stubs.
    _, shared = record(sojourn, "values.db", ["--allow-unmatched", "--value", "Perl_pp_add(pointer)"])
    check(not any(shared), f"stubs with values are shared: {shared}")


main(test)
