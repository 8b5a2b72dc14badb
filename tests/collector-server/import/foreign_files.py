#!/usr/bin/env python3
"""Imports files of other tools. The calls of a uftrace folder are those in the file that uftrace's own converter writes,
and those that `uftrace report` counts. `perf script` text keeps weights and stacks. A file that cannot be imported
leaves the database as it was.

foreign_files.py BUILD_FOLDER
"""
import os
import shutil
import subprocess
import sys
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "system", "support"))
from sojourn_testing import check, json_rows, main

CALLS = ("SELECT t.tid AS tid, f.name, c.depth, c.start_ns - (SELECT min(start_ns) FROM calls WHERE session_id = "
         "{0}) AS start, c.end_ns - c.start_ns AS duration FROM calls c JOIN functions f USING (function_id) JOIN "
         "threads t USING (thread_id) WHERE c.session_id = {0}")


def imported(sojourn, database, *arguments, given=None):
    done = sojourn.run(["import", "--json", "-d", database, *arguments], capture_output=True, text=True, input=given)
    check(done.returncode == 0, f"import {arguments}: {done.stderr}")
    (row,) = json_rows(done.stdout)
    return row


def asked(sojourn, database, sql):
    done = sojourn.run(["sql", "--json", sql, database], capture_output=True, text=True)
    check(done.returncode == 0, f"{sql}: {done.stderr}")
    return json_rows(done.stdout)


def refused(sojourn, database, code, words, *arguments):
    done = sojourn.run(["import", "-d", database, *arguments], capture_output=True, text=True)
    check(done.returncode == code and words in done.stderr, f"import {arguments}: {done.returncode}: {done.stderr}")


def test_uftrace(sojourn, database, program):
    folder = sojourn.path("uftrace.data")
    subprocess.run(["uftrace", "record", "--no-event", "-d", folder, program], check=True, capture_output=True)
    own = imported(sojourn, database, folder)
    chrome = sojourn.path("uftrace.json")
    with open(chrome, "wb") as output:
        subprocess.run(["uftrace", "dump", "--chrome", "-d", folder], check=True, stdout=output,
                       stderr=subprocess.DEVNULL)
    other = imported(sojourn, database, chrome)
    check(own["format"] == "uftrace" and other["format"] == "chrome-json" and own["calls"] == other["calls"] > 500,
          f"{own} {other}")
    rows = [Counter((row["name"], row["depth"], row["start"], row["duration"])
                    for row in asked(sojourn, database, CALLS.format(done["session_id"]))) for done in (own, other)]
    check(rows[0] == rows[1], f"the calls differ: {list((rows[0] - rows[1]).items())[:5]} "
                              f"{list((rows[1] - rows[0]).items())[:5]}")
    tids = {int(name[:-4]) for name in os.listdir(folder) if name[:-4].isdigit() and name.endswith(".dat")}
    found = asked(sojourn, database, f"SELECT DISTINCT tid FROM ({CALLS.format(own['session_id'])})")
    check({row["tid"] for row in found} == tids and len(tids) == 3, f"threads {found}, not {tids}")
    report = subprocess.run(["uftrace", "report", "--no-pager", "--no-event", "-d", folder], check=True,
                            capture_output=True, text=True).stdout
    counts = {words[-1]: int(words[4]) for words in map(str.split, report.splitlines()[2:]) if len(words) == 6}
    sums = {row["name"]: int(row["calls"]) for row in asked(
        sojourn, database, f"SELECT name, count(*) AS calls FROM ({CALLS.format(own['session_id'])}) GROUP BY name")}
    # uftrace counts the return from fork in the child as a call, and shows exit, which does not return, as <0>
    for name in ("fork", "exit", "<0>"):
        sums.pop(name, None)
        counts.pop(name, None)
    check(sums == counts and counts["fib"] > 100, f"counts {sums}, uftrace report {counts}")
    refused(sojourn, database, 1, "was imported before", folder)
    return folder


def test_uftrace_longjmp(sojourn, database):
    """Calls that longjmp left have no exits: what follows is not inside of them."""
    folder, program = sojourn.path("longjmp.data"), sojourn.path("jumps")
    source = os.path.join(HERE, "foreign_jumps.c")
    subprocess.run(["gcc", "-pg", "-O1", "-fno-optimize-sibling-calls", source, "-o", program], check=True)
    subprocess.run(["uftrace", "record", "--no-event", "-d", folder, program], check=True, capture_output=True)
    done = imported(sojourn, database, folder)
    rows = asked(sojourn, database, "SELECT f.name, c.depth, c.ending, count(*) AS n FROM calls c JOIN functions f "
                                    f"USING (function_id) WHERE c.session_id = {done['session_id']} AND f.name IN "
                                    "('run', 'deep', 'after') GROUP BY 1, 2, 3 ORDER BY 1, 2")
    values = [(row["name"], int(row["depth"]), row["ending"], int(row["n"])) for row in rows]
    check(values == [("after", 2, "returned", 3), ("deep", 2, "unwound", 3), ("deep", 3, "unwound", 3),
                     ("deep", 4, "unwound", 3), ("run", 1, "returned", 3)], f"{values}")
    shutil.rmtree(folder)


def test_damaged_uftrace(sojourn, database, folder):
    """The messages name a cut file, a damaged record and a missing file. The database keeps its sessions."""
    before = asked(sojourn, database, "SELECT count(*) AS n FROM sessions")
    largest = max((name for name in os.listdir(folder) if name[:-4].isdigit()),
                  key=lambda name: os.path.getsize(os.path.join(folder, name)))
    path = os.path.join(folder, largest)
    with open(path, "rb") as file:
        sound = file.read()
    for content, words in ((sound[:-3], f"byte {len(sound) - 16}: the file ends in a record"),
                           (sound[:32] + b"\0" * 16 + sound[48:], "byte 32: this is not a record"),
                           (sound[:8] + bytes([sound[8] | 4]) + sound[9:], "byte 0: the record has arguments")):
        with open(path, "wb") as file:
            file.write(content)
        refused(sojourn, database, 1, words, folder)
    with open(path, "wb") as file:
        file.write(sound)
    os.remove(os.path.join(folder, "task.txt"))
    refused(sojourn, database, 3, "task.txt", folder)
    check(asked(sojourn, database, "SELECT count(*) AS n FROM sessions") == before, "a refused import added a session")
    left = [name for name in os.listdir(os.path.dirname(database)) if ".import-" in name or ".sojourn-import" in name]
    check(not left, f"left behind: {left}")


def test_perf(sojourn, database):
    text = ("# a comment\napp  12/13 [001]  10.250000:   250000 cpu-clock: \n\t    55d0 leaf+0x10 (/usr/bin/app)\n"
            "\t    55e0 main+0x1 (/usr/bin/app)\n\nmy app 12 11.5:  500 cpu-clock: \n\tffff operator+(int)+0x2 "
            "([kernel.kallsyms])\n\t    55e0 main+0x9 (/usr/bin/app)\n\napp 12 11.6: 7 cpu-clock: \n\n")
    done = imported(sojourn, database, "-", given=text)
    check(done["format"] == "perf-script" and done["samples"] == 2, f"{done}")
    rows = asked(sojourn, database, f"SELECT depth, name, calls, self_ns, total_ns FROM call_tree({done['session_id']}) "
                                    "ORDER BY depth, name")
    values = [(row["name"], int(row["calls"]), int(row["self_ns"]), int(row["total_ns"])) for row in rows]
    check(values == [("main", 0, 0, 250500), ("leaf", 1, 250000, 250000), ("operator+(int)", 1, 500, 500)], f"{values}")
    notes = asked(sojourn, database, f"SELECT note FROM annotations WHERE session_id = {done['session_id']}")
    check(any("1 sample had no stack" in row["note"] for row in notes), f"{notes}")
    refused(sojourn, database, 1, "byte 12: the line of a sample has no time", "--format", "perf-script",
            sojourn.path("bad.txt"))


def test_new_database(sojourn):
    """Without a database, a failed import creates none, and a good one creates sojourn-imported.db."""
    folder = sojourn.path("empty folder")
    os.mkdir(folder)
    file = os.path.join(folder, "a.folded")
    for content, code, files in (("main\n", 1, ["a.folded"]), ("main 1\n", 0, ["a.folded", "sojourn-imported.db"])):
        with open(file, "w", encoding="utf-8") as output:
            output.write(content)
        done = subprocess.run([sojourn.program, "import", "--format", "folded", file], cwd=folder, capture_output=True,
                              text=True, check=False)
        check(done.returncode == code and sorted(os.listdir(folder)) == files,
              f"{content!r}: {done.returncode} {done.stderr} {os.listdir(folder)}")


def test(sojourn, _):
    database = sojourn.path("imported.db")
    program = sojourn.path("foreign_app")
    subprocess.run(["gcc", "-pg", "-O0", "-g", os.path.join(HERE, "foreign_app.c"), "-o", program, "-lpthread"], check=True)
    folder = test_uftrace(sojourn, database, program)
    test_uftrace_longjmp(sojourn, database)
    test_damaged_uftrace(sojourn, database, folder)
    with open(sojourn.path("bad.txt"), "w", encoding="utf-8") as output:
        output.write("# a comment\nno sample\n")
    test_perf(sojourn, database)
    test_new_database(sojourn)
    done = sojourn.run(["verify", database], capture_output=True, text=True)
    check(done.returncode == 0, f"verify: {done.stdout} {done.stderr}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main(test)
