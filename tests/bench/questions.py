#!/usr/bin/env python3
"""Measures what each shipped question costs on two recordings of one program, a short and a long one.

  tests/bench/questions.py BUILD_FOLDER SHORT LONG [ROUNDS]

CPU seconds of the whole command, best of ROUNDS (1), and the plan of each use of a virtual table.
The last column is the cost for a call of the long one beside that of the short one: 1 is linear,
less is what does not grow with the recording.
"""
import glob
import json
import os
import re
import resource
import subprocess
import sys

QUERIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "schema", "queries")


def cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def sql(sojourn, arguments, database):
    return subprocess.run([sojourn, "sql", "--timeout", "3600", *arguments, database], check=True, capture_output=True,
                          text=True).stdout


def cost(sojourn, name, parameters, database, rounds):
    best = float("inf")
    for _ in range(rounds):
        begin = cpu_s()
        rows = sql(sojourn, ["--query", name, *parameters, "--csv"], database).count("\n") - 1
        best = min(best, cpu_s() - begin)
    return best, rows


def parameters_of(text, sojourn, database):
    """Names of functions are those that are called most, times are in the middle."""
    top = json.loads(sql(sojourn, ["--json", "SELECT name FROM function_stats JOIN functions USING (function_id) "
                                   "ORDER BY calls DESC LIMIT 40"], database))["rows"]
    middle = json.loads(sql(sojourn, ["--json", "SELECT max(last_leave_ns) / 2 AS ns FROM streams"], database))["rows"][0]["ns"]
    names = [row["name"] for row in top]
    given = {"function": names[20], "outer": names[30], "inner": names[10], "from_ns": middle, "at_ns": middle,
             "to_ns": int(middle) + 10_000_000}
    words = []
    for line in re.findall(r"^-- parameter: (\w+) =", text, re.MULTILINE):
        if line in given:
            words += ["--param", f"{line}={given[line]}"]
    return words


def plan_of(text, sojourn, database):
    bare = re.sub("^--.*\n", "", text, flags=re.MULTILINE)
    values = re.findall(r"^-- parameter: (\w+) = (\S+)", text, re.MULTILINE)
    words = [word for name, value in values for word in ("--param", f"{name}={1 if value == 'last' else value}")]
    plan = sql(sojourn, ["--json", *words, "EXPLAIN QUERY PLAN " + bare], database)
    return "; ".join(re.findall(r"SCAN (\w+ VIRTUAL TABLE INDEX [^\"]*)", plan)).replace("VIRTUAL TABLE INDEX ", "")


def main():
    build, short, long = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    sojourn = os.path.join(build, "bin", "sojourn")
    calls = [json.loads(sql(sojourn, ["--json", "SELECT sum(stored_calls) AS n FROM sessions"], database))["rows"][0]["n"]
             for database in (short, long)]
    print(f"{calls[0] / 1e6:.1f} M and {calls[1] / 1e6:.1f} M calls")
    print("| question | s | s | rows | for a call | calls, table functions |\n|---|---|---|---|---|---|")
    for path in sorted(glob.glob(os.path.join(QUERIES, "*.sql"))):
        name = os.path.splitext(os.path.basename(path))[0]
        with open(path, encoding="utf-8") as file:
            text = file.read()
        figures = [cost(sojourn, name, parameters_of(text, sojourn, database), database, rounds)
                   for database in (short, long)]
        share = figures[1][0] / figures[0][0] * calls[0] / calls[1]
        print(f"| `{name}` | {figures[0][0]:.3f} | {figures[1][0]:.3f} | {figures[1][1]} | {share:.2f} | "
              f"{plan_of(text, sojourn, short)} |", flush=True)


if __name__ == "__main__":
    main()
