"""Hostile assemblies: names without a letter, with line ends, quotes and markup, or very long; 100,000 methods; files
that are cut, damaged, replaced or removed while they are read. The program behaves the same, each call is recorded,
and no name breaks a line of function.txt or an export."""
import csv
import io
import os
import random
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, json_rows, main

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "mono")
CECIL = "/usr/lib/mono/gac/Mono.Cecil/0.11.0.0__0738eb9f132ed756"
CLASS = "q'\"; DROP TABLE calls;--?.<b>&:"
# A method that no file describes has the runtime's own name for it.
NAMES = {CLASS + 'a?b?"c"?\\(string)', CLASS + "??\u202e(int)", CLASS + "]enter:x()ret:0(int)"}
CALLS = """SELECT f.name, s.calls FROM function_stats s JOIN functions f USING (function_id)
           WHERE s.calls > 0 AND f.name LIKE '%:%' AND f.name NOT LIKE 'Shelter:%'"""
TIMES = 7


def compile_all(sojourn):
    for name, options in (("Victim", ["-target:library"]), ("Shelter", ["-r:System.Core"]),
                          ("Hostile", ["-r:System.Core", f"-r:{CECIL}/Mono.Cecil.dll"])):
        output = sojourn.path(name + (".dll" if name == "Victim" else ".exe"))
        subprocess.run(["mcs", *options, os.path.join(SAMPLES, name + ".cs"), f"-out:{output}"], check=True,
                       timeout=PATIENCE_S)
    for output, more in (("Evil.dll", []), ("Many.dll", ["100000"])):
        subprocess.run(["mono", sojourn.path("Hostile.exe"), sojourn.path("Victim.dll"), sojourn.path(output), *more],
                       check=True, timeout=PATIENCE_S, env=dict(os.environ, MONO_PATH=CECIL))


def recorded(sojourn, library, replacement, name, options=()):
    """Runs methods of a copy of the library, whose file is replaced meanwhile. Returns the calls by name."""
    copy, database = sojourn.path("Copy.dll"), sojourn.path(name + ".db")
    shutil.copy(sojourn.path(library), copy)
    done, _ = sojourn.record(["mono", sojourn.path("Shelter.exe"), copy, replacement], database, options)
    check((done.returncode, done.stdout) == (4, b"134\n"), f"{name}: it did otherwise: {done}")
    check_accounts(sojourn, database)
    rows = sojourn.sql(database, CALLS)
    check(sorted(row["calls"] for row in rows) == [1] + [TIMES] * 5, f"{name}: calls {rows}")
    return {row["name"] for row in rows}, database


def hostile_names_break_no_output(sojourn):
    for library, replacement in (("Evil.dll", sojourn.path("Evil.dll")), ("Many.dll", sojourn.path("Many.dll")),
                                 ("Evil.dll", "-")):
        folder = sojourn.path("text")
        shutil.rmtree(folder, ignore_errors=True)
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(sojourn.path("evil.db" + suffix)):
                os.unlink(sojourn.path("evil.db" + suffix))
        names, database = recorded(sojourn, library, replacement, "evil", ["--function-txt", folder])
        check(names > NAMES, f"names {names}")
        calls = sojourn.sql(database, "SELECT count(*) AS calls FROM calls")[0]["calls"]
        with open(os.path.join(folder, "function.txt"), encoding="utf-8", newline="\n") as file:
            lines = file.read().split("\n")
        check(lines.pop() == "" and len(lines) == 2 * calls, f"{len(lines)} lines of {calls} calls")
        check(all(line.split("]", 1)[1].startswith(("enter:", "leave:")) for line in lines), f"lines {lines}")
        for option, rows_of in (("--json", json_rows), ("--csv", lambda text: list(csv.DictReader(io.StringIO(text))))):
            done = sojourn.run(["report", "--all", option, database], capture_output=True, text=True)
            there = {row["function"] for row in rows_of(done.stdout)}
            check(names <= there, f"{option}: missing {names - there}")
    page = sojourn.path("page.html")
    done = sojourn.run(["report", "--coverage=class", "--page", page, database], capture_output=True, text=True)
    with open(page, encoding="utf-8") as file:
        text = file.read()
    check(done.returncode == 0 and "<b>" not in text and "&lt;b&gt;&amp;" in text, f"the page: {text}")


def files_that_differ_from_the_loaded_one_do_no_harm(sojourn):
    with open(sojourn.path("Evil.dll"), "rb") as file:
        whole = file.read()
    dice = random.Random(7)
    damaged = {"cut": whole[:len(whole) // 2], "almost": whole[:-700], "empty": b"", "words": b"MZ" + b"x" * 3000}
    for number in range(24 if os.environ.get("SJ_LONG") else 4):
        bent = bytearray(whole)
        for _ in range(60):
            bent[dice.randrange(len(bent))] = dice.randrange(256)
        damaged[f"bent{number}"] = bytes(bent)
    for name, data in damaged.items():
        with open(sojourn.path(name), "wb") as file:
            file.write(data)
        recorded(sojourn, "Evil.dll", sojourn.path(name), name)
    # Another build of the assembly has another module id, so its names are not the names of these methods.
    other = sojourn.path("Other.dll")
    subprocess.run(["mcs", "-target:library", os.path.join(SAMPLES, "Victim.cs"), f"-out:{other}"], check=True,
                   timeout=PATIENCE_S)
    names, _ = recorded(sojourn, "Evil.dll", other, "exchanged")
    check(names > NAMES, f"exchanged: {names}")


def test(sojourn, _arguments):
    compile_all(sojourn)
    hostile_names_break_no_output(sojourn)
    files_that_differ_from_the_loaded_one_do_no_harm(sojourn)


if __name__ == "__main__":
    main(test)
