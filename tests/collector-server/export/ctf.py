#!/usr/bin/env python3
"""Exports recordings as CTF folders, and reads them with babeltrace2's Python bindings. The calls have the functions,
times, threads, depths, endings and recorded data that SQL returns, and the discarded events are the lost calls.

ctf.py BUILD_FOLDER
"""
import collections
import json
import os
import sqlite3
import subprocess
import sys

import bt2

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "system", "support"))
from sojourn_testing import check, main

BUILT = os.path.join("tests", "samples")
ODD_NAME = b'hash "<\\>"\n\x01 \xff'


class Reading:
    """The calls and losses that babeltrace2 reads from a folder."""

    def __init__(self, folder):
        self.calls, self.losses, self.latest = [], [], {}
        self.open = collections.defaultdict(list)
        for message in bt2.TraceCollectionMessageIterator(folder):
            if isinstance(message, bt2._EventMessageConst):
                self.read_event(message)
            elif isinstance(message, bt2._DiscardedEventsMessageConst):
                self.losses.append((message.stream.id, message.count, message.end_default_clock_snapshot.value))

    def read_event(self, message):
        event, at = message.event, message.default_clock_snapshot
        stack = self.open[event.stream.id]
        (name,) = event["function"].labels
        check(at.value >= self.latest.get(event.stream.id, 0), f"time goes back at {at.value}")
        self.latest[event.stream.id] = at.value
        if event.name == "call_begin":
            packet = event.packet.context_field
            (ending,) = event["ending"].labels
            stack.append({"stream": event.stream.id, "name": name, "start": at.value, "real": at.ns_from_origin, "end": None,
                          "depth": len(stack), "ending": ending, "tail": int(event["is_tail_call"]), "pid": int(packet["pid"]),
                          "tid": int(packet["tid"]), "thread": str(packet["thread"]), "recorded": str(event["recorded"])})
            self.calls.append(stack[-1])
        else:
            check(event.name == "call_end" and stack and stack[-1]["name"] == name, f"{event.name} of {name} in {stack}")
            stack.pop()["end"] = at.value


def exported(sojourn, database, *options):
    folder = sojourn.path("trace.ctf")
    subprocess.run(["rm", "-rf", folder], check=True)
    sojourn.run(["export", "-o", folder, *options, database], check=True, capture_output=True)
    checked = subprocess.run(["babeltrace2", "--output-format=text", folder], capture_output=True, check=True)
    return Reading(folder), checked.stdout


def wanted_calls(sojourn, database, session, condition="1"):
    return sojourn.sql(database, f"""SELECT c.stream_id AS stream, f.name, c.start_ns AS start, s.started_realtime_ns + c.start_ns AS real,
        c.end_ns AS "end", c.depth, c.ending, c.tail_caller_id IS NOT NULL AS tail, p.pid, iif(r.own_stack, t.tid, 0) AS tid,
        iif(r.own_stack, t.name, t.name || ', stack ' || r.number) AS thread FROM calls c JOIN functions f USING (function_id)
        JOIN sessions s ON s.session_id = c.session_id JOIN streams r USING (stream_id) JOIN threads t ON t.thread_id = c.thread_id
        JOIN processes p ON p.session_id = t.session_id AND p.number = t.process_number
        WHERE c.session_id = {session} AND {condition} ORDER BY c.call_id""")


def check_calls(reading, wanted, what):
    found = sorted(reading.calls, key=lambda call: call["stream"])
    check(len(found) == len(wanted) > 100, f"{what}: {len(found)} calls instead of {len(wanted)}")
    for call, row in zip(found, wanted):
        call = {key: call[key] for key in row}
        row["real"] = int(row["real"])  # JSON has large numbers as texts
        if row["tid"] == 0:  # coroutines and signal stacks have numbers above those of threads
            check(call.pop("tid") > 1 << 22, f"{what}: {call}")
            row.pop("tid")
        check(call == row, f"{what}: {call} instead of {row}")


def test_sessions(sojourn, build):
    """Tail calls, coroutines, exceptions, open calls, several threads."""
    database = sojourn.path("a.db")
    commands = [["tail_chain"], ["gcc-O2/s_coroutine"], ["gcc-O2/s_throw"]]
    for session, (name, *words) in enumerate(commands, 1):
        sojourn.run(["record", "-q", "-o", database, "--", os.path.join(build, BUILT, name), *words], check=True, capture_output=True)
        reading, _ = exported(sojourn, database, "--session", str(session))
        check_calls(reading, wanted_calls(sojourn, database, session), name)
        check(not reading.losses and not any(reading.open.values()), f"{name}: {reading.losses} {reading.open}")
    reading, _ = exported(sojourn, database, "--session", "1", "--depth", "1")
    check_calls(reading, wanted_calls(sojourn, database, 1, "c.depth < 2"), "a part")


def test_recorded_data(sojourn):
    """Recorded values, open calls, and a function whose name is neither text of TSDL nor UTF-8."""
    database, program = sojourn.path("b.db"), sojourn.path("app")
    source = os.path.join(HERE, "..", "..", "web", "recorded_program.c")
    subprocess.run(["gcc", "-O1", "-g", "-pthread", source, "-o", program], check=True)
    sojourn.run(["record", "-q", "-o", database, "--value", "parse_line(number:int) -> int", "--", program, "crash"], capture_output=True)
    with sqlite3.connect(database) as held:
        held.execute("UPDATE functions SET name = CAST(? AS TEXT) WHERE name = 'hash_word'", (ODD_NAME,))
    reading, text = exported(sojourn, database)
    odd = [call for call in reading.calls if call["name"].startswith("hash ")]
    check(odd and odd[0]["name"] == 'hash "<\\>"\n\x01 \ufffd', f"{odd[:2]}")
    values = [json.loads(call["recorded"])["number"] for call in reading.calls if call["name"] == "parse_line" and call["recorded"]]
    rows = sojourn.sql(database, "SELECT value FROM arguments WHERE position = 1 ORDER BY call_id")
    check(values == [row["value"] for row in rows] and values, f"{values[:5]} instead of {rows[:5]}")
    count = sojourn.sql(database, "SELECT count(*) AS calls, sum(ending = 'open') AS open FROM calls")[0]
    check(len(reading.calls) == count["calls"] and sum(call["ending"] == "open" for call in reading.calls) == count["open"] > 0,
          f"{len(reading.calls)} calls, {count}")
    check(text.count(b"call_begin: ") == count["calls"], "babeltrace2's text does not have each call")


def test_losses(sojourn, build):
    database = sojourn.path("c.db")
    sojourn.run(["record", "-q", "-o", database, "--", os.path.join(build, BUILT, "tail_chain")], check=True, capture_output=True)
    stream, begin, end = (sojourn.sql(database, "SELECT stream_id AS s, min(start_ns) AS b, max(end_ns) AS e FROM calls")[0][key] for key in "sbe")
    gaps = [(stream, 7, begin - 200, begin - 100), (stream, 5, begin + 1, begin + 2), (stream, 3, end + 10, end + 20), (None, 11, 50, 60)]
    with sqlite3.connect(database) as held:
        held.executemany("INSERT INTO gaps (session_id, stream_id, reason, calls, events, start_ns, end_ns) VALUES (1, ?, 'ring_full', ?, 0, ?, ?)",
                         gaps)
    reading, _ = exported(sojourn, database)
    check(len(reading.calls) == sojourn.sql(database, "SELECT count(*) AS calls FROM calls")[0]["calls"], "calls are missing")
    losses = sorted(reading.losses, key=lambda loss: (loss[0] == 0, loss[2]))
    check(losses == [(at or 0, calls, until) for at, calls, _, until in gaps], f"losses {losses} instead of {gaps}")


def test_refusals(sojourn):
    database, older = sojourn.path("c.db"), sojourn.path("trace.ctf")
    before = sorted(os.listdir(older))
    for options, code, words in ((["-o", older], 1, "exists already"), (["--format", "ctf"], 2, "is a folder"),
                                 (["-o", sojourn.path("no/such.ctf")], 1, "No such file or directory")):
        done = sojourn.run(["export", *options, database], capture_output=True, text=True)
        check(done.returncode == code and words in done.stderr, f"{options}: {done}")
    check(sorted(os.listdir(older)) == before and not os.path.exists(older + ".unfinished"), "a refused export changed files")


def test(sojourn, _):
    test_sessions(sojourn, sys.argv[1])
    test_recorded_data(sojourn)
    test_losses(sojourn, sys.argv[1])
    test_refusals(sojourn)


if __name__ == "__main__":
    main(test, checks_sums=False)
