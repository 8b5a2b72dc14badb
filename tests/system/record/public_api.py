"""Uses sojourn.h in programs of both languages, alone and under live recordings of all three modes."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, attach_until, check_same, code_bytes, look, mappings
from sojourn_testing import PATIENCE_S, check, check_accounts, main

CALLS = """SELECT f.name, s.calls FROM function_stats s JOIN functions f USING (function_id)
           WHERE s.session_id = {} AND f.name LIKE '%api_%'"""
SENTENCE = "94125\n"


def counts(sojourn, database, session=1):
    """Returns the calls by name. The C++ sample's names have parameters."""
    rows = sojourn.sql(database, CALLS.format(session))
    return {row["name"].split("(")[0]: row["calls"] for row in rows}


def recorded(sojourn, program, how, policy):
    path, database = sojourn.path("policy.json"), sojourn.path("api.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, **policy}, file)
    done, _ = sojourn.record([program, how], database, ["--policy", path])
    check(done.returncode == 0, f"ended with {done.returncode}: {done.stderr.decode()}")
    check_accounts(sojourn, database)
    return database, done.stdout.decode()


def the_api_does_nothing_without_a_recorder(sojourn, program):
    done = subprocess.run([program], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    check(done.stdout == SENTENCE and done.stderr == "", f"it said {done}")
    needed = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True)
    check("sojourn" not in needed.stdout, "the program needs a library of Sojourn")


def stop_start_and_marks(sojourn, program):
    for mode in ("trace", "profile"):
        database, output = recorded(sojourn, program, "", {"mode": mode})
        check(output == SENTENCE, f"{mode}: the program said {output}")
        found = counts(sojourn, database)
        check(found == {"api_step": 1250, "api_work": 2}, f"{mode}: not what was asked: {found}")
        marks = sojourn.sql(database, "SELECT name, is_end, at_ns, source FROM marks ORDER BY at_ns")
        check([(row["name"], row["is_end"], row["source"]) for row in marks] ==
              [("warm up", 0, "app"), ("warm up", 1, "app")],
              f"{mode}: marks {marks}")
        check(marks[1]["at_ns"] > marks[0]["at_ns"], f"{mode}: it ends before it begins: {marks}")
        gaps = sojourn.sql(database, "SELECT reason, calls FROM gaps")
        check([gap["reason"] for gap in gaps] == ["paused"], f"{mode}: gaps {gaps}")


def flight_ships_when_the_program_asks(sojourn, program):
    flight = {"before": "5m", "after": "10ms", "memory": "8M"}
    policy = {"mode": "flight", "flight": flight, "triggers": [{"on": "app", "do": ["dump"]}]}
    for how, dumps in (("", 0), ("dump", 1)):
        database, _ = recorded(sojourn, program, how, policy)
        child = sojourn.sql(database, "SELECT session_id, cause FROM sessions "
                                      "WHERE parent_session_id = 1")
        check(len(child) == dumps, f"\"{how}\" made {child}")
        check(counts(sojourn, database) == {}, "the parent has calls of its own")
    check(child[0]["cause"].strip() == "app", f"no cause: {child}")
    check(counts(sojourn, database, child[0]["session_id"])["api_step"] == 1270, "calls are missing")


def slow_frames_are_seen(sojourn, program):
    jank = {"on": "jank", "longer_than": "40ms", "times": 2, "within": "5m", "do": ["mark"]}
    database, _ = recorded(sojourn, program, "frames", {"triggers": [jank]})
    fired = sojourn.sql(database, "SELECT event, value, thread_number FROM triggers")
    # On a loaded machine more frames are late than the two that sleep. Each trigger needs two of them.
    check(1 <= len(fired) <= 5 and fired[0]["event"] == "jank", f"two late frames of ten: {fired}")
    check(40e6 <= fired[0]["value"] < 300e9, f"not the frame's time: {fired}")
    check(fired[0]["thread_number"] is not None, f"whose frame? {fired}")
    jank["longer_than"] = "5m"
    database, _ = recorded(sojourn, program, "frames", {"triggers": [jank]})
    check(sojourn.sql(database, "SELECT * FROM triggers") == [], "no frame took five minutes")


def gates_of(pid):
    """Returns executable memory that belongs to no file: the trampolines that calls use once the process was
    attached to."""
    return [(low, high) for low, high, protection, path in mappings(pid)
            if "x" in protection and not path]


def an_attached_program_is_recorded(sojourn, program):
    target = Target([program, "laps"]).ready()
    before, code = look(target.pid), code_bytes(target.pid)
    check(gates_of(target.pid) == [], "executable memory of no file before the attach")
    found = []
    for turn in range(3):
        database = sojourn.path(f"laps-{turn}.db")
        laps = ("SELECT sum(is_end) AS ends, sum(1 - is_end) AS begins FROM marks "
                "WHERE name = 'lap' AND source = 'app' GROUP BY session_id")
        _, summary = attach_until(sojourn, target.pid, database, lambda _: sojourn.sql(database, laps))
        check(summary["left_bytes"] == 0, f"bytes stay: {summary}")
        check(summary["api_trampoline_bytes"] == 8192, f"two pages for the API: {summary}")
        check_accounts(sojourn, database)
        marks = sojourn.sql(database, laps)
        check(abs(marks[0]["begins"] - marks[0]["ends"]) <= 1, f"marks of turn {turn}: {marks}")
        found.append(gates_of(target.pid))
    check(len(found[0]) == 1 and found[0] == found[1] == found[2], f"one pair of pages: {found}")
    after = look(target.pid)
    after["mappings"] = [each for each in after["mappings"] if each[1] or "x" not in each[0]]
    check_same(before, after, code, code_bytes(target.pid), "after three attaches")
    status, output = target.finish()
    check(status == 0 and output == "done\n", f"it ended with {status}, {output!r}")


TESTS = [the_api_does_nothing_without_a_recorder, stop_start_and_marks, flight_ships_when_the_program_asks,
         slow_frames_are_seen, an_attached_program_is_recorded]


def test(sojourn, arguments):
    build = os.path.dirname(os.path.dirname(sojourn.program))
    for each in TESTS:
        for language in ("c", "cpp"):
            started = time.monotonic()
            each(sojourn, os.path.join(build, f"tests/samples/api_{language}"))
            print(f"{each.__name__.replace('_', ' ')}, {language}: "
                  f"{time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main(test)
