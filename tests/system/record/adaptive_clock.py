#!/usr/bin/env python3
"""--clock adaptive: counts, callers and containment equal those of a recording that times every call. Estimates are
marked as such, with their error, in SQL, reports, trees, differences and exports. Functions that the policy names
or a trigger watches are timed. What is left out is reported. adaptive_clock.py BUILD_FOLDER"""
import csv
import ctypes
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from java_programs import built_classes
from sojourn_testing import PATIENCE_S, SAMPLES, check, check_accounts, children, json_rows, main

UNTIMED = 16
ADDR_NO_RANDOMIZE = 0x0040000
LOOP = "my $s = 0; for my $i (1 .. $ARGV[0]) { $s += ord(chr($i % 200)) % 7 }; print $s;"
PROGRAM = ["perl", "-e", LOOP]
HANDLER = ["perl", "-e",
           "use POSIX; my $n = 0; $SIG{VTALRM} = sub { $n += length('x' x 3) };"
           "use Time::HiRes qw(setitimer ITIMER_VIRTUAL); setitimer(ITIMER_VIRTUAL, 0.002, 0.002);"
           + LOOP + "POSIX::_exit(0)"]
# Waits twice: first for the start of a program that did not exist before, then for its work.
LATER = ["sh", "-c", "echo ready; read line; perl -e '$| = 1; print \"ready\\n\"; <STDIN>;" + LOOP
         + "' \"$0\"; exit"]
ROUNDS, DOUBLINGS = 20000, 8
EMULATED_CALLS = {"leaf": 2, "jumping": 1, "halving": 5}
REFUSED = [({"java": {"classes": ["a.*"]}}, "methods of java"), ({"mono": {"lines": True}}, "methods of mono"),
           ({"objc": {"technique": "dispatch"}}, "methods of objc"), ({"zombies": {"heap": {"one_in": 100}}}, "freed memory"),
           ({"values": [{"function": "App.Main:Run(int)", "argument": 1, "as": "int"}]}, "methods of mono"),
           ({"modules": {"library_calls": True}}, "library_calls")]
EDGES = ("SELECT coalesce(c.name, '') AS caller, f.name AS callee, e.calls FROM call_edges e"
         " LEFT JOIN functions c ON c.function_id = e.caller_function_id"
         " JOIN functions f ON f.function_id = e.callee_function_id")
CALLERS = ("SELECT DISTINCT f.name FROM call_edges e JOIN function_stats s ON s.function_id = e.callee_function_id"
           " JOIN functions f ON f.function_id = e.caller_function_id WHERE s.untimed_calls > 0")
STATS = ("SELECT f.name, s.calls, s.untimed_calls, s.sampled_calls, s.error_ns, s.untrusted, s.total_ns"
         " FROM function_stats s JOIN functions f USING (function_id)")
OUTSIDE = ("SELECT count(*) AS n FROM calls c JOIN calls p ON p.call_id = c.parent_id"
           " WHERE c.start_ns < p.start_ns OR c.end_ns > p.end_ns OR c.self_ns < 0 OR c.duration_ns < 0")
FLAGGED = f"SELECT count(*) AS n, sum(ending = 'open') AS open FROM calls WHERE flags & {UNTIMED}"
# In a session whose calls are all timed, nothing is an estimate.
TOUCHED = f"SELECT count(*) AS n FROM calls c JOIN function_stats s USING (function_id) WHERE c.flags & {UNTIMED} AND s.untimed_calls IS NULL"


def recorded(sojourn, name, program, options):
    database = sojourn.path(f"{name}.db")
    done, summary = sojourn.record_all(program, database, ["--block-ms", "10000", *options])
    check(done.returncode == 0, f"{name}: {done.stderr}")
    check_accounts(sojourn, database)
    outside, = sojourn.sql(database, OUTSIDE)
    check(outside["n"] == 0, f"{name}: {outside['n']} calls lie outside of their callers")
    edges = {(row["caller"], row["callee"]): row["calls"] for row in sojourn.sql(database, EDGES)}
    stats = {row["name"]: row for row in sojourn.sql(database, STATS)}
    untimed = sum(row["untimed_calls"] or 0 for row in stats.values())
    check((summary["untimed_records"] != 0) == (untimed != 0), f"{name}: {summary['untimed_records']} records, {untimed} calls untimed")
    return database, edges, stats


def counted(sojourn, name, program, options=()):
    """Records longer and longer runs until calls were counted. On a loaded machine the program may end before the
    recorder has seen which of its functions are short."""
    for doubling in range(DOUBLINGS):
        rounds = str(ROUNDS << doubling)
        database, edges, stats = recorded(sojourn, f"{name}{rounds}", [*program, rounds], ["--clock", "adaptive", *options])
        if any(row["untimed_calls"] for row in stats.values()):
            return rounds, database, edges, stats
    check(False, f"{name}: no calls were counted: {stats}")


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
    callers = {row["name"] for row in sojourn.sql(database, CALLERS)} - set(estimated)
    lines = output_of(sojourn, "report", "--all", "--columns", "total,self,function", database).splitlines()
    first = [line.split() for line in lines].index(["total", "self", "function"]) + 1
    marks = {line.split()[-1]: line.count("~") for line in lines[first:lines.index("", first)]}
    for name, count in marks.items():
        check(count == (2 if name in estimated else name in callers), f"{name}: {count} of total and self are marked")
    markdown = output_of(sojourn, "report", "--all", "--markdown", "--wide", "--columns", "total,self,function", database)
    told = {line.split("|")[-2].split()[-1]: line.count("~") for line in markdown.splitlines()[2:]}
    different = {name: count for name, count in told.items() if count != marks.get(name)}
    check(any(told.values()) and not different, f"Markdown marks {different} unlike the table")
    check("\n~ estimates" in output_of(sojourn, "tree", "--all", database), "the tree does not say what ~ is")
    rows = list(csv.DictReader(io.StringIO(output_of(sojourn, "report", "--csv", "--all", database))))
    told = {row["function"] for row in rows if row["untimed"] not in ("", "0")}
    check(told == set(estimated), f"report --csv tells of {told}")
    check_self_marks(sojourn, database, set(estimated), set(estimated) | callers)
    tree = json_rows(output_of(sojourn, "tree", "--json", "--all", database))
    check({row["name"] for row in tree if row["is_estimate"]} == set(estimated), "the tree tells of others")
    trace = json.loads(output_of(sojourn, "export", "--format", "chrome-json", database))["traceEvents"]
    marked = {event["name"] for event in trace if event.get("cat") == "estimate"}
    check(marked and marked <= set(estimated), f"chrome-json marks {marked}")
    lines = output_of(sojourn, "export", "--format", "function.txt", database).splitlines()
    check(any(line.endswith(" ~") for line in lines), "function.txt marks nothing")
    around = sojourn.sql(database, f"SELECT call_id FROM calls WHERE flags & {UNTIMED} AND duration_ns IS NOT NULL LIMIT 1")[0]["call_id"]
    replay = ["replay", "--around", str(around), "--count", "9", database]
    marked, = [line for line in output_of(sojourn, *replay).splitlines() if line.startswith(">")]
    check(marked.split()[2].startswith("~"), f"replay shows {marked}")
    told = {row["call_id"]: row["is_estimate"] for row in json_rows(output_of(sojourn, *replay[:1], "--json", *replay[1:]))
            if row["type"] == "call"}
    check(told[str(around)] is True, f"replay --json tells {told}")
    calls = list(csv.DictReader(io.StringIO(output_of(sojourn, "sql", "--csv", f"SELECT flags FROM calls WHERE flags & {UNTIMED} LIMIT 1", database))))
    check(calls, "calls have no flag")


def check_self_marks(sojourn, database, totals, selves):
    """One rule holds everywhere: trees and reports as data, report.txt and flame graphs mark the same self times as
    the report."""
    told = {row["function"] for row in json_rows(output_of(sojourn, "report", "--json", database)) if row["is_self_estimate"]}
    check(told == selves, f"report --json: the self times of {told} are estimates, not those of {selves}")
    told = {row["name"] for row in json_rows(output_of(sojourn, "tree", "--json", "--all", database)) if row["is_self_estimate"]}
    check(told == selves, f"tree --json: the self times of {told} are estimates, not those of {selves}")
    lines = [line.split() for line in output_of(sojourn, "export", "--format", "report.txt", database).splitlines()]
    column, = [line.index("self_estimate") for line in lines if "self_estimate" in line]
    told = {line[-1] for line in lines if len(line) > column + 1 and line[column] == "1"}
    check(told == selves, f"report.txt: the self times of {told} are estimates, not those of {selves}")
    hints = re.findall(r"<title>([^<\n]*)\n([^<]*), self ([^<,]*),", output_of(sojourn, "flame", "-o", "-", database))
    for name, total, self_time in hints:
        check((total[0] == "~", self_time[0] == "~") == (name in totals, name in selves), f"flame: {name}: {total}, self {self_time}")
    check(any(total[0] != "~" and self_time[0] == "~" for _, total, self_time in hints), f"flame: {hints}")


def check_window(sojourn, database):
    """In a part of the session, the number of untimed calls equals the number of its calls with the flag."""
    (half,), = [row.values() for row in sojourn.sql(database, "SELECT max(end_ns) / 2 AS half FROM calls")]
    flagged = {row["name"]: row["n"] for row in sojourn.sql(
        database, f"SELECT f.name, count(*) AS n FROM calls c JOIN functions f USING (function_id) WHERE c.flags & {UNTIMED}"
        f" AND c.start_ns <= {half} AND c.duration_ns IS NOT NULL GROUP BY 1")}
    whole = {row["function"]: row["error_ns"] for row in json_rows(output_of(sojourn, "report", "--json", database))}
    rows = json_rows(output_of(sojourn, "report", "--json", "--to", f"{half}ns", database))
    check({row["function"]: row["untimed"] for row in rows if row["untimed"]} == flagged, f"untimed calls of a window: {rows}")
    check(all(0 <= row["error_ns"] <= whole[row["function"]] for row in rows if row["untimed"]), f"errors of a window: {rows}")
    table = output_of(sojourn, "report", "--all", "--columns", "total,function", "--to", f"{half}ns", database)
    lines = [line.split() for line in table.split("\n\n")[1].splitlines()[1:]]
    of_window = {row["function"] for row in rows}
    marked = {words[-1] for words in lines if words[0][0] == "~"}
    check(marked == {name for name in of_window if whole[name] is not None}, f"~ in a window: {table}")
    check_window_without_samples(sojourn, database)


def check_window_without_samples(sojourn, database):
    """Where no two timed calls give the error, the error is the whole untimed time, and a window has the share of
    its calls."""
    copy = sojourn.path("no samples.db")
    untimed = f"FROM calls WHERE flags & {UNTIMED} AND duration_ns IS NOT NULL"
    half = sojourn.sql(database, f"SELECT start_ns {untimed} ORDER BY 1 LIMIT 1 OFFSET (SELECT count(*) / 2 {untimed})")[0]["start_ns"]
    shutil.copyfile(database, copy)
    connection = sqlite3.connect(copy)
    connection.execute("UPDATE function_stats SET sampled_calls = 1, error_ns = 1000 * untimed_calls WHERE untimed_calls > 0")
    connection.commit()
    connection.close()
    rows = [row for row in json_rows(output_of(sojourn, "report", "--json", "--to", f"{half}ns", copy)) if row["untimed"]]
    check(rows and all(abs(row["error_ns"] - 1000 * row["untimed"]) <= 1 for row in rows), f"no samples: {rows}")


def check_summary(sojourn, rounds):
    """The closing summary marks the same self times as the report does."""
    for doubling in range(DOUBLINGS):
        database = sojourn.path(f"summary{doubling}.db")
        done = sojourn.run(["record", "--clock", "adaptive", "-o", database, "--", *PROGRAM, str(int(rounds) << doubling)],
                           capture_output=True, text=True)
        told = {line.split()[-1]: "~" in line for line in done.stderr.splitlines() if " self " in line}
        shown = output_of(sojourn, "report", "--all", "--columns", "self,function", database).splitlines()[5:]
        marked = {line.split()[-1]: "~" in line for line in shown if line}
        check(told and all(marked[name] == is_marked for name, is_marked in told.items()), f"{told} is not {marked}")
        if any(told.values()):
            return
    check(False, "no summary of estimates")


def check_mixed(sojourn, database, rounds):
    """Comparing sessions with different clocks gives a warning. Comparing sessions with the same clock gives none."""
    for program, options in ((PROGRAM, ["--clock", "adaptive"]), (PROGRAM, []), (["true"], ["--clock", "adaptive"])):
        done, _ = sojourn.record([*program, rounds], database, options)
        check(done.returncode == 0, f"{options}: {done}")
    counts = sojourn.sql(database, "SELECT session_id AS id, sum(untimed_calls > 0) AS n FROM function_stats GROUP BY 1 ORDER BY 1")
    clocks = {row["id"]: bool(row["n"]) for row in counts}
    check(clocks[1] and not clocks[3] and not clocks.get(4), f"clocks of the sessions: {counts}")
    for command in (["diff", "1", "3"], ["check", "--baseline", "3", "1"], ["diff", "1", "1"], ["diff", "3", "3"]):
        done = sojourn.run([*command, database], capture_output=True, text=True)
        check(("recorded alike" in done.stderr) == ("1" in command and "3" in command), f"{command}: {done}")
    for sets, count in ((("1", "4"), 1), (("3", "4"), 0)):
        done = sojourn.run(["diff", *sets, database], capture_output=True, text=True)
        check("recorded alike" not in done.stderr and done.stderr.count("none to count") == count, f"{sets}: {done}")
    done = sojourn.run(["diff", "--exit-code", "3", "3", database], capture_output=True, text=True)
    check(done.returncode == 0 and "added" not in done.stdout, f"a session against itself: {done}")


def check_chosen(sojourn, estimated):
    chosen = max(estimated, key=lambda name: estimated[name]["calls"])
    rounds, _, _, stats = counted(sojourn, "chosen", PROGRAM, ["--timed", chosen])
    check(not stats[chosen]["untimed_calls"], f"{chosen} was to be timed: {stats[chosen]}")
    policy = sojourn.path("policy.json")
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "calls": {"clock": "adaptive"},
                   "triggers": [{"on": "slow_call", "function": chosen, "longer_than": "10s", "do": ["mark"]}]}, file)
    _, _, stats = recorded(sojourn, "triggered", [*PROGRAM, rounds], ["--policy", policy])
    check(not stats[chosen]["untimed_calls"], f"a trigger asks about {chosen}: {stats[chosen]}")


def check_later_processes_obey(sojourn, rounds):
    """A process that joins while a policy times every call counts untimed calls once the next policy says so."""
    environment = {**sojourn.environment, "XDG_RUNTIME_DIR": sojourn.folder}
    summary = sojourn.path("later.json")
    for doubling in range(DOUBLINGS):
        recorder = subprocess.Popen(
            [sojourn.program, "record", "-q", "-o", sojourn.path(f"later{doubling}.db"), "--summary", summary, "--clock", "adaptive",
             "--", *LATER, str(int(rounds) << doubling)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        check(recorder.stdout.readline() == "ready\n", "the shell did not start")
        shell = children(recorder.pid)[0]
        for clock in ("exact", "adaptive"):
            done = sojourn.run(["policy", "set", "--json", "--clock", clock, str(shell)], env=environment, capture_output=True, text=True)
            check(done.returncode == 0 and not json_rows(done.stdout)[0]["not_applied"], f"--clock {clock}: {done}")
            recorder.stdin.write("go\n")
            recorder.stdin.flush()
            check(clock == "adaptive" or recorder.stdout.readline() == "ready\n", "the program did not start")
        recorder.communicate(timeout=PATIENCE_S)
        with open(summary, encoding="utf-8") as file:
            if json.load(file)["untimed_records"] != 0:
                return
    check(False, "a process that joined while all calls were timed counts none")


def check_refused(sojourn):
    refused, _ = sojourn.record(["true"], sojourn.path("no.db"), ["--clock", "sometimes"], text=True)
    check(refused.returncode != 0 and '"exact" or "adaptive"' in refused.stderr, refused.stderr)
    refused, _ = sojourn.record(["true"], sojourn.path("no.db"), ["--timed", "f*"], text=True)
    check(refused.returncode != 0 and "--clock adaptive" in refused.stderr, refused.stderr)
    policy = sojourn.path("refused.json")
    for asked, why in REFUSED:
        with open(policy, "w", encoding="utf-8") as file:
            json.dump({"policy": 1, "calls": {"clock": "adaptive"}, **asked}, file)
        refused, _ = sojourn.record(["true"], sojourn.path("no.db"), ["--policy", policy], text=True)
        check(refused.returncode != 0 and why in refused.stderr, f"{asked}: {refused.stderr}")


def check_java_is_reported(sojourn):
    folder, database = built_classes(sojourn), sojourn.path("java.db")
    done, summary = sojourn.record(["java", "-cp", folder, "Adaptive"], database, ["--clock", "adaptive"], text=True)
    check((done.returncode, done.stdout) == (0, "1000"), f"java: {done}")
    check("methods of java are not recorded with --clock adaptive" in done.stderr, f"java: {done.stderr}")
    check(summary["unrecorded_runtime"] == "java", f"java: {summary}")
    reports = sojourn.sql(database, "SELECT monitor, kind, payload ->> 'reason' AS reason FROM reports WHERE kind = 'refused'")
    check(len(reports) == 1 and reports[0]["monitor"] == "java" and "adaptive" in reports[0]["reason"], f"java: {reports}")


def check_emulated(sojourn):
    source, program = os.path.join(SAMPLES, "record/emulated.c"), sojourn.path("emulated")
    subprocess.run(["aarch64-linux-gnu-gcc", "-O1", "-foptimize-sibling-calls", "-o", program, source], check=True)
    rounds, database, adaptive, stats = counted(sojourn, "emulated", [program])
    _, exact, _ = recorded(sojourn, "emulated exact", [program, rounds], [])
    check_the_same(exact, adaptive)
    check_flags(sojourn, database, stats)
    for name, calls in EMULATED_CALLS.items():
        check(stats[name]["calls"] == calls * int(rounds), f"emulated, {rounds} rounds: {name}: {stats[name]}")


def test(sojourn, _):
    log = sojourn.path("log")
    rounds, database, adaptive, stats = counted(sojourn, "adaptive", PROGRAM, ["--function-txt", log])
    with open(os.path.join(log, "function.txt"), encoding="utf-8") as file:
        check(any(line.endswith(" ~\n") for line in file), "the live function.txt marks nothing")
    _, exact, timed = recorded(sojourn, "exact", [*PROGRAM, rounds], [])
    check(all(row["untimed_calls"] is None for row in timed.values()), "estimates where all was timed")
    check_the_same(exact, adaptive)
    estimated = check_flags(sojourn, database, stats)
    check_shown(sojourn, database, estimated)
    check_window(sojourn, database)
    check_summary(sojourn, rounds)
    check_mixed(sojourn, database, rounds)
    check_chosen(sojourn, estimated)
    _, database, _, stats = counted(sojourn, "handler", HANDLER)
    check_flags(sojourn, database, stats)
    check_later_processes_obey(sojourn, rounds)
    check_refused(sojourn)
    check_java_is_reported(sojourn)
    check_emulated(sojourn)


# Addresses and seeds decide how often Perl calls some of its functions, so both are fixed.
ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)
os.environ.update(PERL_HASH_SEED="0", PERL_PERTURB_KEYS="0")
main(test)
