#!/usr/bin/env python3
"""A program whose work lies in a library that is not recorded: the summary and the report name the library and
print the command that records it, and that command shows the library's functions. A recording of the
library, one of a program that ends at once, and one without samples name no library. unrecorded_code.py BUILD_FOLDER"""
import os
import shlex
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import build_sample, check, main

ROUNDS = "6000"  # about a second of zlib's time


def record(sojourn, name, program, *options):
    """Returns the database and what the recording says at its end."""
    database = sojourn.path(f"{name}.db")
    done = sojourn.run(["record", *options, "-o", database, "--", *program], check=True, capture_output=True, text=True)
    return database, done.stderr


def printed_command(text):
    """Returns the words of the command below the line that names the place."""
    lines = text.splitlines()
    place = next((i for i, line in enumerate(lines) if "% of the CPU time passed in libz.so" in line), None)
    check(place is not None, text)
    return shlex.split(lines[place + 1])


def run(sojourn, _):
    program = build_sample(sojourn, "zlib_sums.c", "-O1", "-l:libz.so.1")
    command = [program, ROUNDS, "two words"]
    database, said = record(sojourn, "program", command)
    words = printed_command(said)
    check(words == ["sojourn", "record", "--module", "libz*", "--", *command], f"{words}")
    report = sojourn.run(["report", database], check=True, capture_output=True, text=True).stdout
    plain = " ".join(command)
    check(printed_command(report) == shlex.split(f"sojourn record --module 'libz*' -- {plain}"), report)

    database, said = record(sojourn, "inside", command, *words[2:4])
    check("passed in libz" not in said and " crc32" in said, said)
    _, said = record(sojourn, "short", [program, "1"])
    check("elsewhere" not in said, said)
    _, said = record(sojourn, "unsampled", command, "--no-code-samples")
    check("elsewhere" not in said, said)


if __name__ == "__main__":
    main(run)
