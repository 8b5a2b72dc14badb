#!/usr/bin/env python3
"""`sojourn replay` prints the calls of `calls` in their order, below their callers: of a window, of a thread,
around a call, and with gaps.

replay.py BUILD_FOLDER
"""
import os
import re
import signal
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system",
                                "support"))
from sojourn_testing import check, children, json_rows, main, wait_for

LINE = re.compile(r"^([ ^>!]) +(\d+\.\d{9}) +(open|[\d.]+ \w+(?: \d+ \w+)?)  (?:( *\[\d+\])  )?( *)(\S.*)$")


def replay(sojourn, *arguments, expected=0):
    done = sojourn.run(["replay", *arguments], capture_output=True, text=True)
    check(done.returncode == expected, f"{arguments}: {done.returncode} {done.stdout}{done.stderr}")
    lines = [LINE.match(line) for line in done.stdout.splitlines()[1:]]
    check(all(lines), f"{arguments}: a line is unlike the others:\n{done.stdout}")
    return [{"sign": line[1], "start_ns": round(float(line[2]) * 1e9), "depth": len(line[5]) // 2,
             "name": line[6]} for line in lines], done


def shape(rows):
    return [(row["start_ns"], row["depth"], row["name"]) for row in rows]


def calls_are_replayed_in_order(sojourn, database, calls):
    rows, _ = replay(sojourn, database)
    check(shape(rows) == shape(calls), f"not the calls in order: {rows[:5]}, {calls[:5]}")
    check(len(rows) == 1003, f"{len(rows)} calls of a program that makes 1003")


def windows(sojourn, database, calls):
    middle = calls[500]
    window = ["--from", f"{middle['start_ns']}ns", "--to", f"{calls[520]['start_ns'] / 1e9:.9f}s"]
    rows, _ = replay(sojourn, *window, database)
    inside = [row for row in calls
              if middle["start_ns"] <= row["start_ns"] <= calls[520]["start_ns"]]
    callers = [row["name"] for row in rows if row["sign"] == "^"]
    check(callers == ["main", "ends_work"], f"callers of the first call: {callers}")
    check(shape(row for row in rows if row["sign"] == " ") == shape(inside), f"window: {rows}")
    done = sojourn.run(["replay", "--count", "3", database], capture_output=True, text=True)
    check("more calls follow from" in done.stdout, f"nothing says that calls follow: {done.stdout}")


def around_a_call(sojourn, database, calls):
    middle = calls[500]
    rows, _ = replay(sojourn, "--around", str(middle["call_id"]), "--count", "7", database)
    shown = [row for row in rows if row["sign"] != "^"]
    check(shape(shown) == shape(calls[497:504]), f"around: {rows}")
    check([row["sign"] for row in shown] == [" ", " ", " ", ">", " ", " ", " "], f"marks: {rows}")
    rows, _ = replay(sojourn, "--around", str(calls[0]["call_id"]), "--count", "4", database)
    check(shape(rows) == shape(calls[:2]), f"around the first call: {rows}")


def gaps_are_shown_as_lines(sojourn, database, calls):
    with sqlite3.connect(database) as connection:
        connection.execute(
            "INSERT INTO gaps (session_id, thread_number, number, reason, calls, events, start_ns, "
            "end_ns) VALUES (1, 1, 4711, 'ring_full', 12, 24, ?, ?)",
            (calls[700]["start_ns"] - 1, calls[700]["start_ns"] + 5))
    connection.close()
    rows, _ = replay(sojourn, database)
    at = [number for number, row in enumerate(rows) if row["sign"] == "!"]
    check(len(at) == 1 and rows[at[0]]["name"] == "gap: 12 calls lost (ring_full)", f"gap: {at}")
    check(rows[at[0]]["start_ns"] <= rows[at[0] + 1]["start_ns"], "the gap is not at its place")


def threads(sojourn, samples):
    database = sojourn.path("threads.db")
    _, summary = sojourn.record([os.path.join(samples, "gcc-O0", "s_threads")], database)
    check(summary is not None, "nothing was recorded")
    rows = sojourn.sql(database, "SELECT t.number, c.start_ns FROM calls AS c "
                                 "JOIN threads AS t USING (thread_id)")
    shown, done = replay(sojourn, database)
    shown = [row for row in shown if row["sign"] == " "]
    check(len(shown) == len(rows), f"{len(shown)} calls of {len(rows)}")
    starts = [row["start_ns"] for row in shown]
    check(starts == sorted(row["start_ns"] for row in rows), "threads are not merged by time")
    number = rows[-1]["number"]
    one, _ = replay(sojourn, "--thread", str(number), database)
    check(len(one) == sum(row["number"] == number for row in rows), f"thread {number}: {len(one)}")


def objects(sojourn, database, calls):
    """--json prints the same calls with every figure, and gaps."""
    done = sojourn.run(["replay", "--json", database], capture_output=True, text=True)
    check(done.returncode == 0, f"--json: {done}")
    rows = [row for row in json_rows(done.stdout) if row["type"] == "call"]
    check([(int(row["call_id"]), row["start_ns"], row["depth"], row["function"]) for row in rows] ==
          [(call["call_id"], call["start_ns"], call["depth"], call["name"]) for call in calls],
          f"--json: {rows[:3]}")
    keys = {"type", "start_ns", "thread", "call_id", "depth", "duration_ns", "ending", "function",
            "values", "is_estimate"}
    check(all(set(row) == keys for row in rows), f"--json: {rows[0]}")
    done = sojourn.run(["replay", "--json", "--from", "1000s", database], capture_output=True,
                       text=True)
    check(done.returncode == 0 and json_rows(done.stdout) == [], f"--json of nothing: {done}")


def follows(sojourn):
    """--follow prints what a running recording stores, each call once, and ends with it."""
    database = sojourn.path("followed.db")
    loop = "while (1) { $x = join(',', 1 .. 20); select(undef, undef, undef, 0.005) }"
    recording = subprocess.Popen([sojourn.program, "record", "-o", database, "--", "perl", "-e", loop],
                                 env=sojourn.environment, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        def stored():
            done = sojourn.run(["sql", "--csv", "SELECT coalesce(sum(stored_calls), 0) AS calls "
                                "FROM sessions", database], capture_output=True, text=True)
            return done.returncode == 0 and int(done.stdout.split()[1]) > 0

        wait_for("calls are stored", stored)
        with open(sojourn.path("followed.json"), "wb") as output:
            follower = subprocess.Popen([sojourn.program, "replay", "--follow", "--json", database],
                                        env=sojourn.environment, stdout=output)
            size = lambda: os.path.getsize(sojourn.path("followed.json"))
            wait_for("calls are followed", lambda: size() > 1000)
            first = size()
            wait_for("more calls follow", lambda: size() > first)
            check(follower.poll() is None, "it ended before the recording")
            os.kill(children(recording.pid)[0], signal.SIGTERM)
            recording.wait()
            check(follower.wait() == 0, f"--follow ended with {follower.returncode}")
    finally:
        if recording.poll() is None:
            os.killpg(recording.pid, signal.SIGKILL)
            recording.wait()
    with open(sojourn.path("followed.json"), encoding="utf-8") as file:
        rows = [row for row in json_rows(file.read()) if row["type"] == "call"]
    ids = [int(row["call_id"]) for row in rows]
    expected = [int(row["call_id"]) for row in sojourn.sql(database, "SELECT call_id FROM calls")]
    check(len(ids) == len(set(ids)) and set(ids) == set(expected),
          f"{len(ids)} calls followed, {len(expected)} stored")


def values_follow_their_call(sojourn, samples):
    database = sojourn.path("values.db")
    _, summary = sojourn.record([os.path.join(samples, "ends")], database,
                                options=["--value", "ends_work(int) -> int"])
    check(summary is not None, "nothing was recorded")
    done = sojourn.run(["replay", database], capture_output=True, text=True)
    check(re.search(r"ends_work\(-?\d+\)( = -?\d+)?", done.stdout), f"no values:\n{done.stdout[:500]}")


def test(sojourn, arguments):
    samples = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests/samples")
    database = sojourn.path("run.db")
    _, summary = sojourn.record([os.path.join(samples, "ends")], database)
    check(summary is not None, "nothing was recorded")
    calls = sojourn.sql(database, "SELECT c.call_id, c.start_ns, c.depth, f.name FROM calls AS c "
                                  "JOIN functions AS f USING (function_id) ORDER BY c.call_id")
    for call in calls:
        call["call_id"] = int(call["call_id"])
    calls_are_replayed_in_order(sojourn, database, calls)
    windows(sojourn, database, calls)
    around_a_call(sojourn, database, calls)
    gaps_are_shown_as_lines(sojourn, database, calls)
    objects(sojourn, database, calls)
    values_follow_their_call(sojourn, samples)
    follows(sojourn)
    threads(sojourn, samples)
    for options, words in ((["--thread", "nobody"], "no thread 'nobody'"),
                           (["--from", "1000s"], "no call was entered"),
                           (["--around", "5"], "no call 5")):
        done = sojourn.run(["replay", *options, database], capture_output=True, text=True)
        check(done.returncode == 3 and words in done.stderr, f"{options}: {done}")


if __name__ == "__main__":
    main(test)
