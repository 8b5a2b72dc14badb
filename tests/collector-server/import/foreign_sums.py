#!/usr/bin/env python3
"""Imports files that valgrind and clang's XRay wrote, and compares all sums with what callgrind_annotate and llvm-xray
say about the same files.

foreign_sums.py BUILD_FOLDER
"""
import csv
import glob
import io
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "system", "support"))
from sojourn_testing import check, main
from foreign_files import CALLS, asked, imported, refused

SUMS = ("SELECT f.name, sum(s.calls) AS calls, sum(s.self_ns) AS self, sum(s.total_ns) AS total FROM function_stats s "
        "JOIN functions f USING (function_id) WHERE s.session_id = {0} GROUP BY 1")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def annotated(file, *options):
    """Returns the costs of each function by callgrind_annotate, one for each source file."""
    costs = {}
    text = output_of("callgrind_annotate", "--auto=no", "--show-percs=no", *options, file)
    for cost, name in re.findall(r"^ *([\d,]+) +\S[^\n]*?:([^\n:]+?)(?: \[[^\n]*\])?$", text, re.MULTILINE):
        costs.setdefault(name, []).append(int(cost.replace(",", "")))
    return costs


def test_callgrind(sojourn, database):
    program, file = sojourn.path("app"), sojourn.path("callgrind.out.app")
    subprocess.run(["gcc", "-O1", "-g", "-pthread", os.path.join(HERE, "foreign_calls.c"), "-o", program], check=True)
    subprocess.run(["valgrind", "-q", "--tool=callgrind", "--dump-instr=yes", f"--callgrind-out-file={file}", program],
                   check=True, capture_output=True)
    done = imported(sojourn, database, file)
    rows = {row["name"]: row for row in asked(sojourn, database, SUMS.format(done["session_id"]))}
    own = {name: sum(costs) for name, costs in annotated(file, "--threshold=100").items() if sum(costs) != 0}
    found = {name: int(row["self"]) for name, row in rows.items() if int(row["self"]) != 0}
    check(found == own and len(own) > 100, f"own costs differ: {set(found.items()) ^ set(own.items())}")
    # callgrind_annotate adds the cost of a call to the file of the caller's line, and counts recursion twice
    inclusive = {name: costs[0] for name, costs in annotated(file, "--inclusive=yes").items() if len(set(costs)) == 1}
    same = sum(int(rows[name]["total"]) == cost for name, cost in inclusive.items() if name in rows)
    check(int(rows["main"]["total"]) == inclusive["main"] and same > 0.8 * len(inclusive),
          f"{same} of {len(inclusive)} inclusive costs are the same")
    with open(file, "rb") as whole:
        sound = whole.read()
    cut = sojourn.path("cut.out")
    for size in range(len(sound) // 3, len(sound) - 500, len(sound) // 7):
        with open(cut, "wb") as part:
            part.write(sound[:size])
        refused(sojourn, database, 1, "byte ", cut)


# how often recursive functions were called is an estimate, because exports count their times once
OWN = ("SELECT f.name, iif(f.name IN ('main', 'work', 'leaf'), s.calls, 0) AS calls, s.self_ns FROM function_stats s JOIN functions f "
       "USING (function_id) WHERE s.session_id = {0} ORDER BY 1")


def test_own_files(sojourn, database):
    """Imports own exports, and finds their calls with their own costs or times."""
    program, recorded = sojourn.path("recorded_app"), sojourn.path("recorded.db")
    subprocess.run(["gcc", "-O1", "-g", "-pthread", os.path.join(HERE, "foreign_calls.c"), "-o", program], check=True)
    sojourn.run(["record", "-q", "-o", recorded, "--", program], check=True, capture_output=True)
    calls = f"SELECT name, count(*), sum(duration) FROM ({CALLS.format(1)}) GROUP BY 1 ORDER BY 1"
    for name, sql in (("a.callgrind", OWN.format(1)), ("a.perfetto", calls), ("function.txt", calls)):
        file, target = sojourn.path(name), sojourn.path(f"{name}.db")
        sojourn.run(["export", "-o", file, recorded], check=True, capture_output=True)
        imported(sojourn, target, file)
        before, after = asked(sojourn, recorded, sql), asked(sojourn, target, sql)
        check(len(before) > 4 and before == after, f"{name}: {[pair for pair in zip(before, after) if pair[0] != pair[1]]}")


def test_xray(sojourn, database):
    program = sojourn.path("xray_app")
    subprocess.run(["clang", "-O1", "-g", "-fxray-instrument", "-fxray-instruction-threshold=1", "-pthread", "-fno-optimize-sibling-calls",
                    os.path.join(HERE, "foreign_calls.c"), "-o", program], check=True)
    options = f"patch_premain=true xray_mode=xray-basic xray_logfile_base={sojourn.path('log.')}"
    subprocess.run([program], check=True, capture_output=True, env={
        **os.environ, "XRAY_OPTIONS": options, "XRAY_BASIC_OPTIONS": "func_duration_threshold_us=0"})
    (log,) = glob.glob(sojourn.path("log.") + "*")
    text = sojourn.path("xray.yaml")
    with open(text, "w", encoding="utf-8") as output:
        output.write(output_of("llvm-xray-14", "convert", "-f", "yaml", "-symbolize", f"-instr_map={program}", log))
    told = {row["function"]: row for row in csv.DictReader(io.StringIO(output_of(
        "llvm-xray-14", "account", log, f"-instr_map={program}", "--format=csv", "--keep-going")))}
    numbers = {f"function {row['funcid']}": name for name, row in told.items()}
    for file in (text, log):
        done = imported(sojourn, database, file)
        check(done["format"] == "xray", f"{done}")
        rows = {numbers.get(row["name"], row["name"]): row
                for row in asked(sojourn, database, SUMS.format(done["session_id"]))}
        # main ends after XRay has written the file
        check(rows.pop("main" if file == text else "function 1", None) is not None, f"no main: {rows}")
        counts = {name: int(row["calls"]) for name, row in rows.items()}
        check(counts == {name: int(row["count"]) for name, row in told.items()} and len(told) > 3,
              f"calls {counts}, llvm-xray {told}")
        totals = asked(sojourn, database, "SELECT f.name, sum(c.duration_ns) AS total FROM calls c JOIN functions f "
                                          f"USING (function_id) WHERE c.session_id = {done['session_id']} GROUP BY 1")
        for row in totals:
            name = numbers.get(row["name"], row["name"])
            if name not in told:
                continue
            difference = int(row["total"]) - float(told[name]["sum"]) * 1e9
            check(abs(difference) <= int(told[name]["count"]) + float(told[name]["sum"]) * 1e4,
                  f"{name}: {row}, llvm-xray {told[name]}")
    with open(text, "r", encoding="utf-8") as whole:
        lines = whole.readlines()
    with open(sojourn.path("cut.yaml"), "w", encoding="utf-8") as part:
        part.writelines(lines[:-1])
    refused(sojourn, database, 1, "it is cut", sojourn.path("cut.yaml"))


def test(sojourn, _):
    database = sojourn.path("imported.db")
    test_callgrind(sojourn, database)
    test_own_files(sojourn, database)
    test_xray(sojourn, database)
    done = sojourn.run(["verify", database], capture_output=True, text=True)
    check(done.returncode == 0, f"verify: {done.stdout} {done.stderr}")


if __name__ == "__main__":
    main(test)
