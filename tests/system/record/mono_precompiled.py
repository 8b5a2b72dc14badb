"""Methods that were compiled ahead of time. Methods of a library are recorded as often as they are called, also in
threads that throw and collect garbage. Methods that cannot be recorded are listed with the reason and the remedy."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, main

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "mono")
CALLS = """SELECT f.name, sum(s.calls) AS calls FROM function_stats s JOIN functions f USING (function_id)
           WHERE f.name LIKE 'Victim:%' GROUP BY 1 HAVING sum(s.calls) > 0"""
EVERY = {"Victim:Run(int)": 1, **{f"Victim:{name}(int)": 7 for name in ("First", "Third", "Fourth", "Fifth")},
         "Victim:Second(string)": 7}
THROWN = """SELECT f.name, a.value AS type, count(*) AS calls FROM arguments a JOIN calls c USING (session_id, call_id)
            JOIN functions f USING (function_id) WHERE a.kind = 'thrown' GROUP BY 1, 2"""
REASON = "values of code compiled ahead of time; MONO_ENV_OPTIONS=-O=-aot compiles it anew"


def compile_ahead(sojourn, name, output, options=()):
    path = sojourn.path(output)
    subprocess.run(["mcs", *options, os.path.join(SAMPLES, name), f"-out:{path}"], check=True, timeout=PATIENCE_S)
    subprocess.run(["mono", "--aot", path], check=True, capture_output=True, timeout=PATIENCE_S)
    check(os.path.exists(path + ".so"), f"{output} was not compiled ahead of time")
    return path


def recorded(sojourn, library, number, options=(), environment=None):
    database = sojourn.path(f"library{number}.db")
    done, summary = sojourn.record(["mono", sojourn.path("Waits.exe")], database, ["--allow-unmatched", *options],
                                   input=(library + "\n").encode(), env={**sojourn.environment, **(environment or {})})
    check(done.stdout == b"ready\n134\n", f"{options}: it said {done}")
    check_accounts(sojourn, database)
    found = {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS)}
    refused = {row["name"]: row["reason"] for row in sojourn.sql(
        database, "SELECT name, reason FROM unhooked_functions WHERE name LIKE 'Victim:%'")}
    return found, refused, summary


def a_library(sojourn):
    library = compile_ahead(sojourn, "Victim.cs", "Victim.dll", ["-target:library"])
    found, refused, summary = recorded(sojourn, library, 1)
    check(found == EVERY and not refused, f"recorded {found}, not {refused}")
    check(summary["modules"] == 2, f"the library's code is a module of its own: {summary['modules']}")
    one = {"Victim:Third(int)": 7}
    found, _, _ = recorded(sojourn, library, 2, ["--function", "Victim:Third*"])
    check(found == one, f"one method: {found}")
    values = ["--value", "Victim:Third(1:int)"]
    found, refused, summary = recorded(sojourn, library, 3, values)
    check(found == {name: calls for name, calls in EVERY.items() if name not in one}, f"values: {found}")
    check(refused == {"Victim:Third(int)": REASON} and summary["left_out"].get(REASON) == 1,
          f"values: {refused}, {summary['left_out']}")
    found, refused, _ = recorded(sojourn, library, 4, values, {"MONO_ENV_OPTIONS": "-O=-aot"})
    check(found == EVERY and not refused, f"compiled anew: recorded {found}, not {refused}")


def calls_left_by_an_exception_are_recorded(sojourn):
    library = compile_ahead(sojourn, "Ahead.cs", "Ahead.dll", ["-target:library"])
    found, _, _ = recorded(sojourn, library, 5)
    left = [tuple(row.values()) for row in sojourn.sql(sojourn.path("library5.db"), THROWN)]
    check(found == {"Victim:Run(int)": 1, "Victim:Fails(int)": 8}, f"exceptions: recorded {found}")
    check(left == [("Victim:Fails(int)", "System.InvalidOperationException", 8)], f"left by {left}")


def test(sojourn, _arguments):
    subprocess.run(["mcs", os.path.join(SAMPLES, "Waits.cs"), f"-out:{sojourn.path('Waits.exe')}"], check=True,
                   timeout=PATIENCE_S)
    a_library(sojourn)
    calls_left_by_an_exception_are_recorded(sojourn)


if __name__ == "__main__":
    main(test)
