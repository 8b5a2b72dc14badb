#!/usr/bin/env python3
"""Measures what counting the calls of short functions saves (--clock adaptive), and how near its estimates come.

  tests/bench/adaptive.py BUILD_FOLDER [--samples N] [--only NAME] [--markdown] [--errors ROUNDS]

First the CPU of the program's own threads, ns a call net of a plain run, with every clock and with adaptive
ones, and two clocks, all by turns; medians over the samples, and between which values four in five of the
rounds' ratios lie. The collector is elsewhere, as in app_cost.py.

With --errors, instead, eight programs in both modes by turns, in one world (addresses and seeds are fixed):
edges whose counts differ, which must be none except those of what the program itself does otherwise each time; and,
of the functions that take 1 % of the time or more themselves in the exact recording, how far the time of
their calls lies from there: median and worst. "net of the clock": what a timed call contains of the clock's
cost, the least time that any call took in the exact recording, is taken off the exact times first, as
counted calls do not contain it. Both are of several recordings, as programs differ from run to run; the row
"exact again" compares exact recordings with each other."""
import argparse
import ctypes
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile

import app_cost
import subjects

ADDR_NO_RANDOMIZE = 0x0040000
LEAST_SHARE = 0.01
UNDISTURBED_SQL = "SELECT function_id, avg(duration_ns) AS mean_ns FROM calls WHERE flags & 15 = 0 AND duration_ns IS NOT NULL GROUP BY function_id"
SQL = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150000) SELECT sum(abs(i % 97)), count(*) FROM n;"
PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "samples", "bench", "dictionary.py")


def cost(program, options, build, scratch):
    name, command, stdin = program
    plain = app_cost.runner(command, stdin)
    exact = app_cost.Recording(build, scratch, command, stdin, [])
    adaptive = app_cost.Recording(build, scratch, command, stdin, ["--clock", "adaptive"])
    rounds = []
    for _ in range(options.samples):
        base = plain()
        floor = subjects.two_clocks_ns(build)
        rounds.append((floor, (exact.run() - base) / exact.calls, (adaptive.run() - base) / adaptive.calls))
    floor, timed, counted = (statistics.median(column) for column in zip(*rounds))
    ratios = sorted(a / f for f, _, a in rounds)
    of_exact = sorted(a / e for _, e, a in rounds)
    tenth = len(rounds) // 10
    return [name, f"{adaptive.calls:,}", f"{adaptive.counted:.0%}", f"{floor:.1f}", f"{timed:.1f}", f"{timed / floor:.2f}", f"{counted:.1f}",
            f"{counted / floor:.2f} ({ratios[tenth]:.2f} to {ratios[-1 - tenth]:.2f})",
            f"{statistics.median(of_exact):.2f} ({of_exact[tenth]:.2f} to {of_exact[-1 - tenth]:.2f})"]


def error_programs(build):
    programs = [(name.split(" ")[0], command, stdin) for name, command, stdin in subjects.programs(build)[:3]]
    return [*programs,
            ("lua5.4", ["lua5.4", "-e", "local t = {} for i = 1, 100000 do t[i % 1000] = (t[i * 7 % 1000] or 0) + #tostring(i) end"], None),
            ("sqlite3, Debian's", ["sqlite3", ":memory:", SQL], None, "--libs", "--module", "*libsqlite3*"),
            ("perl", ["perl", "-e", "my $s = 0; for my $i (1 .. 200000) { $s += ord(chr($i % 200)) % 7 } print $s"], None),
            ("python3", ["/usr/bin/python3", "-S", PYTHON], None),
            ("gawk or mawk", ["awk", "BEGIN { for (i = 0; i < 300000; i++) s += length(i % 977); print s }"], None)]


class Recorded:
    """Edges by names and counts; functions with calls, own time and the least time of a call."""

    def __init__(self, build, folder, program, options):
        _, command, stdin, *more = program
        path = os.path.join(folder, "recorded.db")
        if os.path.exists(path):
            os.unlink(path)
        with open(stdin or os.devnull, "rb") as source:
            subprocess.run([os.path.join(build, "bin", "sojourn"), "record", "--quiet", "-o", path, *more, *options, "--", *command],
                           stdin=source, stdout=subprocess.DEVNULL, check=True)
        with sqlite3.connect(path) as database:
            names = dict(database.execute("SELECT function_id, coalesce(module_id, 0) || ':' || offset FROM functions"))
            self.edges = {(names.get(caller, ""), names[callee]): calls for caller, callee, calls in database.execute(
                "SELECT caller_function_id, callee_function_id, calls FROM call_edges")}
            self.functions = {names[function]: numbers for function, *numbers in database.execute(
                "SELECT function_id, calls, total_ns, self_ns, min_ns, untimed_calls, error_ns FROM function_stats WHERE calls > 0")}
        undisturbed = subprocess.run([os.path.join(build, "bin", "sojourn"), "sql", "--json", UNDISTURBED_SQL, path],
                                     stdout=subprocess.PIPE, check=True).stdout
        self.mean_ns = {names[row["function_id"]]: row["mean_ns"] for row in json.loads(undisturbed)["rows"]}


def mean_times(recordings):
    """Returns, for each function, the median over the recordings of the mean time of a call, with its callees.
    Calls that lost records or waited for the recorder do not count."""
    return {name: statistics.median(r.mean_ns[name] for r in recordings if name in r.mean_ns) for name in recordings[0].mean_ns}


def differences(exact, others, clock_ns):
    """Returns how far the times of `others` are from those of `exact`, for the functions that matter."""
    whole = sum(numbers[2] for numbers in exact[0].functions.values())
    calls = {name: numbers[0] for name, numbers in exact[0].functions.items()}
    heavy = [name for name, numbers in exact[0].functions.items() if numbers[2] >= LEAST_SHARE * whole]
    before, after = mean_times(exact), mean_times(others)
    found = []
    for name in heavy:
        if name in before and name in after and calls[name] >= 100:
            base = before[name] - clock_ns
            found.append(abs(after[name] - base) / base if base > 0 else 1.0)
    return found


def percent(values):
    return f"{statistics.median(values):.1%}, {max(values):.1%}" if values else "-"


def errors(program, options, build, folder):
    exact, again, adaptive = [], [], []
    for _ in range(options.errors):
        exact.append(Recorded(build, folder, program, []))
        adaptive.append(Recorded(build, folder, program, ["--clock", "adaptive"]))
        again.append(Recorded(build, folder, program, []))
    edges, others, same = adaptive[0].edges, exact[0].edges, again[0].edges
    differ = sum(edges.get(edge) != others.get(edge) for edge in edges.keys() | others.keys())
    differ_again = sum(same.get(edge) != others.get(edge) for edge in same.keys() | others.keys())
    often = [numbers[3] for numbers in exact[0].functions.values() if numbers[0] >= 100]
    if not often:
        raise SystemExit(f"adaptive.py: {program[0]} calls no function of its own often: an error of nothing says nothing")
    clock_ns = min(often)
    counted = sum(numbers[4] or 0 for numbers in adaptive[0].functions.values())
    calls = sum(numbers[0] for numbers in adaptive[0].functions.values())
    heavy = [numbers for numbers in adaptive[0].functions.values()
             if numbers[4] and numbers[2] >= LEAST_SHARE * sum(n[2] for n in adaptive[0].functions.values())]
    stated = [numbers[5] / numbers[1] for numbers in heavy if numbers[1]]
    return [program[0], f"{calls:,}", f"{counted / calls:.0%}", f"{differ} ({differ_again})", str(len(differences(exact, adaptive, 0))),
            percent(stated), percent(differences(exact, adaptive, 0)), percent(differences(exact, adaptive, clock_ns)),
            percent(differences(exact, again, 0))]


COST = ["program", "calls", "counted", "two clocks, ns", "exact", "/ two clocks", "adaptive", "/ two clocks", "/ exact"]
ERRORS = ["program", "calls", "counted", "edges that differ (in exact again)", "functions of 1 %", "stated error: median, worst",
          "of exact: median, worst", "net of the clock", "exact again"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--samples", type=int, default=7)
    parser.add_argument("--errors", type=int, default=0, metavar="ROUNDS")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--only", help="programs whose name contains this")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)
    os.environ.update(PERL_HASH_SEED="0", PERL_PERTURB_KEYS="0", PYTHONHASHSEED="0")
    programs = error_programs(build) if options.errors else subjects.programs(build)[:3]
    rows = [ERRORS if options.errors else COST]
    print(subjects.machine(build))
    with tempfile.TemporaryDirectory(prefix="sojourn-bench-", dir="/dev/shm") as scratch:
        os.environ["XDG_RUNTIME_DIR"] = scratch
        for program in programs:
            if (options.only or "") in program[0]:
                print(f"measuring {program[0]}", file=sys.stderr)
                rows.append(errors(program, options, build, scratch) if options.errors else cost(program, options, build, scratch))
    subjects.print_table(rows, options.markdown)


if __name__ == "__main__":
    main()
