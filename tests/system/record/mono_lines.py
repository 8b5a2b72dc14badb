"""Compares the lines of Mono methods that ran with a list made by hand from the source, for both kinds of symbol
files. If lines cannot be known, the reason is reported, and the program behaves the same."""
import os
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, json_rows, main

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "mono")
SOURCE = os.path.realpath(os.path.join(SAMPLES, "Covered.cs"))
CECIL = "/usr/lib/mono/gac/Mono.Cecil/0.11.0.0__0738eb9f132ed756"
THERE = {8, 11, 12, 13, 21, 22, 23, 24, 30, *range(33, 50)}
# Lines that are not entered without a word: those of Root.Width, Box, Never and Unused, and those of the other words.
NOT_ENTERED = {("carrot", "box"): {8, 13, 24, 30}, ("leaf",): {8, 11, 12, 21, 22, 23, 24, 30, *range(39, 45), 49}}


def compile_all(sojourn):
    program = sojourn.path("Covered.exe")
    subprocess.run(["mcs", "-debug", SOURCE, f"-out:{program}"], check=True, timeout=PATIENCE_S)
    converter = sojourn.path("PortablePdb.exe")
    subprocess.run(["mcs", f"-r:{CECIL}/Mono.Cecil.dll", "-r:Mono.CompilerServices.SymbolWriter",
                    os.path.join(SAMPLES, "PortablePdb.cs"), f"-out:{converter}"], check=True, timeout=PATIENCE_S)
    made = []
    for folder, options in (("portable", []), ("embedded", ["embedded"])):
        os.mkdir(sojourn.path(folder))
        made.append(os.path.join(sojourn.path(folder), "Covered.exe"))
        subprocess.run(["mono", converter, program, made[-1], *options], check=True, timeout=PATIENCE_S,
                       env=dict(os.environ, MONO_PATH=CECIL))
        check(os.path.exists(os.path.join(sojourn.path(folder), "Covered.pdb")) == (folder == "portable"),
              f"what was written is not {folder}")
    return program, *made


def report(sojourn, database, *options):
    done = sojourn.run(["report", "--json", *options, database], capture_output=True, text=True)
    check(done.returncode == 0, f"report {options}: {done.stderr}")
    return json_rows(done.stdout), done.stderr


def lines(sojourn, database, *options):
    """Returns for each line number whether the line was entered. None: not known."""
    rows, _ = report(sojourn, database, "--coverage=line", *options)
    check(all(row["name"].startswith(SOURCE + ":") for row in rows), f"rows {rows[:3]}")
    return {int(row["name"].rsplit(":", 1)[1]): None if row["unknown"] else bool(row["entered"]) for row in rows}


def check_lines(sojourn, database, missing, *options):
    found = lines(sojourn, database, *options)
    check(set(found) == THERE, f"lines there: {sorted(set(found) ^ THERE)} differ")
    wrong = {line for line, was_entered in found.items() if was_entered != (line not in missing)}
    check(not wrong, f"{options}: wrong about lines {sorted(wrong)}")


def record(sojourn, database, command, options=("--lines",), like=None):
    """Records the program. Compares its output with that of `like`, or of the program, without Sojourn."""
    done, _ = sojourn.record(command, database, options)
    check_accounts(sojourn, database)
    alone = subprocess.run(like or command, capture_output=True, check=False, timeout=PATIENCE_S)
    check((done.returncode, done.stdout) == (alone.returncode, alone.stdout), f"it did otherwise: {done}")


def all_kinds_of_symbols(sojourn, program, portable, embedded):
    for name, path in (("mdb.db", program), ("embedded.db", embedded), ("pdb.db", portable)):
        database = sojourn.path(name)
        for words, missing in NOT_ENTERED.items():
            record(sojourn, database, ["mono", path, *words])
            check_lines(sojourn, database, missing)
        check_lines(sojourn, database, {8, 24, 30}, "--over", "all")
        check_lines(sojourn, database, NOT_ENTERED["carrot", "box"], "--session", "1")
    files, _ = report(sojourn, database, "--coverage=file", "--session", "1")
    check(len(files) == 1 and (files[0]["lines"], files[0]["entered"], files[0]["not_entered"]) ==
          (26, 22, "8, 13, 24-30"), f"files {files}")
    rows = sojourn.sql(database, """SELECT f.name, count(*) AS lines, sum(l.entered) AS entered FROM source_lines l
                                    JOIN functions f USING (function_id) WHERE l.session_id = 1 GROUP BY 1""")
    found = {row["name"]: (row["lines"], row["entered"]) for row in rows}
    check(found["Covered:Main(string[])"] == (16, 16) and found["Plant.Box`1:Never()"] == (1, 0), f"SQL {found}")
    page = sojourn.path("lines.html")
    done = sojourn.run(["report", "--coverage=file", "--session", "1", "--page", page, database])
    with open(page, encoding="utf-8") as file:
        text = file.read()
    check(done.returncode == 0 and "<td>22<td>26<td>0<td>8, 13, 24-30" in text, f"the page: {text}")
    done = sojourn.run(["report", "--coverage=line", "--over", "last+mark:x", database], capture_output=True)
    check(done.returncode != 0, "lines between marks were given")


def unknown_lines_are_reported(sojourn, program):
    database = sojourn.path("debug.db")
    record(sojourn, database, ["mono", "--debug", program, "leaf"])
    check(set(lines(sojourn, database).values()) == {None}, "lines of a program with --debug")
    _, errors = report(sojourn, database, "--coverage=file")
    check("--debug" in errors, f"it was said: {errors}")
    # With symbols of another build, with damaged symbols, and without symbols.
    database = sojourn.path("none.db")
    alone = sojourn.path("Alone.exe")
    shutil.copy(program, alone)
    for symbols in (None, b"", b"x" * 5000):
        if symbols is not None:
            with open(alone + ".mdb", "wb") as file:
                file.write(symbols)
        # The runtime itself prints messages about such files.
        record(sojourn, database, ["mono", alone, "leaf"], like=["mono", "--debug", alone, "leaf"])
        check(lines(sojourn, database) == {}, "lines without symbols")
    with open(program + ".mdb", "rb") as file:
        other = bytearray(file.read())
    other[20] ^= 1
    with open(alone + ".mdb", "wb") as file:
        file.write(other)
    record(sojourn, database, ["mono", alone, "leaf"], like=["mono", "--debug", alone, "leaf"])
    check(lines(sojourn, database) == {}, "lines of another build's symbols")
    # Without the option no lines are reported.
    record(sojourn, database, ["mono", program, "leaf"], ())
    check(lines(sojourn, database) == {}, "lines that were not requested")


def killed(sojourn):
    """A killed program sends no list of the lines that ran, so no line is reported as not entered."""
    program, database = sojourn.path("Killed.exe"), sojourn.path("killed.db")
    subprocess.run(["mcs", "-debug", "-r:System", os.path.join(SAMPLES, "Killed.cs"), f"-out:{program}"], check=True, timeout=PATIENCE_S)
    sojourn.record(["mono", program], database, ["--lines"])
    rows, _ = report(sojourn, database, "--coverage=file")
    check([(row["lines"], row["unknown"], row["entered"]) for row in rows] == [(3, 3, 0)], f"killed: {rows}")


def a_report_lost(sojourn, program):
    """If the report that ends the list is missing, the other lines are unknown."""
    database = sojourn.path("lost.db")
    record(sojourn, database, ["mono", program, "leaf"])
    with sqlite3.connect(database) as store:
        gone = store.execute("DELETE FROM reports WHERE monitor = 'lines' AND kind = 'entered' AND "
                             "payload ->> 'file' = ''").rowcount
    check(gone == 1, f"{gone} reports ended the list")
    found = lines(sojourn, database)
    check(all(found[line] is (None if line in NOT_ENTERED["leaf",] else True) for line in THERE), f"lost: {found}")


def test(sojourn, _arguments):
    program, portable, embedded = compile_all(sojourn)
    all_kinds_of_symbols(sojourn, program, portable, embedded)
    unknown_lines_are_reported(sojourn, program)
    killed(sojourn)
    a_report_lost(sojourn, program)


if __name__ == "__main__":
    main(test)
