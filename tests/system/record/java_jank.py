#!/usr/bin/env python3
"""The event thread of a Java program stalls. In direct mode, without a collector or a second process, a file has the
seconds around the stall while it lasts. The file names the slow call, the locks and the pauses.

java_jank.py BUILD_FOLDER
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from java_programs import Program, sample_classes
from sojourn_testing import PATIENCE_S, Failure, check, check_accounts, children, main, wait_for

POLICY = {"policy": 1, "mode": "flight", "flight": {"before": "1m", "after": "100ms", "memory": "8M"},
          "triggers": [{"on": "jank", "loop": "events", "longer_than": "50ms", "most": 8, "do": ["dump"]}]}
OPEN = """SELECT f.name FROM calls c JOIN functions f USING (function_id) JOIN threads t USING (thread_id)
          WHERE c.session_id = {0} AND t.name = '{1}' AND c.ending = 'open' AND f.name LIKE 'Jank.%'
          ORDER BY c.depth"""
BLOCKED = """SELECT r.payload FROM reports r WHERE r.monitor = 'stall'
             AND r.payload ->> '$.threads[0].held_by' = 'saver'"""


def write_policy(sojourn, policy):
    path = sojourn.path("policy.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(policy, file)
    return path


def frames(folder):
    """Returns everything that a recording has written to its folder."""
    data = b""
    for path, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".frames"):
                with open(os.path.join(path, name), "rb") as file:
                    data += file.read()
    return data


def run_until(command, environment, is_enough):
    """Runs the command until is_enough() is true, then lets the slow call continue."""
    program = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        wait_for("the stall", lambda: program.poll() is not None or is_enough(program))
        output, complaints = program.communicate("x", PATIENCE_S)
    finally:
        program.kill()
    check(program.returncode == 0 and output == "done\n", f"{program.returncode}: {output} {complaints}")
    return complaints


def check_report(sojourn, database):
    """Checks that the report has the stall of the store. A loaded machine may have more stalls."""
    rows = sojourn.sql(database, BLOCKED)
    check(rows, f"no stall waits for saver: {sojourn.sql(database, 'SELECT payload FROM reports')}")
    report = json.loads(rows[0]["payload"])
    threads = {thread["name"]: thread for thread in report["threads"]}
    check(report["watch"] == "events" and report["waited_ns"] >= 100e6 and report["thread"] == "events", f"{report}")
    check(threads["events"]["state"] == "BLOCKED" and threads["events"]["frames"][0].startswith("Jank.read(Jank.java:"),
          f"{threads['events']}")
    check(threads["events"]["waits_for"] in threads["saver"]["holds"], f"{threads}")
    check(any(frame.startswith("Jank.compact(") for frame in threads["saver"]["frames"]), f"{threads['saver']}")
    check(threads["idle"]["state"] == "WAITING" and "sojourn-watch" not in threads, f"{threads}")
    check(report["safepoints"]["count"] >= len(report["pauses"]) and report["safepoints"]["ms"] >= 0, f"{report}")
    check(report["pauses"] and all(pause["ago_ns"] >= pause["ns"] > 0 for pause in report["pauses"]), f"{report}")


def a_dump_without_a_collector_is_a_file(sojourn, command):
    folder = sojourn.path("files")
    os.makedirs(folder)
    library = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "lib/libsojourn-direct.so")
    environment = dict(sojourn.environment, LD_PRELOAD=library, SOJOURN_DIRECT=f"file://{folder}",
                       SOJOURN_DIRECT_POLICY=write_policy(sojourn, POLICY))

    def is_kept(program):
        check(children(program.pid) == [], "there is a second process")
        data = frames(folder)
        return b"jank events" in data and b"Jank.compact" in data and b"held_by" in data
    complaints = run_until(command, environment, is_kept)
    check(complaints == "", f"it complained: {complaints}")
    database = os.path.join(folder, "sessions.db")
    done = sojourn.run(["flush", "--spool", folder], capture_output=True, text=True)
    check(done.returncode == 0 and os.listdir(folder) == ["sessions.db"], f"{done}, left {os.listdir(folder)}")
    check_report(sojourn, database)
    dumps = sojourn.sql(database, "SELECT session_id, cause FROM sessions WHERE parent_session_id = 1")
    check(dumps and all(dump["cause"] == "jank events" for dump in dumps) and len(dumps) <= 8, f"dumps {dumps}")
    guilty = [dump["session_id"] for dump in dumps
              if [row["name"].split("(")[0] for row in sojourn.sql(database, OPEN.format(dump["session_id"], "events"))]
              == ["Jank.paint", "Jank.read"]]
    check(guilty, "no dump has the stalled calls")
    saver = [row["name"].split("(")[0] for row in sojourn.sql(database, OPEN.format(guilty[0], "saver"))]
    check("Jank.compact" in saver, f"saver did {saver}")
    told = sojourn.run(["stalls", database], capture_output=True, text=True).stdout
    for words in ('"events" late, for', "stalled thread events", "Jank.read()", "Jank.compact(", "which saver holds",
                  "pauses of the garbage collector meanwhile: ", "safepoints (all threads of the JVM stopped)"):
        check(words in told, f"\"{words}\" is not reported:\n{told}")


def a_dump_stays_within_the_limit_of_its_folder(sojourn, command):
    """A folder with too small a limit holds no dump, and the program continues."""
    folder = sojourn.path("small")
    os.makedirs(folder)
    library = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "lib/libsojourn-direct.so")
    environment = dict(sojourn.environment, LD_PRELOAD=library, SOJOURN_DIRECT=f"file://{folder}",
                       SOJOURN_DIRECT_SPOOL_BYTES="2k", SOJOURN_DIRECT_POLICY=write_policy(sojourn, POLICY))
    run_until(command, environment, lambda _: b"jank events" in frames(folder))
    done = sojourn.run(["flush", "--spool", folder], capture_output=True, text=True)
    check(done.returncode == 0, f"flush: {done}")
    rows = sojourn.sql(os.path.join(folder, "sessions.db"), "SELECT sum(stored_bytes) AS bytes FROM sessions")
    check((rows[0]["bytes"] or 0) <= 2048, f"blocks of {rows}")


def a_recorder_keeps_every_call(sojourn, command):
    """Records the program from outside, where every call is kept."""
    database = sojourn.path("trace.db")
    policy = {"policy": 1, "triggers": [{**POLICY["triggers"][0], "do": ["mark"]}]}
    marks = "SELECT name FROM marks WHERE name = 'jank events'"

    def is_told(_):
        try:
            return sojourn.sql(database, BLOCKED) and sojourn.sql(database, marks)
        except Failure:
            return False  # the database is being made
    run_until([sojourn.program, "record", "-q", "-o", database, "--policy", write_policy(sojourn, policy), "--",
               *command], sojourn.environment, is_told)
    check_report(sojourn, database)
    told = sojourn.run(["stalls", database], capture_output=True, text=True).stdout
    check("Jank.paint()" in told and "Jank.compact(" in told, f"told:\n{told}")


def a_late_method_fires_at_its_deadline(sojourn, classes):
    """A named method is late: the trigger fires once, at its deadline and not when the method ends."""
    database = sojourn.path("late.db")
    triggers = [{"on": "jank", "function": "Attached.held()", "longer_than": "100ms", "pause": "0s", "do": ["mark"]}]
    program = Program(classes, prefix=[sojourn.program, "record", "-q", "-o", database, "--policy",
                                       write_policy(sojourn, {"policy": 1, "triggers": triggers}), "--"],
                      environment=sojourn.environment)
    program.tell("hold")

    def fired():
        try:
            return sojourn.sql(database, "SELECT subject, value FROM triggers")
        except Failure:
            return []  # the database is being made
    wait_for("the trigger fires while the call is open", fired)
    program.tell("release")
    program.finish()
    rows = fired()
    check(len(rows) == 1 and rows[0]["subject"] == "Attached.held()" and rows[0]["value"] > 100e6, f"{rows}")
    check_accounts(sojourn, database)


def test(sojourn, _):
    jar = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "lib", "sojourn.jar")
    classes = sample_classes(sojourn)
    a_late_method_fires_at_its_deadline(sojourn, classes)
    runtime = sojourn.path("run")
    os.makedirs(runtime, mode=0o700)
    sojourn.environment["XDG_RUNTIME_DIR"] = runtime
    command = ["java", "-cp", f"{classes}:{jar}", "Jank"]
    a_dump_without_a_collector_is_a_file(sojourn, command)
    a_dump_stays_within_the_limit_of_its_folder(sojourn, command)
    a_recorder_keeps_every_call(sojourn, command)


main(test)
