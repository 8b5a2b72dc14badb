#!/usr/bin/env python3
"""Measures what a call takes on disk, everything included: the size of the database by its calls.

  tests/bench/bytes_per_call.py B [--keep FOLDER]

bzip2, duktape, zstd and tcc are built from Debian's sources (tests/bench/build_subjects, in
B/subjects) and recorded at default settings, and with exact times: bzip2 and zstd -19 compress sources, duktape runs
workloads/words.js, tcc compiles the sqlite3 amalgamation. Beside the size stand what blocks, call
paths (with their indexes) and all other tables take of it.
"""
import argparse
import itertools
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from subjects import HERE, WORKLOADS, output_of, print_table  # noqa: E402

INPUT_BYTES = 1500000
RESOLUTIONS = ("10ns", "exact")


def commands(folder, scratch):
    subjects = folder / "subjects"
    subprocess.run([os.path.join(HERE, "build_subjects"), subjects, "bzip2", "duktape", "zstd", "tcc"],
                   check=True)
    amalgamation = subjects / "sqlite-source" / "sqlite3.c"
    text = scratch / "input"
    text.write_bytes(amalgamation.read_bytes()[:INPUT_BYTES])
    headers = ["/usr/include", "/usr/include/" + output_of("gcc", "-print-multiarch")]
    tcc = [subjects / "tcc", "-nostdinc", "-I", subjects / "tcc-source" / "include"]
    return [("bzip2", [subjects / "bzip2", "-kc", text]),
            ("duktape", [subjects / "duktape", os.path.join(WORKLOADS, "words.js")]),
            ("zstd -19", [subjects / "zstd", "-q", "-19", "--single-thread", "-c", text]),
            ("tcc", tcc + [word for header in headers for word in ("-I", header)] +
             ["-c", "-o", scratch / "tcc.o", amalgamation])]


def sizes(database):
    with sqlite3.connect(database) as connection:
        calls, = connection.execute("SELECT stored_calls FROM sessions").fetchone()
        lost, = connection.execute("SELECT lost_calls FROM sessions").fetchone()
        paths, = connection.execute("SELECT count(*) FROM call_paths").fetchone()
        by_table = dict(connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))
    of_paths = sum(size for name, size in by_table.items() if name.startswith("call_paths"))
    whole = os.path.getsize(database)
    return calls, lost, paths, whole, by_table["blocks"], of_paths


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path, help="where databases stay")
    options = parser.parse_args()
    build = options.build.resolve()
    rows = [("program", "times", "calls", "lost", "call paths", "bytes a call", "blocks", "call paths",
             "other tables")]
    with tempfile.TemporaryDirectory() as folder:
        scratch = (options.keep or pathlib.Path(folder)).resolve()
        scratch.mkdir(exist_ok=True)
        for (name, command), resolution in itertools.product(commands(build, scratch), RESOLUTIONS):
            database = scratch / f"{name.split()[0]}-{resolution}.db"
            database.unlink(missing_ok=True)
            subprocess.run([build / "bin" / "sojourn", "record", "-q", "--resolution", resolution,
                            "-o", database, "--", *command], check=True, stdout=subprocess.DEVNULL)
            calls, lost, paths, whole, blocks, of_paths = sizes(database)
            rows.append((name, resolution, f"{calls:,}", str(lost), f"{paths:,}", *(
                f"{part / calls:.2f}" for part in (whole, blocks, of_paths, whole - blocks - of_paths))))
    print_table(rows, True)


if __name__ == "__main__":
    main()
