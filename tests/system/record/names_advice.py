#!/usr/bin/env python3
"""Where called functions have no names, the summary and the report count them and print the command that names them:
Debian's package of debug symbols, or `sojourn symbols add` of the debug file. That command gives the names, and the
advice is gone. names_advice.py BUILD_FOLDER"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import build_sample, check, check_accounts, main

LINE = r"(\d+) of (\d+) functions? called in (\S+) (?:has|have) no name: (.+)\n"


def advice(text):
    """Returns the numbers, the module and the command of the advice; None: there is none."""
    found = re.search(LINE, text)
    return found and (int(found[1]), int(found[2]), found[3], found[4])


def record(sojourn, name, command):
    """Returns the database, what the recording says at its end, and the report."""
    database = sojourn.path(f"{name}.db")
    done = sojourn.run(["record", "-o", database, "--", *command], check=True, capture_output=True, text=True)
    check_accounts(sojourn, database)
    return database, done.stderr, report(sojourn, database)


def report(sojourn, database):
    return sojourn.run(["report", database], check=True, capture_output=True, text=True).stdout


def unnamed(sojourn, database, module):
    """Returns how many called functions of a module have no symbol, and how many it has, counted by SQL."""
    rows = sojourn.sql(database, "SELECT f.symbol FROM function_stats JOIN functions f USING (function_id) "
                                 f"JOIN modules m USING (module_id) WHERE calls > 0 AND m.path LIKE '%/{module}'")
    return len([row for row in rows if row["symbol"] == ""]), len(rows)


def run(sojourn, _):
    program = os.path.realpath(subprocess.run(["which", "git"], check=True, capture_output=True, text=True)
                               .stdout.strip())
    package = subprocess.run(["dpkg", "-S", program], check=True, capture_output=True, text=True).stdout.split(":")[0]
    database, said, shown = record(sojourn, "git", [program, "--version"])
    wanted = (*unnamed(sojourn, database, "git"), "git",
              f"apt install {package}-dbgsym")
    check(wanted[0] > 10 and advice(said) == wanted and advice(shown) == wanted, f"{wanted}\n{said}\n{shown}")

    program = build_sample(sojourn, "policy/unnamed.c", "-O2", "-g", "-Wl,--build-id")
    _, said, shown = record(sojourn, "named", [program])
    check(advice(said) is None and advice(shown) is None, f"all have names: {said}\n{shown}")
    debug = sojourn.path("unnamed.debug")
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    database, said, _ = record(sojourn, "stripped", [program])
    wanted = (*unnamed(sojourn, database, "unnamed"), "unnamed", "sojourn symbols add FILE, with its debug file")
    check(wanted[0] >= 3 and advice(said) == wanted, f"{wanted}\n{said}")
    sojourn.run(["symbols", "add", debug, "--database", database], check=True, capture_output=True)
    shown = report(sojourn, database)
    check(advice(shown) is None and " rarely" in shown, f"named afterwards: {shown}")


if __name__ == "__main__":
    main(run)
