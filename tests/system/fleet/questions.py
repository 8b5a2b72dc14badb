#!/usr/bin/env python3
"""Every shipped question runs on a real recording, returns the columns that it promises, and says how to run it.
The shell runs statements from standard input, and hostile SQL is refused.

questions.py BUILD_FOLDER QUERIES_FOLDER SAMPLES_GLOB
"""
import collections
import contextlib
import glob
import json
import os
import pty
import re
import select
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, SAMPLES, build_sample, check, children, json_rows, main, wait_for


def header(path, key):
    with open(path, encoding="utf-8") as file:
        return re.findall(rf"^-- {key}: (.*)$", file.read(), re.MULTILINE)


def sql(sojourn, arguments, expected=0, **options):
    done = sojourn.run(["sql", *arguments], capture_output=True, text=True, **options)
    check(done.returncode == expected, f"sql {arguments}: {done.returncode}\n{done.stderr}")
    return done


def ask(sojourn, database, path):
    name = os.path.splitext(os.path.basename(path))[0]
    for key in ("title", "question", "example"):
        check(len(header(path, key)) == 1, f"{name}: one {key}")
    check(f"--query {name}" in header(path, "example")[0], f"{name}: the example runs it")
    promised = [line.split(" | ")[0] for line in header(path, "column")]
    told = sql(sojourn, ["--query", name, "--csv", database]).stdout.splitlines()
    check(told and told[0].split(",") == promised, f"{name}: gives {told[:1]}, not {promised}")
    for parameter in header(path, "parameter"):
        check(re.match(r"\w+ = \S+ \| .", parameter), f"{name}: parameter '{parameter}'")
    return len(told) - 1


def answers_equal_other_computations(sojourn, database):
    """Checks answers that can be computed in another way."""
    top = json_rows(sql(sojourn, ["--query", "slowest_calls", "--param", "limit=1", "--json",
                                   database]).stdout)[0]
    most = sojourn.sql_rows(database, "SELECT max(duration_ns) AS d FROM calls "
                            "WHERE session_id = 2")[0]["d"]
    check(top["duration_ns"] == most, "slowest call is not the slowest")
    deep = sojourn.sql_rows(database, "SELECT count(*) AS n FROM call_paths WHERE recursive "
                            "AND session_id = 2")[0]["n"]
    rows = json_rows(sql(sojourn, ["--query", "recursion", "--json", database]).stdout)
    check(sum(row["recursive_paths"] for row in rows) == deep and deep > 0, "recursion is missed")
    made_at_ingest(sojourn, database)
    spots = json_rows(sql(sojourn, ["--query", "hot_spots", "--param", "limit=1000", "--json",
                                     database]).stdout)
    check(abs(sum(row["share"] for row in spots) - 1) < 1e-6, "shares do not add up")


def made_at_ingest(sojourn, database):
    """Compares slow calls and the timeline with the calls themselves."""
    wrong = sojourn.sql_rows(database, "SELECT count(*) AS n FROM (SELECT session_id, function_id, "
                             "duration_ns, row_number() OVER (PARTITION BY session_id, function_id "
                             "ORDER BY duration_ns DESC) AS place FROM calls WHERE duration_ns >= "
                             "2000) AS c LEFT JOIN slow_calls AS s USING (session_id, function_id, "
                             "place) WHERE place <= 5 AND coalesce(abs(s.duration_ns - c.duration_ns), 9) > 1")
    check(wrong[0]["n"] == 0, f"{wrong[0]['n']} of the longest calls are not in slow_calls")
    known = sojourn.sql_rows(database, "SELECT count(*) AS n, total(c.start_ns = s.start_ns AND "
                             "c.function_id = s.function_id AND c.self_ns = s.self_ns) AS same FROM "
                             "slow_calls AS s LEFT JOIN calls AS c USING (call_id)")[0]
    check(known["n"] == known["same"] and known["n"] > 0, f"slow calls that are no calls: {known}")
    steps = sojourn.sql_rows(database, "SELECT s.session_id, level, sum(t.calls) AS n, stored_calls "
                             "AS all_calls FROM timeline AS t JOIN streams USING (stream_id) JOIN "
                             "sessions AS s USING (session_id) GROUP BY 1, 2")
    check(len(steps) == 6 and all(row["n"] == row["all_calls"] for row in steps), f"{steps}")


def hostile(sojourn, database):
    for text, word in (
        ("ATTACH '/tmp/x' AS y", "ATTACH"),
        ("PRAGMA journal_mode=DELETE", "PRAGMA"),
        ("DELETE FROM sessions", "refused"),
        ("SELECT load_extension('x')", "refused"),
        ("CREATE TABLE t(a)", "refused"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("SELECT hex(zeroblob(1000000000))", "larger than"),
    ):
        done = sql(sojourn, [text, database], expected=1)
        check(word in done.stderr, f"{text}: {done.stderr}")
    done = sql(sojourn, ["--timeout", "1", "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 "
                         "FROM r) SELECT count(*) FROM r", database], expected=1)
    check("longer than its limit" in done.stderr, done.stderr)


def shell(sojourn, database):
    script = (".mode csv\nSELECT 1 AS a,\n  2 AS b;\n.query most_called limit=1\n.schema gaps\n"
              ".session 1\nSELECT :session AS s;\n")
    done = sql(sojourn, [database], input=script)
    check("a,b\n1,2\n" in done.stdout, f"shell: {done.stdout}")
    check("function,calls" in done.stdout and "## gaps" in done.stdout, f"shell: {done.stdout}")
    check("s\n1\n" in done.stdout, done.stderr)
    done = sql(sojourn, [database], input=".nothing\nSELECT 1 AS a;\n", expected=2)
    check("cannot understand .nothing" in done.stderr and done.stdout == "", f"it continues: {done}")
    sql(sojourn, ["--query", "no_such", database], expected=3)
    sql(sojourn, ["SELECT :x", database], expected=1)
    check(sql(sojourn, ["--param", "x=7", "--csv", "SELECT :x AS x", database]).stdout == "x\n7\n",
          "parameter")
    done = sojourn.run(["sql", "--csv", "SELECT 'a,\"b' AS x, char(10) AS y", database], capture_output=True)
    check(done.stdout == b'x,y\n"a,""b","\n"\n', f"CSV for cut and awk: {done.stdout}")


def every_column_is_described(sojourn, database):
    """`--schema=TABLE` lists every column of every table and view, and no other."""
    connection = sqlite3.connect(database)
    names = [row[0] for row in connection.execute(
        "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'")]
    for name in names:
        told = re.findall(r"^\| `(\w+)` \| (INTEGER|TEXT|BLOB|REAL|ANY) \| \S",
                          sql(sojourn, [f"--schema={name}", database]).stdout, re.MULTILINE)
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
        check(sorted(word for word, _kind in told) == sorted(columns),
              f"{name}: has {columns}, described are {told}")
    check(len(names) > 40, f"{names}")


def check_reports_slower_functions(sojourn):
    """`check` answers by its exit code. Twenty times the work of one function is slower on any machine, and a file
    is never slower than itself."""
    program = build_sample(sojourn, "questions/worker.c", "-O1")
    databases = {}
    for work, runs in (("2000", 6), ("40000", 6)):
        databases[work] = sojourn.path(f"work{work}.db")
        for _ in range(runs):
            done, _summary = sojourn.record([program, work], databases[work])
            check(done.returncode == 0, done.stderr)
    fast, slow = databases["2000"], databases["40000"]

    def checked(expected, *arguments):
        done = sojourn.run(["check", *arguments], capture_output=True, text=True)
        check(done.returncode == expected, f"check {arguments}: {done.returncode}, not {expected}\n"
              f"{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    check("worker" in checked(4, "--baseline", fast, "all", slow), "the slower one is not named")
    checked(0, "--baseline", fast, "--threshold", "9999", "all", fast)
    done = sojourn.run(["check", "--baseline", fast, "all", fast], capture_output=True, text=True)
    check(done.returncode in (0, 5), f"a file is slower than itself: {done.stdout}")  # 5: much noise
    said = checked(5, "--baseline", "1", "2", fast)
    check("too few sessions" in said, f"one session a side proves nothing: {said}")
    for session in range(1, 7):
        done = sojourn.run(["session", "--database", slow, "tag", str(session),
                            f"build={'old' if session > 3 else 'new'}"], capture_output=True)
        check(done.returncode == 0, f"tag: {done.stderr}")
    checked(3, "--baseline", "tag:build=none", "tag:build=new", slow)
    checked(2, "all", slow)


def on_a_terminal(sojourn, database):
    """Tests completion, Ctrl-C on a long query, history, and an end by Ctrl-D."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(sojourn.environment, TERM="dumb")
        os.execv(sojourn.program, [sojourn.program, "sql", database])

    unread = ""

    def expect(words):
        """Reads up to `words`, and leaves what follows for the next call. Returns the text before `words`."""
        nonlocal unread
        deadline = time.monotonic() + PATIENCE_S
        while words not in unread:
            ready = select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]
            check(ready, f"no '{words}' on the terminal: {unread!r}")
            unread += os.read(terminal, 4096).decode(errors="replace")
        before, unread = unread.split(words, 1)
        return before

    def type_in(text):
        os.write(terminal, text.encode())

    def ended_with(code):
        nonlocal unread
        deadline, ended = time.monotonic() + PATIENCE_S, 0
        while ended == 0:
            if select.select([terminal], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):  # the other end of the terminal is closed
                    unread += os.read(terminal, 4096).decode(errors="replace")
            ended, status = os.waitpid(child, os.WNOHANG)
            check(time.monotonic() < deadline, f"the shell does not end: {unread!r}")
        check(os.waitstatus_to_exitcode(status) == code, f"the shell's end: {status}")

    expect("sojourn> ")
    type_in("SELECT count(*) AS sess_count FROM hook_plan_f\t;\n")
    expect("hook_plan_functions")
    expect("sess_count")
    expect("sojourn> ")
    type_in("SELECT calls FROM function_stats NATURAL JOIN functions WHERE name = 's_\t\t")
    expect("s_fibonacci")
    type_in("\x15")  # this discards the line
    type_in("WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT count(*) "
            "FROM r;\n")
    told = [expect(" s (Ctrl-C stops)").split()[-1] for _ in range(6)]
    check(len(set(told)) == len(told), f"told more often than ten times a second: {told}")
    type_in("\x03")
    expect("interrupted")
    expect("sojourn> ")
    type_in("SELECT 40 + 2 AS answer;\n")
    expect("42")
    expect("sojourn> ")
    type_in("\x04")
    ended_with(0)
    history = os.path.join(sojourn.environment["XDG_STATE_HOME"], "sojourn", "sql", "history")
    with open(history, encoding="utf-8") as file:
        text = file.read()
    check("hook_plan_functions" in text and "40" in text, f"history: {text}")


VIRTUAL = re.compile(r"\b(calls AS|FROM calls|JOIN calls|call_tree|flame|diff_\w+|descendants|ancestors|"
                     r"call_aggregate|call_groups|contains|concurrency|siblings|sequence|intervals_intersect|percentile|histogram_\w+|format_duration)\b")


def by_hand(sojourn, database, paths):
    """sqlite3 without the extension answers from the aggregates, and with the extension also from single calls."""
    extension = os.path.join(os.path.dirname(sojourn.program), "..", "lib", "libsojourn-sqlite")
    plain = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        values = [line.split(" | ")[0].split(" = ", 1) for line in header(path, "parameter")]
        script = [f".parameter set :{key} {2 if value == 'last' else value}" for key, value in values]
        needs_us = VIRTUAL.search(text) is not None
        for commands in [[f".load {extension}"]] + ([] if needs_us else [[]]):
            done = subprocess.run(["sqlite3", "-bail", "-csv", "-header", database], text=True,
                                  input="\n".join([*commands, *script, text + ";"]),
                                  capture_output=True, timeout=PATIENCE_S, check=False)
            check(done.returncode == 0 and done.stderr == "", f"{path} by hand: {done.stderr}")
            options = [word for key, value in values
                       for word in ("--param", f"{key}={2 if value == 'last' else value}")]
            name = os.path.splitext(os.path.basename(path))[0]
            ours = sql(sojourn, ["--query", name, *options, "--csv", database]).stdout
            check(len(done.stdout.splitlines()) in (0, len(ours.splitlines())),
                  f"{name} by hand: {done.stdout[:300]}, not {ours[:300]}")
        plain += not needs_us
    check(plain >= 10, f"only {plain} questions are answered by aggregates")


def from_python(sojourn, database, paths):
    """Python's sqlite3 with the extension gives the rows of `sojourn sql`: of single calls, of every table function
    and of the questions. This needs Debian's Python, because others are built without extensions."""
    extension = os.path.join(os.path.dirname(sojourn.program), "..", "lib", "libsojourn-sqlite")
    asked = [("SELECT * FROM calls WHERE session_id = 2 ORDER BY call_id", {}),
             ("SELECT function_id, calls, self_ns FROM call_aggregate(2) ORDER BY 1", {}),
             ("SELECT session_id, function_id, p99_ns FROM call_groups('session,function') ORDER BY 1, 2", {}),
             ("SELECT demangle('_Z1fv'), percentile(duration_ns, 50) FROM calls", {})]
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = re.sub("^--.*\n", "", file.read(), flags=re.MULTILINE)
        values = dict(line.split(" | ")[0].split(" = ", 1) for line in header(path, "parameter"))
        asked.append((text, {key: "2" if value == "last" else value for key, value in values.items()}))
    done = subprocess.run(["/usr/bin/python3", os.path.join(SAMPLES, "questions", "asks.py"), database, extension],
                          input=json.dumps(asked), text=True, capture_output=True, check=False, timeout=PATIENCE_S)
    check(done.returncode == 0, f"Python's sqlite3: {done.stderr}")
    ours = ""
    for text, values in asked:
        parameters = [word for key, value in values.items() for word in ("--param", f"{key}={value}")]
        ours += sql(sojourn, ["--csv", "--limit", "10000000", *parameters, text, database]).stdout
    for one, other in zip(done.stdout.splitlines(), ours.splitlines()):
        check(one == other, f"Python's sqlite3 says {one}, sojourn sql {other}")
    check(len(done.stdout.splitlines()) == len(ours.splitlines()) > 500, "Python's sqlite3 has other rows")


# Letters for the columns of `calls` in the plans of calls_plan.c that let a scan skip blocks.
NARROWING = {"a": "call_id", "e": "function_id", "f": "parent_id", "h": "start_ns", "i": "end_ns", "j": "duration_ns"}
LONGEST_FIRST = 1 << 29  # SJ_CALLS_LONGEST


def no_question_scans_all_calls(sojourn, database, paths):
    """No question scans all calls: each use of `calls` names a session or stream, and a column that skips blocks."""
    uses = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = re.sub("^--.*\n", "", file.read(), flags=re.MULTILINE)
        values = [line.split(" | ")[0] for line in header(path, "parameter")]
        parameters = [word for value in values for word in ("--param", value.replace(" = ", "=").replace("=last", "=2"))]
        plan = sql(sojourn, ["--json", *parameters, "EXPLAIN QUERY PLAN " + text, database]).stdout
        for number, columns in re.findall(r"VIRTUAL TABLE INDEX (\d+):((?:[a-z][=<>{}(+])+)", plan):
            kept = columns[::2]
            check("b" in kept or "c" in kept or "a" in kept, f"{path}: of all sessions: {columns}")
            check(int(number) & LONGEST_FIRST or set(kept) & NARROWING.keys(), f"{path}: all calls: {columns}")
            uses += 1
    check(uses >= 8, f"only {uses} plans over calls were seen")


def open_calls_count_as_running(sojourn):
    """A call that never ended counts as running from its entry on."""
    program, database = build_sample(sojourn, "questions/leaves.c", "-O1"), sojourn.path("leaves.db")
    sojourn.record([program], database)
    last = sojourn.sql_rows(database, "SELECT max(start_ns) AS ns FROM calls JOIN functions USING (function_id) WHERE name = 'inner'")[0]["ns"]
    rows = json_rows(sql(sojourn, ["--query", "running_at", "--param", f"at_ns={last}", "--json", database]).stdout)
    calls = sojourn.sql_rows(database, f"SELECT call_id FROM calls WHERE start_ns <= {last} AND coalesce(end_ns, {last}) >= {last}")
    check(sorted(row["call_id"] for row in rows) == sorted(row["call_id"] for row in calls), f"running: {rows}, not {calls}")
    check({row["function"] for row in rows if row["duration_ns"] is None} >= {"main", "outer", "inner"}, f"open: {rows}")


def open_calls_end_with_their_thread(sojourn):
    """A program that calls exit() leaves main open. main then counts as running until its thread ended, and does not
    overlap later programs."""
    database = sojourn.path("ended.db")
    recorder = subprocess.Popen([sojourn.program, "record", "-q", "-o", database, "--", "sh", "-c",
                                 "perl -e 1; perl -e 2; perl -e '<STDIN>'; :"], env=sojourn.environment, stdin=subprocess.PIPE)
    wait_for("two programs have ended", lambda: sojourn.sql_once_made(
        database, "SELECT 1 FROM threads WHERE ended_ns IS NOT NULL LIMIT 1 OFFSET 1"))
    recorder.stdin.close()
    check(recorder.wait() == 0, "recording the programs")
    mains = sojourn.sql_rows(database, "SELECT call_id, start_ns, ended_ns FROM calls JOIN functions USING (function_id) JOIN"
                             " threads USING (thread_id) WHERE functions.name = 'main' AND ending = 'open' ORDER BY start_ns")
    check(len(mains) == 3, f"main of three programs: {mains}")
    first, second, last = mains

    def running(moment):
        rows = json_rows(sql(sojourn, ["--query", "running_at", "--param", f"at_ns={moment}", "--json", database]).stdout)
        return [row["call_id"] for row in rows if row["function"] == "main"]

    late = max(first["ended_ns"] + 1, second["ended_ns"] + 1, last["start_ns"])
    for main_call, moment in ((first, first["start_ns"]), (last, late)):
        check(running(moment) == [main_call["call_id"]], f"{mains}, at {moment}: {running(moment)}")


def open_calls_of_unfinished_sessions_count_as_running(sojourn):
    """Open calls of a session that is being recorded, or whose recorder was killed, count as running at that
    moment."""
    program, database = build_sample(sojourn, "questions/stays.c", "-O1"), sojourn.path("stays.db")
    recorder = subprocess.Popen([sojourn.program, "record", "-q", "-o", database, "--", program],
                                env=sojourn.environment, stdin=subprocess.PIPE)

    def running():
        last = sojourn.sql_rows(database, "SELECT max(start_ns) AS ns FROM calls WHERE session_id = 1")[0]["ns"]
        rows = json_rows(sql(sojourn, ["--query", "running_at", "--param", f"at_ns={last}", "--json", database]).stdout)
        return sorted((row["depth"], row["function"], row["duration_ns"]) for row in rows)

    wanted = [(0, "main", None), (1, "outer", None), (2, "inner", None)]
    wait_for("all calls are stored", lambda: sojourn.sql_once_made(
        database, "SELECT 1 FROM sessions WHERE stored_calls >= 5003"))
    check(running() == wanted, f"recorded: {running()}")
    pid, = children(recorder.pid)
    recorder.kill()
    recorder.wait()
    os.kill(pid, signal.SIGKILL)
    recorder.stdin.close()
    check(running() == wanted, f"its recorder killed: {running()}")


def add_containers(calls):
    """Adds to each call, in the order of the ids, the names of all calls within it: `within`, with their counts."""
    by_id = {row["call_id"]: row for row in calls}
    for row in calls:
        row["within"] = collections.Counter()
        above = by_id.get(row["parent_id"])
        while above is not None:
            above["within"][row["name"]] += 1
            above = by_id.get(above["parent_id"])


def containing_equals_the_callers(calls, asked):
    """Compares `containing` in a time window with the calls and their callers."""
    add_containers(calls)
    pairs = collections.Counter((row["name"], name) for row in calls for name in row["within"] if name != row["name"])
    (outer, inner), _ = pairs.most_common(1)[0]
    starts = sorted(row["start_ns"] for row in calls if row["name"] == outer)
    window = starts[len(starts) // 4], starts[len(starts) // 2]
    wanted = {row["call_id"]: row["within"][inner] for row in calls
              if row["name"] == outer and window[0] <= row["start_ns"] <= window[1] and row["within"][inner] > 0}
    told = asked("containing", window, f"outer={outer}", f"inner={inner}", "limit=1000000")
    check({row["call_id"]: row["inner_calls"] for row in told} == wanted,
          f"containing: {inner} in {outer}: {told[:3]}, {len(told)} rows, not {len(wanted)}")
    check(1 < len(wanted) < pairs[outer, inner], f"{len(wanted)} of {pairs[outer, inner]} calls of {outer} with {inner}")


def costly_questions_accept_a_window(sojourn, database, paths):
    """A question that reads every call of a function says so, and accepts a time window. By default it reads
    everything, otherwise the sums of the calls that were entered in the window."""
    calls = sojourn.sql_rows(database, "SELECT call_id, parent_id, stream_id, start_ns, end_ns, name FROM calls JOIN functions "
                             "USING (function_id) WHERE session_id = 2 ORDER BY call_id")
    everything = calls
    names = [row["name"] for row in calls]
    name = max(set(names), key=names.count)
    calls = [row for row in calls if row["name"] == name]
    starts = sorted(row["start_ns"] for row in calls)
    window = starts[len(starts) // 4], starts[len(starts) // 2]
    inside = [row for row in calls if window[0] <= row["start_ns"] <= window[1]]
    check(2 < len(inside) < len(calls), f"{len(inside)} of {len(calls)} calls of {name}")

    def asked(question, window, *parameters):
        words = [word for one in (*parameters, f"from_ns={window[0]}", f"to_ns={window[1]}") for word in ("--param", one)]
        return json_rows(sql(sojourn, ["--query", question, "--json", *words, database]).stdout)

    gaps = [two["start_ns"] - one["end_ns"] for one, two in zip(inside, inside[1:])
            if one["stream_id"] == two["stream_id"] and one["end_ns"] is not None]
    told = asked("time_between_calls", window, f"function={name}")[0]
    check(told["gaps"] == sum(gap >= 0 for gap in gaps), f"gaps: {told}, not {len(gaps)}")
    told = asked("concurrent", window, f"function={name}")
    check(all(row["end_ns"] is not None for row in inside), f"calls of {name} that did not end: {inside[:3]}")
    took = sum(row["end_ns"] - row["start_ns"] for row in inside)
    check(sum(row["running"] * row["total_ns"] for row in told) == took > 0, f"concurrent: {told}, not {took} ns")
    containing_equals_the_callers(everything, asked)
    costly = [path for path in paths if any(re.search("fewer calls (is|are) faster", line) for line in header(path, "parameter"))]
    check(len(costly) == 3, f"{costly}")
    for path in paths:
        with open(path, encoding="utf-8") as file:
            is_costly = re.search(r"(contains|concurrency|intervals_intersect)\(|c.function_id IN", file.read()) is not None
        told = header(path, "parameter")
        check((path in costly) == is_costly, f"{path}: looks at all calls of a function, and does not say so")
        check(not is_costly or any(line.startswith("from_ns = 0 | ") and "is fast on any recording" in line for line in told),
              f"{path}: no window, or nothing is said of it")


def test(sojourn, arguments):
    sojourn.sql_rows = lambda database, query: json_rows(
        sql(sojourn, ["--json", query, database]).stdout)
    sample = sorted(glob.glob(arguments[1]))[0]
    database = sojourn.path("questions.db")
    for _ in range(2):
        done, _summary = sojourn.record([sample], database)
        check(done.returncode == 0, f"recording: {done.stderr}")
    paths = sorted(glob.glob(os.path.join(arguments[0], "*.sql")))
    check(len(paths) >= 15, f"only {len(paths)} questions")
    answered = sum(ask(sojourn, database, path) > 0 for path in paths)
    check(answered >= 7, f"only {answered} questions had an answer")
    listed = sql(sojourn, ["--queries"]).stdout
    check(len(listed.splitlines()) == len(paths), "--queries does not list all")
    answers_equal_other_computations(sojourn, database)
    by_hand(sojourn, database, paths)
    no_question_scans_all_calls(sojourn, database, paths)
    costly_questions_accept_a_window(sojourn, database, paths)
    open_calls_count_as_running(sojourn)
    open_calls_end_with_their_thread(sojourn)
    open_calls_of_unfinished_sessions_count_as_running(sojourn)
    from_python(sojourn, database, paths)
    hostile(sojourn, database)
    shell(sojourn, database)
    on_a_terminal(sojourn, database)
    every_column_is_described(sojourn, database)
    check_reports_slower_functions(sojourn)


if __name__ == "__main__":
    main(test)
