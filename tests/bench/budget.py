#!/usr/bin/env python3
"""Does the overhead budget hold, seen from outside? CPU time (user + system, all threads, as the
kernel counts it for wait4) of whole programs, plain and recorded with --budget 1%, 3% and 10%. The
governor's own estimate is not asked, and none of the programs was used to tune it.

  tests/bench/budget.py BUILD_FOLDER SUBJECTS_FOLDER [--rounds N] [--only WORD] [--markdown]

Runs are interleaved: plain, 1 %, plain, 3 %, plain, 10 %, plain, ... Each recorded run is compared
with the mean of the plain runs just before and after it, so that what the machine does meanwhile
hits both. The figure is the median of these ratios, with the interval that contains the true median
with at least 90 % (from order statistics: nothing is assumed about the noise), and the ratio of the
fastest runs beside it.

Start-up (loading the agent, hooking every function) is paid once and is not part of the budget: it is
measured by the same program with nothing to do, and printed. `slowdown` does not include it. A
row holds when the median is at most the budget and one percentage point.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUDGETS = (1, 3, 10)


class Subject:
    """A program with work, and the same program without work."""

    def __init__(self, name, program, work, nothing, stdin=None):
        self.name, self.stdin = name, stdin
        self.work, self.nothing = [program, *work], [program, *nothing]


def cpu_of(command, stdin):
    """Returns the CPU seconds of a child and of its children."""
    with open(stdin or os.devnull, "rb") as source:
        child = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL)
        _, _, usage = os.wait4(child.pid, 0)
        child.returncode = 0
    return usage.ru_utime + usage.ru_stime


def recorded(sojourn, command, stdin, budget, scratch):
    """Returns the summary of a recorded run. Its CPU time is that of wait4 for the program alone."""
    database, summary = os.path.join(scratch, "b.db"), os.path.join(scratch, "s.json")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    with open(stdin or os.devnull, "rb") as source:
        subprocess.run([sojourn, "record", "-q", "-o", database, "--summary", summary, "--mode",
                        "profile", "--budget", f"{budget}%", "--", *command],
                       stdin=source, stdout=subprocess.DEVNULL, check=True)
    with open(summary, encoding="utf-8") as file:
        return json.load(file)


def interval(values, confidence=0.9):
    """Returns the narrowest pair of order statistics that contains the median with this confidence."""
    ordered, n = sorted(values), len(values)
    for k in range(n // 2, -1, -1):
        inside = 1 - 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2 ** n
        if inside >= confidence:
            return ordered[k], ordered[n - 1 - k]
    return ordered[0], ordered[-1]


def startup(sojourn, subject, scratch, rounds):
    """Returns the CPU seconds that recording adds to the program without work."""
    recorded(sojourn, subject.nothing, None, 3, scratch)  # plans are cached from here on
    plain = min(cpu_of(subject.nothing, None) for _ in range(rounds))
    with_it = min(recorded(sojourn, subject.nothing, None, 3, scratch)["traced_cpu_ns"] / 1e9
                  for _ in range(rounds))
    return with_it - plain


def measure(sojourn, subject, scratch, rounds):
    """Returns, for each budget, the ratios, the fastest recorded run and the calls; and all plain runs."""
    plain = [cpu_of(subject.work, subject.stdin)]
    runs = {budget: [] for budget in BUDGETS}
    for number in range(rounds):
        order = BUDGETS[number % 3:] + BUDGETS[:number % 3]
        for budget in order:
            told = recorded(sojourn, subject.work, subject.stdin, budget, scratch)
            plain.append(cpu_of(subject.work, subject.stdin))
            base = (plain[-2] + plain[-1]) / 2
            runs[budget].append((told["traced_cpu_ns"] / 1e9, base, told["calls"]))
    return plain, runs


def report(subject, plain, runs, start_s, markdown):
    for budget, told in runs.items():
        slow = [100 * ((cpu - start_s) / base - 1) for cpu, base, _ in told]
        low, high = interval(slow)
        fastest = 100 * ((min(cpu for cpu, _, _ in told) - start_s) / min(plain) - 1)
        middle = statistics.median(slow)
        cells = [subject.name, f"{statistics.median(plain):.2f}", f"{start_s * 1e3:.0f}",
                 f"{budget} %", f"{middle:.2f} %", f"{low:.2f} to {high:.2f}", f"{fastest:.2f} %",
                 f"{statistics.median(calls for _, _, calls in told):.0f}",
                 "yes" if middle <= budget + 1 else "NO"]
        print("| " + " | ".join(cells) + " |" if markdown else "  ".join(cells), flush=True)


def subjects(options):
    python, perl = "/usr/bin/python3", "/usr/bin/perl"
    here = os.path.join(HERE, "workloads")
    lua = os.path.join(options.subjects, "lua")
    return [
        Subject("C, one tiny function at a time",
                os.path.join(options.build, "bench/budget_subject"), ["1"], ["0"]),
        Subject("lua, recursion", lua, [os.path.join(here, "fib.lua"), "38"], ["-e", ""]),
        Subject("sqlite3", os.path.join(options.subjects, "sqlite3"), [], [":memory:", ""],
                os.path.join(here, "ledger.sql")),
        Subject("python3", python, [os.path.join(here, "classes.py"), "14"], ["-c", ""]),
        Subject("perl", perl, [os.path.join(here, "words.pl"), "20"], ["-e", "1"]),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("subjects")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    sojourn = os.path.join(options.build, "bin/sojourn")
    if options.markdown:
        print("| program | CPU plain, s | start-up, ms | budget | slowdown | 90 % interval | "
              "fastest against fastest | calls kept | holds |\n|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="sojourn-budget-") as scratch:
        for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
            os.environ[name] = scratch
        for subject in subjects(options):
            if options.only in subject.name:
                start_s = startup(sojourn, subject, scratch, min(options.rounds, 5))
                plain, runs = measure(sojourn, subject, scratch, options.rounds)
                report(subject, plain, runs, start_s, options.markdown)


if __name__ == "__main__":
    main()
