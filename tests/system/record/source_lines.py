#!/usr/bin/env python3
"""`report` shows file and line of functions if debug data of the recorded build are on this machine, in the program
or in a separate file. Otherwise it shows neither.

source_lines.py BUILD_FOLDER
"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, json_rows, main, sample_text

SOURCE = sample_text("record/source_lines.c")
LINES = {"leaf": 3, "outer": 12, "main": 17}


def shown(sojourn, database):
    done = sojourn.run(["report", "--columns", "source,function", "--json", database],
                       capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    return {row["function"]: row["source"] for row in json_rows(done.stdout)}


def expect(sojourn, database, path, label):
    wanted = {name: None if path is None else f"{path}:{line}" for name, line in LINES.items()}
    found = shown(sojourn, database)
    check({name: found[name] for name in LINES} == wanted, f"{label}: {found}")


def build(sojourn, name, source, *command):
    program = sojourn.path(name)
    subprocess.run([*command, "-O1", "-Wl,--build-id", source, "-o", program], check=True,
                   timeout=PATIENCE_S)
    return program


def every_compiler(sojourn, source):
    for compiler in ("gcc", "clang"):
        for version in ("-gdwarf-4", "-gdwarf-5"):
            label = compiler + version
            program = build(sojourn, label, source, compiler, "-g", version)
            database = sojourn.path(f"{label}.db")
            sojourn.record([program], database)
            expect(sojourn, database, source, label)


def apart_and_gone(sojourn, source):
    program = build(sojourn, "stripped", source, "gcc", "-g")
    debug = sojourn.path(".debug")
    os.mkdir(debug)
    subprocess.run(["objcopy", "--only-keep-debug", program, os.path.join(debug, "stripped.debug")],
                   check=True, timeout=PATIENCE_S)
    # the symbol table stays, because it has the names
    subprocess.run(["objcopy", "--strip-debug", "--add-gnu-debuglink",
                    os.path.join(debug, "stripped.debug"), program], check=True, timeout=PATIENCE_S)
    database = sojourn.path("stripped.db")
    sojourn.record([program], database)
    expect(sojourn, database, source, "separate debug file")
    shutil.rmtree(debug)
    expect(sojourn, database, None, "without its debug file")


def other_build(sojourn, source):
    program = build(sojourn, "rebuilt", source, "gcc", "-g")
    database = sojourn.path("rebuilt.db")
    sojourn.record([program], database)
    with open(source, encoding="utf-8") as file:
        moved = "\n\n\n" + file.read()
    other = sojourn.path("other.c")
    with open(other, "w", encoding="utf-8") as file:
        file.write(moved)
    build(sojourn, "rebuilt", other, "gcc", "-g")
    expect(sojourn, database, None, "another build at its path")
    os.unlink(program)
    os.mkfifo(program)
    expect(sojourn, database, None, "a pipe at its path")


def on_a_screen(sojourn, source):
    program = build(sojourn, "screen", source, "gcc", "-g")
    database = sojourn.path("screen.db")
    sojourn.record([program], database)
    done = sojourn.run(["report", database], capture_output=True, text=True)
    row = next(line for line in done.stdout.splitlines() if line.endswith(" outer"))
    check("source.c:12 " in row, f"the table says {row!r}")
    without = build(sojourn, "without", source, "gcc")
    sojourn.record([without], sojourn.path("without.db"))
    done = sojourn.run(["report", sojourn.path("without.db")], capture_output=True, text=True)
    check("source" not in done.stdout, f"a column without content: {done.stdout}")


def test(sojourn, arguments):
    source = sojourn.path("source.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SOURCE)
    every_compiler(sojourn, source)
    apart_and_gone(sojourn, source)
    other_build(sojourn, source)
    on_a_screen(sojourn, source)


main(test)
