#!/usr/bin/env python3
"""Questions to a cluster give the rows of the lab: the shipped questions, statements, forwarded single calls, and
histograms that add up.

forward_questions.py BUILD_FOLDER (SJ_LONG=1: a second session with all values of parameters)
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from lab_testing import HOSTILE, Cluster, answers, rounded
from sojourn_testing import check, main

QUERIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "schema", "queries")
IS_LONG = os.environ.get("SJ_LONG") == "1"
STEP, WORK = "function=-[Ends(More) step:with:]", "function=+[Sub:Ends work:]"
MAY_BE_EMPTY = ("recursion", "open_calls")  # questions without rows for some of these programs
# Values, besides the defaults, with which each question has an answer.
ASKED = {
    "calls_between": ["to_ns=1000000000000", "limit=100000"],
    "callees_of": ["function=*"],
    "callers_of": ["function=*"],
    "concurrent": [STEP],
    "containing": ["outer=main", "inner=-[Ends(More) step:with:]"],
    "deviating_devices": ["factor=0.01", "least_calls=1"],
    "entered_in_marks": ["function=*"],
    "first_after_mark": ["limit=100000"],
    "inside_slowest": [WORK, "calls=2", "limit=1000"],
    "main_thread_blocks": ["least_ns=1", "limit=100000"],
    "only_in": ["name=*ends*"],
    "p99_by_build": ["function=*"],
    "per_mark": ["limit=1000"],
    "slowest_calls": ["limit=100000"],
    "time_between_calls": [STEP],
    "waiting_calls": ["factor=0.0001", "least_ns=1"],
}
# These columns differ by rounding. The lab's bins are of ticks and the cluster's of nanoseconds. The cluster adds
# calls that were each rounded.
ROUGH = {"waiting_calls": (("p50_ns", "p99_ns", "times"), lambda row, value: 1 + 0.07 * value),
         "entered_in_marks": (("total_ns",), lambda row, value: row["calls"]),
         "per_mark": (("self_ns",), lambda row, value: row["calls"])}


def same_rows(name, here, there):
    columns, most = ROUGH.get(name, ((), None))
    exact = [sorted(((rounded([{column: value for column, value in row.items() if column not in columns}])[0], row) for row in rows),
                    key=lambda pair: pair[0]) for rows in (here, there)]
    return [text for text, _ in exact[0]] == [text for text, _ in exact[1]] and all(
        abs(row[column] - other[column]) <= most(row, row[column])
        for (_, row), (_, other) in zip(*exact) for column in columns)


def questions_of(sojourn, *words):
    lines = sojourn.run(["sql", *words, "--queries"], capture_output=True, text=True).stdout.splitlines()
    return {line.split()[0]: line for line in lines}


def parameters_of(name, values):
    """Returns, as options, those values whose names are parameters of the question."""
    with open(os.path.join(QUERIES, f"{name}.sql"), encoding="utf-8") as file:
        text = file.read()
    return [word for value in values if f"-- parameter: {value.split('=')[0]} " in text for word in ("--param", value)]


def refused_question(sojourn, node, lab, words, name, uuid):
    """The refusal names the reason, and a lab that can answer the question."""
    done = sojourn.run(["sql", "--cluster", node.url, *words, "--query", name, "--session", uuid], capture_output=True, text=True)
    check(done.returncode == 1 and f"the query '{name}' is not for a cluster: " in done.stderr, f"{name}: {done.stderr}")
    with open(os.path.join(QUERIES, f"{name}.sql"), encoding="utf-8") as file:
        is_of_session = ":session" in file.read()
    it = sojourn.run(["forward", "--database", lab.database, *words, "status", node.url], capture_output=True, text=True).stdout
    own = re.search("this is lab ([0-9a-f]{32})", it)[1]
    check(not is_of_session or f"in lab {own}: sojourn sql --query {name} --session {uuid}" in done.stderr, f"{name}: {done.stderr}")


def values_of(name, session):
    """Returns sets of values to ask a question with, each for other parameters. For the second session it returns
    the defaults, with SJ_LONG=1 all."""
    sets = [ASKED[name]] if name in ASKED else []
    for values in ([], ["limit=7", "function=*nd*"]):
        if parameters_of(name, values) not in [parameters_of(name, one) for one in sets]:
            sets.append(values)
    return sets if session == 2 or IS_LONG else [[]]


def questions_agree(sojourn, node, lab, words):
    """Every shipped question either has a form for a cluster, which gives the same rows for the same lab, or gives
    the reason why not."""
    names = questions_of(sojourn, "--cluster", node.url)
    check(set(names) == set(questions_of(sojourn)), f"not of both: {set(names) ^ set(questions_of(sojourn))}")
    answered = 0
    for session in (2, 3):
        uuid = sojourn.sql(lab.database, f"SELECT lower(hex(uuid)) AS uuid FROM sessions WHERE session_id = {session}")[0]["uuid"]
        ask = ["--cluster", node.url, *words, "--session", uuid[:9], "--query"]
        answers(sojourn, *ask, "slowest_calls", code=1, says=f"sojourn forward --session {uuid} calls {node.url}")
        lab.forward(*words, "--session", str(session), "calls", node.url)
        for name in sorted(names):
            if "(not for a cluster)" in names[name]:
                refused_question(sojourn, node, lab, words, name, uuid)
                continue
            for values in values_of(name, session):
                parameters = parameters_of(name, values)
                here = answers(sojourn, "--query", name, "--session", str(session), *parameters, lab.database)
                there = answers(sojourn, *ask, name, *parameters,
                                says=f"answered by ClickHouse {node.version} at {node.url}: 3 sessions of 1 lab")
                check(same_rows(name, here, there), f"{name} {values} of session {session}: {here} here, {there} in the cluster")
                answered += len(here) > 0
                check(here or session == 3 or name in MAY_BE_EMPTY or values is not ASKED.get(name), f"{name} has no answer")
    check(answered > 50, f"only {answered} questions had answers")
    last = answers(sojourn, "--cluster", node.url, *words, "--query", "hot_spots")
    check(rounded(last) == rounded(answers(sojourn, "--query", "hot_spots", lab.database)), "not the last session")


def statements(sojourn, node, words):
    """Statements are read-only, and have parameters, limits and formats as for a lab's database."""
    ask = ["--cluster", node.url, *words]
    rows = answers(sojourn, *ask, "--param", f"it={HOSTILE}", "SELECT :it AS it, ':it' AS text, 18446744073709551615 AS most -- :no")
    check(rows == [{"it": HOSTILE, "text": ":it", "most": "18446744073709551615"}], f"parameters: {rows}")
    rows = answers(sojourn, *ask, "--limit", "3", "SELECT number FROM system.numbers", says="cut")
    check([row["number"] for row in rows] == [0, 1, 2], f"--limit: {rows}")
    answers(sojourn, *ask, "DROP TABLE raw_marks", code=1, says="does not allow")
    answers(sojourn, *ask, "INSERT INTO raw_marks SELECT * FROM raw_marks", code=1, says="refuses")
    answers(sojourn, *ask, "SELECT nothing FROM nowhere", code=3, says="nowhere")
    answers(sojourn, *ask, "SELECT :it", code=1, says="--param it=VALUE")
    answers(sojourn, *ask, "--query", "no_such", code=3, says="for a cluster")
    answers(sojourn, *ask, "--query", "hot_spots", "--session", "ffffffff", code=3, says="no session")
    answers(sojourn, *ask, "--query", "hot_spots", "--session", "7'", code=1, says="beginning of a session's uuid")


def histograms_merge(node):
    """The bins of a path hold all of its ended calls, and add up in SQL."""
    rows = node.rows("SELECT sum(arraySum(counts)), sum(calls) FROM function_stats WHERE unwound = 0")
    check(rows[0][0] == rows[0][1], f"calls in histograms: {rows}")
    check(int(node.rows("SELECT length(tupleElement(sumMap(bins, counts), 1)) FROM function_stats")[0][0]) > 0, "no bins")


CALLS = ("count() AS calls, sum(duration_ns) AS ns, sum(self_ns) AS own, sum(depth) AS depth, uniqExact(call_id) AS ids, "
         "countIf(ending = 'open') AS open")
EXITED = 3  # the session whose program exits in main and ends_die


def single_calls_are_forwarded_once(sojourn, node, lab, words):
    """Forwards windows of single calls, repeated and overlapping. Each call is stored once, as the lab has it."""
    def here(where, session=1):
        return sojourn.sql(lab.database, "SELECT count(*) AS calls, sum(duration_ns) AS ns, sum(self_ns) AS own,"
                                         " sum(depth) AS depth, count(*) AS ids, sum(ending = 'open') AS open "
                                         f"FROM calls WHERE session_id = {session}{where}")[0]

    uuids = {row["session_id"]: row["uuid"] for row in sojourn.sql(
        lab.database, "SELECT session_id, lower(hex(uuid)) AS uuid FROM sessions")}

    def there(session=1):
        rows = node.rows(f"SELECT {CALLS} FROM calls WHERE session = '{uuids[session]}'")[0]
        return dict(zip(("calls", "ns", "own", "depth", "ids", "open"), (int(number) if number != "\\N" else None for number in rows)))

    start = sojourn.sql(lab.database, "SELECT start_ns FROM calls WHERE session_id = 1 ORDER BY start_ns LIMIT 1 OFFSET 300")
    middle = start[0]["start_ns"]
    lab.forward(*words, "--session", "1", "--to", f"{middle}ns", "calls", node.url, says="calls of session 1 were sent")
    check(there() == here(f" AND start_ns < {middle}") and there()["calls"] > 0, f"a window: {there()}")
    for _ in range(2):
        lab.forward(*words, "--session", "1", "calls", node.url)
        check(there() == here(""), f"all: {there()} there, {here('')} here")
    lab.forward(*words, "--session", str(EXITED), "calls", node.url)
    check(there(EXITED) == here("", EXITED) and there(EXITED)["open"] == 2, f"open calls: {there(EXITED)}, {here('', EXITED)} here")
    summed = node.rows(f"SELECT sum(calls) FROM function_stats WHERE session = '{uuids[EXITED]}'")
    check(summed == [[str(here("", EXITED)["calls"])]], f"sums count open calls: {summed}")
    one = lab.forward(*words, "--session", "1", "--from", f"{middle}ns", "--to", f"{middle + 1}ns", "calls", node.url)
    check("1 call of session 1 was sent" in one, f"a window of one call: {one}")
    functions = node.rows("SELECT count() FROM calls WHERE symbol_key NOT IN (SELECT symbol_key FROM functions)")
    check(functions == [["0"]], f"calls of unknown functions: {functions}")
    lab.forward(*words, "--session", "99", "calls", node.url, code=3, says="99")


def test(sojourn, _):
    cluster = Cluster(sojourn)
    node, lab, other, words = cluster.node, cluster.lab, cluster.other, cluster.words
    try:
        node.start()
        lab.forward(*words, "init", node.url)
        lab.forward(*words, "send", node.url, says="3 sessions were sent")
        questions_agree(sojourn, node, lab, words)
        other.forward(*words, "send", node.url)
        histograms_merge(node)
        statements(sojourn, node, words)
        single_calls_are_forwarded_once(sojourn, node, lab, words)
    finally:
        node.stop()


if __name__ == "__main__":
    main(test)
