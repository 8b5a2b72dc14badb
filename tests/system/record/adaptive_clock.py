#!/usr/bin/env python3
"""--clock adaptive: counts, callers and containment are those of a recording with every clock; what is
an estimate says so, with its error, in SQL, reports, trees, differences and exports; functions that
the policy names, or a trigger asks about, are timed. adaptive_clock.py BUILD_FOLDER"""
import csv
import ctypes
import io
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main

UNTIMED = 16
ADDR_NO_RANDOMIZE = 0x0040000
PROGRAM = ["perl", "-e", "my $s = 0; for my $i (1 .. 60000) { $s += ord(chr($i % 200)) % 7 } print $s"]
HANDLER = ["perl", "-e",
           "use POSIX; my $n = 0; $SIG{VTALRM} = sub { $n += length('x' x 3) };"
           "use Time::HiRes qw(setitimer ITIMER_VIRTUAL); setitimer(ITIMER_VIRTUAL, 0.002, 0.002);"
           "my $s = 0; for my $i (1 .. 60000) { $s += ord(chr($i % 200)) % 7 }; print $s; POSIX::_exit(0)"]
EDGES = ("SELECT coalesce(c.name, '') AS caller, f.name AS callee, e.calls FROM call_edges e"
         " LEFT JOIN functions c ON c.function_id = e.caller_function_id"
         " JOIN functions f ON f.function_id = e.callee_function_id")
STATS = ("SELECT f.name, s.calls, s.untimed_calls, s.sampled_calls, s.error_ns, s.untrusted, s.total_ns"
         " FROM function_stats s JOIN functions f USING (function_id)")
OUTSIDE = ("SELECT count(*) AS n FROM calls c JOIN calls p ON p.call_id = c.parent_id"
           " WHERE c.start_ns < p.start_ns OR c.end_ns > p.end_ns OR c.self_ns < 0 OR c.duration_ns < 0")
FLAGGED = f"SELECT count(*) AS n, sum(ending = 'open') AS open FROM calls WHERE flags & {UNTIMED}"
# Of a session whose calls are all timed, nothing is an estimate.
TOUCHED = f"SELECT count(*) AS n FROM calls c JOIN function_stats s USING (function_id) WHERE c.flags & {UNTIMED} AND s.untimed_calls IS NULL"


def recorded(sojourn, name, program, options):
    database = sojourn.path(f"{name}.db")
    done, _ = sojourn.record(program, database, options)
    check(done.returncode == 0, f"{name}: {done.stderr}")
    check_accounts(sojourn, database)
    outside, = sojourn.sql(database, OUTSIDE)
    check(outside["n"] == 0, f"{name}: {outside['n']} calls lie outside of their callers")
    edges = {(row["caller"], row["callee"]): row["calls"] for row in sojourn.sql(database, EDGES)}
    stats = {row["name"]: row for row in sojourn.sql(database, STATS)}
    return database, edges, stats


def check_the_same(exact, adaptive):
    differences = {edge: (exact.get(edge), adaptive.get(edge)) for edge in exact.keys() | adaptive.keys()
                   if exact.get(edge) != adaptive.get(edge)}
    check(not differences, f"edges of both modes: {differences}")


def check_flags(sojourn, database, stats):
    estimated = {name: row for name, row in stats.items() if row["untimed_calls"]}
    check(estimated, f"no calls were counted: {stats}")
    flagged, = sojourn.sql(database, FLAGGED)
    told = sum(row["untimed_calls"] for row in estimated.values())
    check(flagged["n"] - (flagged["open"] or 0) == told, f"{flagged} calls are flagged, {told} told")
    touched, = sojourn.sql(database, TOUCHED)
    check(touched["n"] == 0, "calls are flagged of functions that are said to be timed")
    for name, row in estimated.items():
        check(row["error_ns"] is not None and row["sampled_calls"] is not None, f"{name}: {row}")
        check(row["untimed_calls"] <= row["calls"], f"{name}: {row}")
    check(all(row["error_ns"] is None for name, row in stats.items() if name not in estimated), "errors of nothing")
    return estimated


def output_of(sojourn, *arguments):
    done = subprocess.run([sojourn.program, *arguments], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"{arguments}: {done.stderr}")
    return done.stdout


def check_shown(sojourn, database, estimated):
    report = output_of(sojourn, "report", "--all", database)
    check("~ estimates" in report, report[-600:])
    for line in report.splitlines()[5:]:
        name = line.split(" ")[-1]
        if name in estimated:
            check("~" in line, line)
    rows = list(csv.DictReader(io.StringIO(output_of(sojourn, "report", "--csv", "--all", database))))
    told = {row["function"] for row in rows if row["untimed"] not in ("", "0")}
    check(told == set(estimated), f"report --csv tells of {told}")
    tree = json.loads(output_of(sojourn, "tree", "--json", "--all", database))
    check({row["name"] for row in tree if row["is_estimate"]} == set(estimated), "the tree tells of others")
    trace = json.loads(output_of(sojourn, "export", "--format", "chrome-json", database))["traceEvents"]
    marked = {event["name"] for event in trace if event.get("cat") == "estimate"}
    check(marked and marked <= set(estimated), f"chrome-json marks {marked}")
    lines = output_of(sojourn, "export", "--format", "function.txt", database).splitlines()
    check(any(line.endswith(" ~") for line in lines), "function.txt marks nothing")
    calls = list(csv.DictReader(io.StringIO(output_of(sojourn, "sql", "--csv", f"SELECT flags FROM calls WHERE flags & {UNTIMED} LIMIT 1", database))))
    check(calls, "calls have no flag")


def check_chosen(sojourn, estimated):
    chosen = max(estimated, key=lambda name: estimated[name]["calls"])
    _, _, stats = recorded(sojourn, "chosen", PROGRAM, ["--clock", "adaptive", "--timed", chosen])
    check(not stats[chosen]["untimed_calls"], f"{chosen} was to be timed: {stats[chosen]}")
    check(any(row["untimed_calls"] for row in stats.values()), "nothing else was counted")
    policy = sojourn.path("policy.json")
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "calls": {"clock": "adaptive"},
                   "triggers": [{"on": "slow_call", "function": chosen, "longer_than": "10s", "do": ["mark"]}]}, file)
    _, _, stats = recorded(sojourn, "triggered", PROGRAM, ["--policy", policy])
    check(not stats[chosen]["untimed_calls"], f"a trigger asks about {chosen}: {stats[chosen]}")


def check_refused(sojourn):
    refused, _ = sojourn.record(["true"], sojourn.path("no.db"), ["--clock", "sometimes"], text=True)
    check(refused.returncode != 0 and '"exact" or "adaptive"' in refused.stderr, refused.stderr)
    refused, _ = sojourn.record(["true"], sojourn.path("no.db"), ["--clock", "adaptive", "--library-calls"], text=True)
    check(refused.returncode != 0 and "library_calls" in refused.stderr, refused.stderr)


def test(sojourn, _):
    _, exact, stats = recorded(sojourn, "exact", PROGRAM, [])
    check(all(row["untimed_calls"] is None for row in stats.values()), "estimates where all was timed")
    database, adaptive, stats = recorded(sojourn, "adaptive", PROGRAM, ["--clock", "adaptive"])
    check_the_same(exact, adaptive)
    estimated = check_flags(sojourn, database, stats)
    check_shown(sojourn, database, estimated)
    check_chosen(sojourn, estimated)
    database, _, stats = recorded(sojourn, "handler", HANDLER, ["--clock", "adaptive"])
    check_flags(sojourn, database, stats)
    check_refused(sojourn)


# Addresses and seeds decide how often Perl calls some of its functions.
ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)
os.environ.update(PERL_HASH_SEED="0", PERL_PERTURB_KEYS="0")
main(test)
