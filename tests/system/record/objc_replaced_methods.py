#!/usr/bin/env python3
"""A stripped Objective-C program replaces methods while it runs (class_addMethod, class_replaceMethod,
method_setImplementation, method_exchangeImplementations). The new code is recorded under the name of its method at
that moment. Code that several methods share keeps its own name.

objc_replaced_methods.py BUILD_FOLDER
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main

METHODS = {
    "-[PutBase made:]": 5,
    "-[PutBase other:]": 4,
    "-[PutDerived same:]": 8,
    "-[PutBase first:]": 15,
    "-[PutBase(Added) first:]": 3,
    "-[PutBase(Added) added:]": 26,
    "-[PutBase added:]": 4,
    "-[PutBase second:]": 107,
    "-[PutBase third:]": 1,
    "+[PutBase shared:]": 120,
}
SHARED = 11
# Code of methods in the file records its receiver; code of plain functions does not.
RECEIVERS = {**METHODS, "-[PutDerived:PutBase third:]": 1}
del RECEIVERS["-[PutBase third:]"]


def one_way(sojourn, program, options, expected):
    label = f"{os.path.basename(os.path.dirname(program))} {' '.join(options)}"
    database = sojourn.path("put_in.db")
    if os.path.exists(database):
        os.unlink(database)
    done, _ = sojourn.record([program], database, ["--block-ms", "10000", *options])
    check(done.returncode == 0, f"{label}: {done}")
    check_accounts(sojourn, database)
    rows = sojourn.sql(database, "SELECT name, sum(calls) AS n FROM function_stats JOIN functions "
                       "USING (function_id) WHERE name LIKE '%[Put%' GROUP BY name")
    found = {row["name"]: row["n"] for row in rows}
    check(found == expected, f"{label}: {found}, not {expected}")
    rows = sojourn.sql(database, "SELECT name FROM function_stats JOIN functions USING (function_id) "
                       f"WHERE name NOT GLOB '[-+][[]*' AND calls = {SHARED}")
    check(len(rows) == 1, f"{label}: code that two methods share: {rows}")
    print(f"{label}: {sum(found.values())} messages")


def test(sojourn, arguments):
    build = os.path.dirname(os.path.dirname(sojourn.program))
    for level in ("O0", "O2"):
        program = os.path.join(build, "tests/samples/objc", level, "objc_replaced_methods")
        one_way(sojourn, program, [], METHODS)
        one_way(sojourn, program, ["--receivers"], RECEIVERS)


if __name__ == "__main__":
    main(test)
