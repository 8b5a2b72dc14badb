#!/usr/bin/env python3
"""Working and waiting: a program works, sleeps and waits for a lock. It measures the time between the moments before
and after its calls. `report --waiting` and `tree --waiting` never show more for its functions, call paths and
threads, and show most of it.

waits.py BUILD_FOLDER
"""
import collections
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, json_rows, main, sample_text

SECOND = 1_000_000_000
SOURCE = sample_text("record/waits.c")


def report(sojourn, database, *options):
    done = sojourn.run(["report", "--waiting", "--json", *options, database], check=True, capture_output=True, text=True)
    return {row["function"]: row for row in json_rows(done.stdout)}


def test_functions(sojourn, database, measured):
    rows = report(sojourn, database)
    for name, (worked, waited) in measured.items():
        row = rows[name]
        check(0 <= row["working_ns"] <= worked and 0 <= row["waiting_ns"] <= waited,
              f"{name}: {row}, measured {worked} and {waited}")
        check(row["working_ns"] + row["waiting_ns"] <= row["total_ns"], f"{row}")
    # The samples show the sleep of one second and the wait for the lock, even on a busy machine.
    check(rows["rest"]["waiting_ns"] > SECOND, f"{rows['rest']}")
    check(rows["locked"]["waiting_ns"] > 2 * SECOND and rows["locked"]["working_ns"] < SECOND // 100, f"{rows['locked']}")
    check(rows["work"]["working_ns"] > 0 and rows["both"]["working_ns"] > 0, f"{rows}")
    check(rows["outer"]["waiting_ns"] >= rows["rest"]["waiting_ns"] and
          rows["outer"]["working_ns"] >= rows["work"]["working_ns"], f"{rows['outer']}")
    begins = sojourn.sql(database, "SELECT start_ns, end_ns FROM calls JOIN functions USING (function_id) WHERE name = 'rest' "
                         "ORDER BY duration_ns DESC LIMIT 1")[0]
    window = report(sojourn, database, "--from", f"{begins['start_ns']}ns", "--to", f"{begins['start_ns'] + 1}ns")
    check(list(window) == ["rest"] and window["rest"]["waiting_ns"] > SECOND, f"{window}")
    order = [row["waiting_ns"] or 0 for row in report(sojourn, database, "--sort", "waiting").values()]
    check(order == sorted(order, reverse=True), f"{order}")


def test_tree(sojourn, database, measured):
    done = sojourn.run(["tree", "--waiting", "--all", database], check=True, capture_output=True, text=True)
    lines = {line.split("  ")[-1].strip(): line for line in done.stdout.splitlines()}
    for name in ("outer", "rest", "locked"):
        check("s" in lines[name][45:67], f"{name} is not divided:\n{done.stdout}")
    refused = sojourn.run(["tree", "--waiting", "--json", database], capture_output=True, text=True)
    check(refused.returncode == 2 and "as text" in refused.stderr, f"{refused}")


def test_threads(sojourn, database, measured):
    """The sums of the threads equal the sums of their steps, and steps do not overlap."""
    rows = sojourn.sql(database, "SELECT thread_number AS n, from_ns, to_ns, cpu_ns, ready_ns, waiting_ns FROM thread_times "
                       "ORDER BY n, from_ns")
    sums = collections.Counter()
    last = {}
    for row in rows:
        # the two clocks are read one after the other
        check(row["from_ns"] >= last.get(row["n"], 0) - 100_000, f"steps overlap: {row}")
        last[row["n"]] = row["to_ns"]
        sums["cpu"] += row["cpu_ns"]
        sums["watched"] += row["to_ns"] - row["from_ns"]
    final = sojourn.sql(database, "SELECT payload ->> 'cpu_ns' AS cpu, payload ->> 'watched_ns' AS watched FROM reports "
                        "WHERE monitor = 'threads' ORDER BY number DESC LIMIT 1")[0]
    check(final["cpu"] == sums["cpu"] and final["watched"] == sums["watched"], f"{final} is not {sums}")
    check(len(last) == 2, f"threads: {last}")
    done = sojourn.run(["report", "--waiting", database], check=True, capture_output=True, text=True)
    check("\nthreads worked " in done.stdout and "processor   thread" in done.stdout, done.stdout)
    one = sojourn.run(["report", "--thread", "2", database], check=True, capture_output=True, text=True).stdout
    check("worked 0 %, waited " in one, f"thread 2 did nothing but wait:\n{one}")


def test_measured(sojourn, program, database):
    """Times that record --cpu-time measured replace the samples of the threads, in short calls, too."""
    done, _ = sojourn.record([program], database, ["--cpu-time", "work"], text=True)
    check(done.returncode == 0, f"{done.stderr}")
    row = report(sojourn, database)["work"]
    costs = sojourn.sql(database, "SELECT cpu_ns FROM function_costs WHERE session_id = (SELECT max(session_id) FROM sessions)")
    check(row["working_ns"] == costs[0]["cpu_ns"] and
          row["waiting_ns"] == max(row["total_ns"] - costs[0]["cpu_ns"], 0), f"{row} {costs}")


def test_flight(sojourn, program):
    """A recording that keeps only the last seconds is not filled by samples of its threads."""
    database = sojourn.path("flight.db")
    done, _ = sojourn.record([program], database, ["--flight"], text=True)
    check(os.path.exists(database), f"{done}")
    check(sojourn.sql(database, "SELECT count(*) AS n FROM reports WHERE monitor <> 'code'")[0]["n"] == 0, "samples of threads are kept")


def test(sojourn, arguments):
    source, program, database = (sojourn.path(name) for name in ("waits.c", "waits", "waits.db"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(SOURCE)
    subprocess.run([shutil.which("gcc"), "-O2", "-D_GNU_SOURCE", "-w", "-pthread", source, "-o", program], check=True)
    done, _ = sojourn.record([program], database, [], text=True)
    check(done.returncode == 0, f"{done.stderr}")
    check_accounts(sojourn, database)
    measured = {line.split()[0]: tuple(map(int, line.split()[1:])) for line in done.stdout.splitlines()}
    work, both = measured["work"], measured["both"]
    measured["work"] = (work[0] + both[0], work[1] + both[1])
    measured["rest"] = (measured["rest"][0] + both[0], measured["rest"][1] + both[1])
    test_functions(sojourn, database, measured)
    test_tree(sojourn, database, measured)
    test_threads(sojourn, database, measured)
    test_measured(sojourn, program, database)
    test_flight(sojourn, program)


if __name__ == "__main__":
    main(test)
