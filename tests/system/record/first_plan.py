#!/usr/bin/env python3
"""The first recording of a program makes its plan once, whatever name the program is started by, and does not wait
for the program's request.

first_plan.py BUILD_FOLDER PROGRAM
"""
import glob
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, main


def plans_of(sojourn, program):
    """Returns the cached plans of a program's file."""
    found = []
    for path in glob.glob(sojourn.path("cache/**/*.plan"), recursive=True):
        with open(path, "rb") as file:
            if os.fsencode(program) + b"\0" in file.read():
                found.append(path)
    return found


def a_program_is_planned_without_a_request(sojourn, program):
    silent = sojourn.path("silent.so")
    subprocess.run(["gcc", "-shared", "-o", silent, "-x", "c", os.devnull], check=True)
    sojourn.record([program], sojourn.path("silent.db"), ["--agent", silent])
    check(len(plans_of(sojourn, program)) == 1, "the program was not planned before it asked")


def a_program_is_planned_once_by_any_name(sojourn, program):
    link = sojourn.path("link")
    os.symlink(program, link)
    done, summary = sojourn.record([link], sojourn.path("link.db"), ["--function", "*"])
    check(done.returncode == 0 and summary["calls"] > 0, f"{done} {summary}")
    check(len(plans_of(sojourn, program)) == 1, "the program was planned twice")
    check(not plans_of(sojourn, link), "its link was planned, too")


def an_unwanted_program_is_not_planned(sojourn, program):
    sojourn.record([program], sojourn.path("other.db"), ["--module", "libc.so.6", "--allow-unmatched"])
    check(not plans_of(sojourn, program), "a program of which nothing is recorded was planned")


def test(sojourn, arguments):
    program = os.path.realpath(arguments[0])
    for case in (a_program_is_planned_without_a_request, a_program_is_planned_once_by_any_name,
                 an_unwanted_program_is_not_planned):
        shutil.rmtree(sojourn.path("cache"), ignore_errors=True)
        case(sojourn, program)
        print(case.__name__, flush=True)


main(test)
