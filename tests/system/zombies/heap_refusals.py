#!/usr/bin/env python3
"""Programs that cannot be watched for uses of freed memory run as usual, and the summary says why.

heap_refusals.py BUILD_FOLDER SAMPLES
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from attaching import Target, start_attach
from heap_attached import Recorded, leave
from sojourn_testing import check, main

HERE = os.path.dirname(os.path.abspath(__file__))
WATCH = ["--profile", "--zombies", "heap"]
WHY = "SELECT DISTINCT not_watched FROM zombie_accounts"


def reasons(sojourn, database):
    return [row["not_watched"] for row in sojourn.sql(database, WHY)]


def test_valgrind(sojourn, sample):
    """A program under valgrind is not recorded; its output and status are the same."""
    command = ["valgrind", "-q", sample, "0"]
    plain = subprocess.run(command, capture_output=True, check=False)
    done, _ = sojourn.record(command, sojourn.path("valgrind.db"), WATCH)
    check((done.returncode, done.stdout) == (plain.returncode, plain.stdout), f"{done}, not {plain}")


def attach_refused(sojourn, command, name, reason, **environment):
    """A program that was attached to continues without the watch, and the summary says why."""
    database = sojourn.path(f"{name}.db")
    target = Target(command, env=dict(os.environ, **environment)).ready()
    recorder = start_attach(sojourn, target.pid, database, WATCH)
    target.process.stdin.write("0\n")
    target.process.stdin.flush()
    check(target.process.stdout.readline() == "0\n", f"{name} does not go on")
    leave(recorder, target.pid)
    check(target.finish() == (0, ""), f"{name} did not end well")
    check(reasons(sojourn, database) == [reason], f"{name}: {reasons(sojourn, database)}")


def test_sanitizer(sojourn):
    sanitized = sojourn.path("sanitized")
    subprocess.run(["gcc", "-O1", "-w", "-fsanitize=address", "-pthread", "-o", sanitized,
                    os.path.join(HERE, "..", "..", "samples", "zombies", "heap.c")], check=True)
    done, _ = sojourn.record([sanitized, "0"], sojourn.path("launched.db"), WATCH)
    check(done.returncode != 0 and b"AddressSanitizer" in done.stderr, f"{done}")
    attach_refused(sojourn, [sanitized, "-"], "sanitizer", "malloc is a sanitizer's")


def test_collector(sojourn, folder):
    """A program whose garbage collector replaces malloc is not watched: the collector would not see pointers in
    guarded blocks."""
    preload = os.path.join(folder, "collector.so")
    attach_refused(sojourn, [os.path.join(folder, "heap"), "-"], "collector", "malloc is a garbage collector's",
                   LD_PRELOAD=preload)
    database = sojourn.path("collected.db")
    done, _ = sojourn.record(["env", f"LD_PRELOAD={preload}", os.path.join(folder, "heap"), "0", "1"], database, WATCH)
    check((done.returncode, done.stdout) == (0, b"0\n1\n"), f"{done}")


def test_musl(sojourn):
    """A program of musl runs unwatched, and the summary says so."""
    program, database = sojourn.path("musl"), sojourn.path("musl.db")
    subprocess.run(["musl-gcc", "-O1", "-w", "-o", program,
                    os.path.join(HERE, "..", "..", "samples", "zombies", "heap.c")], check=True)
    done = sojourn.run(["record", "-o", database, *WATCH, "--", program, "0"], capture_output=True, text=True)
    check((done.returncode, done.stdout) == (0, "0\n"), f"{done}")
    why = "its C library is musl, whose blocks are not watched"
    check(reasons(sojourn, database) == [why], f"{reasons(sojourn, database)}")
    check(f"memory     not watched in 1 process: {why}" in " ".join(done.stderr.split("\n")), f"{done.stderr}")


def test_two_monitors(sojourn, folder):
    """A second recorder is refused with the reason, and the first one keeps watching. A program with blocks of
    another version is refused, too."""
    database, second = sojourn.path("first.db"), sojourn.path("second.db")
    target = Recorded(sojourn, os.path.join(folder, "heap"), database, *WATCH)
    target.obey(0)
    done = sojourn.run(["attach", "-q", "-o", second, *WATCH, str(target.program)], capture_output=True, text=True)
    check(done.returncode != 0 and "recorded" in done.stderr, f"the second monitor: {done}")
    target.obey(0, 1)
    target.end()
    kinds = sojourn.sql(database, "SELECT kind, reports FROM zombies")
    check(kinds == [{"kind": "use_after_free", "reports": 1}], f"the first monitor: {kinds}")
    attach_refused(sojourn, [os.path.join(folder, "other_version")], "version",
                   "another version of Sojourn has left guarded blocks in it")


def test(sojourn, arguments):
    folder = os.path.join(arguments[0], "gcc-O2")
    test_valgrind(sojourn, os.path.join(folder, "heap"))
    test_sanitizer(sojourn)
    test_collector(sojourn, folder)
    test_musl(sojourn)
    test_two_monitors(sojourn, folder)


if __name__ == "__main__":
    main(test)
