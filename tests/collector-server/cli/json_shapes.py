#!/usr/bin/env python3
"""The --json output of each command has the shape of schema/commands.schema.json, and the schema has every command
with --json.

json_shapes.py BUILD_FOLDER SCHEMA_FILE
"""
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys

from jsonschema import Draft202012Validator

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system",
                                "support"))
from json_shape import problem
from sojourn_testing import build_sample, check, check_sums, children, json_rows, main, wait_for


def commands_with_json(sojourn):
    listed = sojourn.run(["help"], capture_output=True, text=True).stdout
    for name in re.findall(r"^  ([a-z]+)  ", listed, re.MULTILINE):
        shown = sojourn.run([name, "--help"], capture_output=True, text=True).stdout
        if re.search(r"^ +(-., )?--json\b", shown, re.MULTILINE):
            yield name


def has_shape(done, schema, name):
    written = json.loads(done.stdout)
    wrong = problem(written, schema, name)
    check(wrong is None, wrong)
    rows = json_rows(done.stdout)
    check(rows, f"{name} has nothing to look at")
    more = dict(rows[0], unheard_of=1)
    check(name == "sql" or problem(dict(written, rows=[more]), schema, name), f"{name}: anything has its shape")
    return rows


def checks(sojourn, schema, mistakes):
    """Tests both forms, and every verdict that has an exit code."""
    database = sojourn.path("bench.db")
    for count, code, verdict in ((2, 5, "inconclusive"), (4, 0, "no_regression")):
        sojourn.run(["bench", "-n", str(count), "--name", f"n{count}", "-o", database, "--", "/bin/true"], capture_output=True)
        done = sojourn.run(["check", "--json", "--threshold", "9000", "--baseline", f"name:n{count}", f"name:n{count}", database],
                           capture_output=True, text=True)
        written, = has_shape(done, schema, "check")
        check((done.returncode, written["verdict"]) == (code, verdict) or written["verdict"] == "inconclusive", f"{done}")
    check_sums(sojourn, database)
    with sqlite3.connect(database) as store: # four sessions in which everything took four times as long
        store.execute("UPDATE call_paths SET self_ns = self_ns * 4, total_ns = total_ns * 4 WHERE session_id IN "
                      "(SELECT session_id FROM sessions WHERE name = 'n4')")
    sojourn.run(["bench", "-n", "4", "--name", "usual", "-o", database, "--", "/bin/true"], capture_output=True)
    done = sojourn.run(["check", "--json", "--baseline", "name:usual", "name:n4", database], capture_output=True, text=True)
    written, = has_shape(done, schema, "check")
    check(done.returncode == 5 or (done.returncode == 4 and written["verdict"] == "regression" and written["slower"]), f"{done}")
    done = sojourn.run(["check", "--json", "--zombies", mistakes], capture_output=True, text=True)
    check(done.returncode == 4 and has_shape(done, schema, "check")[0]["findings"], f"{done}")


def policy_set_reports_the_change(sojourn, schema, program):
    with subprocess.Popen([sojourn.program, "record", "-q", "-o", sojourn.path("changed.db"), "--", program, "wait"],
                          env=sojourn.environment, stdout=subprocess.PIPE) as recorder:
        recorder.stdout.readline()
        pid = wait_for("the program", lambda: children(recorder.pid))[0]
        done = sojourn.run(["policy", "set", "--json", str(pid), "--profile", "--buffer", "1"], capture_output=True, text=True)
        os.kill(pid, signal.SIGKILL)
    check(done.returncode == 0, f"{done}")
    has_shape(done, schema, "policy")


def a_stall(sojourn, schema, database):
    """Tests a stall that a watch reported, in the middle of the longest call."""
    call = sojourn.sql(database, "SELECT session_id, start_ns, end_ns, tid FROM calls JOIN threads USING (session_id, thread_id) "
                       "WHERE end_ns > 0 ORDER BY duration_ns DESC LIMIT 1")[0]
    half = (call["end_ns"] - call["start_ns"]) // 2
    payload = {"watch": "loop", "tid": call["tid"], "waited_ns": 2, "age_ns": 1, "threads": [], "pauses": []}
    with sqlite3.connect(database) as store:
        store.execute("INSERT INTO reports (session_id, number, at_ns, monitor, kind, payload) VALUES (?, 1000, ?, 'stall', 'late', ?)",
                      (call["session_id"], call["start_ns"] + half, json.dumps(payload)))
    done = sojourn.run(["stalls", "--json", database], capture_output=True, text=True)
    written = has_shape(done, schema, "stalls")
    check(any(thread["is_stalled"] and thread["open_calls"] for thread in written[0]["threads"]), f"{written}")
    shown = sojourn.run(["stalls", database], capture_output=True, text=True).stdout
    durations = re.findall(r"[\d.]+ (?:ns|us|ms|s)\b", shown)
    check(durations and all(re.fullmatch(r"(\d{1,3} ns|(\d\.\d\d|\d\d\.\d|\d{3}) (us|ms|s))", text) for text in durations), shown)


def changing_commands_report_the_change(sojourn, shapes, database, program):
    """Commands that change something report the change. The tests with a cluster check those of forward."""
    def run(name, *words):
        done = sojourn.run([name, "--json", *words], capture_output=True, text=True)
        check(done.returncode == 0, f"{name} {words}: {done}")
        return has_shape(done, shapes[name], name)

    other = sojourn.path("other.db")
    check(run("symbols", "add", program, "-d", database)[0]["named"] >= 0, "symbols")
    check(run("session", "tag", "1", "build=7", "-d", database) == [{"action": "tag", "session_id": 1}], "tag")
    check([(row["action"], row["imported_from"], row["joined"])
           for row in run("session", "import", database, "-d", other)]
          == [("import", 1, False), ("import", 2, False)], "import")
    stacks = sojourn.path("stacks.folded")
    with open(stacks, "w", encoding="utf-8") as file:
        file.write("main;work 3\n")
    check([(row["format"], row["samples"]) for row in run("import", stacks, "-d", sojourn.path("imported.db"))]
          == [("folded", 1)], "import of another tool's file")
    check(run("session", "move", "1", sojourn.path("."), "-d", other)[0]["blocks"] > 0, "move")
    check(run("session", "return", "1", "-d", other)[0]["action"] == "return", "return")
    check([row["action"] for row in run("session", "--dry-run", "retain", "all=1k", "-d", other)]
          == ["would_remove"] * 2, "retain")
    with subprocess.Popen(["sleep", "60"]) as process:
        left, = run("detach", str(process.pid))
        process.kill()
    check(left["pid"] == process.pid and not left["was_recorded"], f"{left}")


def whole_ids_and_numbers(name, rows):
    """Checks that there is no text for people: no duration with its unit, no calendar date, no shortened id."""
    people = re.compile(r"^(\d+(\.\d+)? ?(ns|us|ms|s|min|h|B|kB|KB|MB|MiB|GiB)|\d{4}-\d\d-\d\d.*)$")
    found = [(key, value) for row in rows for key, value in row.items() if isinstance(value, str) and people.match(value)]
    check(name == "doctor" or not found, f"{name} has texts for people: {found[:5]}")


def globals_of_a_map(sojourn, schema):
    path = sojourn.path("mapped.map")
    program = build_sample(sojourn, "record/mapped.c", "-DTABLE", f"-Wl,-Map={path}")
    done = sojourn.run(["functions", "--json", "--globals", "--map", path, program], capture_output=True, text=True)
    check(any(row["name"] == "table" for row in has_shape(done, schema, "functions")), f"{done}")


def test(sojourn, arguments):
    with open(arguments[0], encoding="utf-8") as file:
        document = json.load(file)
    Draft202012Validator.check_schema(document)
    shapes = document["$defs"]
    found = set(commands_with_json(sojourn))
    check(found | {"record", "policy"} == set(shapes), f"not in both: {found ^ set(shapes)}")
    samples = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests", "samples")
    database = sojourn.path("run.db")
    for command in ([os.path.join(samples, "ends")], [os.path.join(samples, "gcc-O2", "s_threads")]):
        _, summary = sojourn.record(command, database)
        check(summary is not None, "nothing was recorded")
        wrong = problem(summary, shapes["record"], "record")
        check(wrong is None, wrong)
    mistakes = sojourn.path("mistakes.db")
    sojourn.run(["record", "-q", "--zombies", "heap", "-o", mistakes, "--",
                 os.path.join(samples, "zombies", "gcc-O0", "heap"), "1", "2"], capture_output=True)
    sojourn.run(["token", "add", "anna", "--role", "reader", "-d", database], capture_output=True, check=True)
    for name, words in {"token": ["-d", database, "list"], "audit": [database], "report": [database], "tree": ["--all", database], "replay": [database],
                        "sessions": [database], "devices": [database],
                        "diff": ["--all", "1", "2", database], "zombies": ["-d", mistakes],
                        "functions": [os.path.join(samples, "ends")], "doctor": [], "version": [], "ps": ["--all"],
                        "backup": [sojourn.path("copy.db"), database],
                        "restore": [database, sojourn.path("restored.db")],
                        "salvage": [database, sojourn.path("salvaged.db")],
                        "coverage": [database], "verify": ["--check-only", database], "flush": ["--spool", os.mkdir(sojourn.path("spool")) or sojourn.path("spool")],
                        "bench": ["-n", "2", "-o", sojourn.path("bench.db"), "--", "/bin/true"],
                        "sql": ["SELECT * FROM calls LIMIT 20", database]}.items():
        done = sojourn.run([name, "--json", *words], capture_output=True, text=True)
        check(done.returncode in (0, 1) and done.stdout, f"{name}: {done}")
        rows = has_shape(done, shapes[name], name)
        whole_ids_and_numbers(name, rows)
    globals_of_a_map(sojourn, shapes["functions"])
    checks(sojourn, shapes["check"], mistakes)
    changing_commands_report_the_change(sojourn, shapes, database, os.path.join(samples, "ends"))
    policy_set_reports_the_change(sojourn, shapes["policy"], os.path.join(samples, "ends"))
    a_stall(sojourn, shapes["stalls"], database)


if __name__ == "__main__":
    main(test, checks_sums=False)  # the test writes its own figures into databases
