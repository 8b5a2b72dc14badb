#!/usr/bin/env python3
"""Uses sojourn.jar in a Java program, alone and under recordings of all three modes.

java_commands.py BUILD_FOLDER
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from java_programs import sample_classes
from sojourn_testing import PATIENCE_S, check, check_accounts, main

CALLS = """SELECT f.name, s.calls FROM function_stats s JOIN functions f USING (function_id)
           WHERE s.session_id = {} AND s.calls > 0 AND f.name LIKE 'Commanded.%'"""
WARM = "w\u00e4rm up \U0001f600"


def counts(sojourn, database, session=1):
    return {row["name"].split("(")[0].split(".")[1]: row["calls"]
            for row in sojourn.sql(database, CALLS.format(session))}


def recorded(sojourn, command, name, policy):
    path, database = sojourn.path("policy.json"), sojourn.path(name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, **policy}, file)
    done, _ = sojourn.record(command, database, ["--policy", path], text=True)
    check(done.returncode == 0, f"{name}: {done}")
    check_accounts(sojourn, database)
    return database, done.stdout


def stop_start_and_marks(sojourn, command, said):
    for mode in ("trace", "profile"):
        database, output = recorded(sojourn, command, f"{mode}.db", {"mode": mode})
        check(output == said, f"{mode}: the program said {output}")
        found = counts(sojourn, database)
        check((found["step"], found["work"]) == (1250, 2), f"{mode}: not what was asked: {found}")
        marks = sojourn.sql(database, "SELECT name, is_end, source FROM marks ORDER BY at_ns")
        check([tuple(row.values()) for row in marks] ==
              [(WARM, 0, "app"), (WARM, 1, "app"), ("\u20ac" * 21, 0, "app")], f"{mode}: marks {marks}")
        gaps = sojourn.sql(database, "SELECT reason FROM gaps")
        check("paused" in [gap["reason"] for gap in gaps], f"{mode}: gaps {gaps}")


def flight_ships_when_the_program_asks(sojourn, command):
    flight = {"before": "5m", "after": "10ms", "memory": "8M"}
    policy = {"mode": "flight", "flight": flight, "triggers": [{"on": "app", "do": ["dump"]}]}
    for how, dumps in (("", 0), ("dump", 1)):
        database, _ = recorded(sojourn, [*command, how], f"flight{dumps}.db", policy)
        child = sojourn.sql(database, "SELECT session_id, cause FROM sessions WHERE parent_session_id = 1")
        check(len(child) == dumps, f"\"{how}\" made {child}")
    check(child[0]["cause"].strip() == "app", f"no cause: {child}")
    check(counts(sojourn, database, child[0]["session_id"])["step"] == 1270, "calls are missing")


def slow_frames_are_seen(sojourn, command):
    for limit, seen in (("40ms", True), ("5m", False)):
        jank = {"on": "jank", "longer_than": limit, "times": 2, "within": "5m", "do": ["mark"]}
        database, _ = recorded(sojourn, [*command, "frames"], f"frames{limit}.db", {"triggers": [jank]})
        fired = sojourn.sql(database, "SELECT event, value FROM triggers")
        check(bool(fired) == seen, f"{limit}: {fired}")
        check(not seen or 40e6 <= fired[0]["value"] < PATIENCE_S * 1e9, f"not the frame's time: {fired}")


def test(sojourn, _):
    jar = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "lib", "sojourn.jar")
    command = ["java", "-cp", f"{sample_classes(sojourn)}:{jar}", "Commanded"]
    alone = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    check(alone.stderr == "" and alone.stdout.strip().isdigit(), f"alone it said {alone}")
    stop_start_and_marks(sojourn, command, alone.stdout)
    flight_ships_when_the_program_asks(sojourn, command)
    slow_frames_are_seen(sojourn, command)


main(test)
