"""The programs that recording is measured on: unmodified builds, with workloads of their own."""
import os
import sqlite3
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = os.path.join(HERE, "workloads")


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def programs(build):
    """Returns (name, command, standard input or None) of each program."""
    folder = os.path.join(build, "subjects")
    subprocess.run([os.path.join(HERE, "build_subjects"), folder], check=True)
    sources = os.path.join(folder, "lua-source", "src")
    compiler = [output_of("gcc", "-print-prog-name=cc1"), "-quiet", "-imultiarch",
                output_of("gcc", "-print-multiarch"), "-O2", "-o", os.devnull]
    return [
        ("lua", lua(build, 3), None),
        ("sqlite3", [os.path.join(folder, "sqlite3"), ":memory:"], os.path.join(WORKLOADS, "sqlite.sql")),
        ("cc1 -O2 (stripped)", [*compiler, os.path.join(sources, "lparser.c")], None),
        # This command makes as many calls as the prototype's program of DESIGN.md.
        ("cc1 -O2 (stripped), long", [*compiler, os.path.join(sources, "lvm.c")], None),
    ]


def lua(build, repeats):
    return [os.path.join(build, "subjects", "lua"), os.path.join(WORKLOADS, "lua.lua"), str(repeats)]


def two_clocks_ns(build):
    return float(output_of(os.path.join(build, "bench", "floor")))


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))


def clock_step_ns(build):
    """Returns the steps in which the clock of this processor moves."""
    with tempfile.TemporaryDirectory(prefix="sojourn-bench-") as folder:
        database = os.path.join(folder, "step.db")
        subprocess.run([os.path.join(build, "bin", "sojourn"), "record", "--quiet", "--resolution", "exact", "-o", database,
                        "--", "true"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return step_ns(database)


def machine(build):
    return f"{processor()}; clock in steps of {clock_step_ns(build):.2f} ns; two clock reads {two_clocks_ns(build):.1f} ns"


def step_ns(database):
    """Returns the steps in which the times of the recording are kept."""
    with sqlite3.connect(database) as connection:
        step, = connection.execute(
            "SELECT clock_step * 1.0 * tick_ns_numerator / tick_ns_denominator FROM sessions").fetchone()
    return step


def print_table(rows, markdown):
    """`rows` with the header first."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for number, row in enumerate(rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        print("| " + " | ".join(cells) + " |" if markdown else "  ".join(cells))
        if markdown and number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
