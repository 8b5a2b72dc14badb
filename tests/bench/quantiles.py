#!/usr/bin/env python3
"""Measures how far the quantiles of stored histograms are from those of the calls themselves, and what a call
path costs in the file.

  tests/bench/quantiles.py BUILD_FOLDER DATABASE [--most-calls N]

The quantiles 0.5, 0.9, 0.95 and 0.99 of every function of the first session with 100 to N calls are
computed from its calls (rank (count - 1) * q, as the histogram's) and compared, except for 1 ns, which
the times of calls are rounded to. Bytes of a call path:
the pages of call_paths and of its indexes, and apart from that what histogram and state take.
"""
import argparse
import sqlite3
import subprocess
import sys

QUANTILES = (0.5, 0.9, 0.95, 0.99)
ROUNDING_NS = 1  # a call's times are given in whole ns, histograms count in ticks


def ask(sojourn, database, query):
    text = subprocess.run([sojourn, "sql", "--csv", "--timeout", "3600", query, database], check=True,
                          capture_output=True, text=True).stdout
    return [[int(field) for field in line.split(",")] for line in text.splitlines()[1:]]


def exact(durations, quantile):
    rank = (len(durations) - 1) * quantile
    return durations[int(rank)]


def measure(sojourn, database, most):
    session = ask(sojourn, database, "SELECT min(session_id) FROM sessions")[0][0]
    estimates = ask(sojourn, database, "SELECT function_id, calls, " + ", ".join(
        f"CAST(histogram_quantile(histogram, {q}, session_id) AS INTEGER)" for q in QUANTILES) +
        f" FROM function_stats WHERE session_id = {session} AND unwound = 0 AND calls BETWEEN 100 AND "
        f"{most}")
    errors = []
    for function, calls, *told in estimates:
        durations = [row[0] for row in ask(
            sojourn, database, f"SELECT duration_ns FROM calls WHERE session_id = {session} AND "
            f"function_id = {function} AND ending = 'returned' ORDER BY duration_ns")]
        if len(durations) == calls and durations[0] > 0:
            errors += [(max(0, abs(estimate - exact(durations, q)) - ROUNDING_NS) /
                        exact(durations, q), q, function) for q, estimate in zip(QUANTILES, told)]
    return errors


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("database")
    parser.add_argument("--most-calls", type=int, default=100000)
    options = parser.parse_args()
    errors = measure(f"{options.build}/bin/sojourn", options.database, options.most_calls)
    if not errors:
        sys.exit("quantiles.py: no function has so many calls")
    errors.sort()
    print(f"{len(errors)} quantiles of {len({row[2] for row in errors})} functions: error "
          f"{100 * sum(row[0] for row in errors) / len(errors):.2f} % on average, "
          f"{100 * errors[len(errors) * 99 // 100][0]:.2f} % in 99 of 100, "
          f"{100 * errors[-1][0]:.2f} % at most")
    file = sqlite3.connect(options.database)
    paths, payload = file.execute("SELECT count(*), sum(length(histogram) + length(state)) FROM "
                                  "call_paths").fetchone()
    pages = dict(file.execute("SELECT name, sum(pgsize) FROM dbstat WHERE name LIKE 'call_paths%' "
                              "GROUP BY name").fetchall())
    print(f"{paths} call paths: {sum(pages.values()) / paths:.0f} bytes each in the file "
          f"({pages['call_paths'] / paths:.0f} without indexes), {payload / paths:.0f} of them "
          "histogram and exact sums")
    if errors[-1][0] > 0.05:
        sys.exit("quantiles.py: an error is above 5 %")


if __name__ == "__main__":
    main()
