"""Tests what triggers see and do, on programs that misbehave in known ways."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, attach
from sojourn_testing import PATIENCE_S, check, check_accounts, json_rows, main, wait_for


def write_policy(sojourn, policy):
    path = sojourn.path("trigger.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, **policy}, file)
    return path


def recorded(sojourn, program, policy, arguments=(), code=0):
    database = sojourn.path("trigger.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    done, _ = sojourn.record([program, *arguments], database,
                             ["--policy", write_policy(sojourn, policy)])
    check(done.returncode == code, f"ended with {done.returncode}: {done.stderr.decode()}")
    check_accounts(sojourn, database)
    return database


def fired(sojourn, database):
    return sojourn.sql(database, "SELECT * FROM triggers ORDER BY number")


def stacks_of(sojourn, database):
    """Returns the function names by thread name, innermost first, at the first occasion."""
    rows = sojourn.sql(database, "SELECT thread_name, function FROM stacks WHERE taken = 1 "
                                 "ORDER BY number, level")
    stacks = {}
    for row in rows:
        stacks.setdefault(row["thread_name"], []).append(row["function"])
    return stacks


def in_order(stack, functions):
    places = [stack.index(name) if name in stack else -1 for name in functions]
    return -1 not in places and places == sorted(places)


def loop_ns(sojourn, database):
    return sojourn.sql(database, "SELECT duration_ns FROM calls JOIN functions USING (function_id) "
                                 "WHERE name = 'loop_run'")[0]["duration_ns"]


def record_until_stacks_are_captured(sojourn, program, policy):
    """Records until the stacks are captured. The sample waits at the end of its loop until its input ends."""
    database = sojourn.path("stacks.db")
    with subprocess.Popen([sojourn.program, "record", "-q", "-o", database, "--policy",
                           write_policy(sojourn, policy), "--", program, "wait"],
                          env=sojourn.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as recorder:
        wait_for("stacks", lambda: sojourn.sql_once_made(database, "SELECT 1 FROM stacks"))
        output = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0, f"ended with {recorder.returncode}: {output}")
    check_accounts(sojourn, database)
    return database


def event_loops_are_watched(sojourn, samples):
    jank = {"on": "jank", "loop": "loop_*", "longer_than": "100ms", "times": 2, "within": "5m",
            "do": ["stacks", "mark"]}
    started = time.monotonic()
    database = record_until_stacks_are_captured(sojourn, os.path.join(samples, "loop_sample"),
                                                {"triggers": [jank]})
    most_ns = (time.monotonic() - started) * 1e9
    rows = fired(sojourn, database)
    check(rows and rows[0]["event"] == "jank" and rows[0]["subject"] == "loop_sample",
          f"two slow turns of ten: {rows}")
    # On a loaded machine more turns are slow than the two that sleep. Each occasion needs two of them.
    turns_ns = loop_ns(sojourn, database) - (8 * 5 + 250) * 1e6
    occasions = sum((row["actions"] != "") + row["suppressed"] for row in rows)
    check(1 <= occasions <= 5, f"two of ten turns are slow: {rows}")
    check(100e6 < rows[0]["value"] < turns_ns < most_ns, f"not the time of a turn: {rows}")
    stacks = stacks_of(sojourn, database)
    check(in_order(stacks["loop_sample"], ["loop_run", "main"]), f"the loop: {stacks}")
    check(in_order(stacks["sleeper"], ["sleeper_inner", "sleeper_outer", "run_sleeper"]),
          f"the other thread: {stacks}")
    shipped = sojourn.run(["sql", "--json", "--query", "stacks", database], capture_output=True,
                          text=True)
    names = {row["function"] for row in json_rows(shipped.stdout)}
    check({"sleeper_inner", "loop_run", "main"} <= names, f"the shipped query lists {names}")
    jank["longer_than"] = "20s"
    database = recorded(sojourn, os.path.join(samples, "loop_sample"), {"triggers": [jank]})
    check(fired(sojourn, database) == [], "no turn took 20 seconds")
    jank["loop"] = "sleeper"
    jank["longer_than"] = "1ms"
    database = recorded(sojourn, os.path.join(samples, "loop_sample"), {"triggers": [jank]})
    check(fired(sojourn, database) == [], "a thread without a loop was late")


def slow_calls_and_late_frames(sojourn, samples):
    triggers = [{"on": "slow_call", "function": "loop_rest", "longer_than": "100ms", "pause": "0s",
                 "do": ["mark"]},
                {"on": "jank", "function": "loop_rest", "longer_than": "100ms", "times": 2,
                 "within": "5m", "do": ["mark"]}]
    database = recorded(sojourn, os.path.join(samples, "loop_sample"), {"triggers": triggers})
    events = [row["event"] for row in fired(sojourn, database)]
    check(sorted(events) == ["jank", "slow_call", "slow_call"], f"two slow calls, one jank: {events}")
    marks = sojourn.sql(database, "SELECT name FROM marks WHERE source = 'trigger' ORDER BY number")
    check(sorted(row["name"] for row in marks) == ["jank loop_rest"] + ["slow_call loop_rest"] * 2,
          f"marks: {marks}")


def marks_of_the_program_start_a_recording(sojourn, samples):
    triggers = [{"on": "mark", "name": "warm*", "do": ["stop"]}]
    database = recorded(sojourn, os.path.join(samples, "api_c"), {"triggers": triggers})
    rows = fired(sojourn, database)
    check([row["subject"] for row in rows] == ["warm up"], f"fired: {rows}")
    calls = sojourn.sql(database, "SELECT sum(calls) AS n FROM function_stats "
                                  "JOIN functions USING (function_id) WHERE name = 'api_step'")
    # from the mark to the program's own sojourn_start
    check(calls[0]["n"] == 250, f"recorded {calls} of 1750 steps")
    triggers = [{"on": "mark", "name": "warm up", "do": ["start"]}]
    policy = {"begin": "triggered", "triggers": triggers}
    database = recorded(sojourn, os.path.join(samples, "api_c"), policy)
    names = sojourn.sql(database, "SELECT name, calls FROM function_stats "
                                  "JOIN functions USING (function_id) WHERE name LIKE 'api_%' "
                                  "OR name = 'main' ORDER BY name")
    # up to the program's own sojourn_stop, and after sojourn_start
    check([(row["name"], row["calls"]) for row in names] == [("api_step", 1250), ("api_work", 2)],
          f"recorded {names}")


def stacks_of_busy_threads(sojourn, samples):
    """A thread that records has the stack that it would have without the agent, and its behavior does not change."""
    policy = {"buffer": {"when_full": "drop"},
              "triggers": [{"on": "command", "pause": "0s", "do": ["stacks"]}]}
    database = sojourn.path("busy.db")
    recorder = subprocess.Popen(
        [sojourn.program, "record", "-q", "-o", database, "--minimum", "100ms", "--policy",
         write_policy(sojourn, policy), "--", os.path.join(samples, "ends"), "spin"],
        env=sojourn.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    output = recorder.stdout.readline() # the program is busy from here on
    for _ in range(10):
        wait_for("the command is taken",
                 lambda: sojourn.run(["trigger", "where"], capture_output=True).returncode == 0)
    wait_for("stacks", lambda: sojourn.sql(database, "SELECT 1 FROM stacks LIMIT 1"))
    recorder.terminate()
    output += recorder.communicate(timeout=PATIENCE_S)[0]
    check(recorder.returncode == 128 + 15 and output == "1501500\n", f"it said {output}")
    check_accounts(sojourn, database)
    rows = sojourn.sql(database, "SELECT taken, max(is_cut) AS cut, "
                                 "group_concat(iif(function = '', module, function)) AS names "
                                 "FROM (SELECT * FROM stacks ORDER BY level) GROUP BY taken")
    check(1 <= len(rows) <= 10, f"stacks were taken {len(rows)} times")
    for row in rows:
        names = row["names"].split(",")
        names = names[names[0] == "ends_step":]
        check(row["cut"] == 0 and names[:3] == ["ends_work", "ends_die", "main"],
              f"a busy thread stands in {row}")


def held_back_triggers_are_counted(sojourn, samples):
    policy = {"triggers": [{"on": "slow_call", "function": "ends_step", "longer_than": "1ns",
                            "pause": "10s", "do": ["mark", "stacks"]}]}
    database = recorded(sojourn, os.path.join(samples, "ends"), policy, code=3)
    rows = fired(sojourn, database)
    acted = [row for row in rows if row["actions"] != ""]
    check(len(acted) == 1, f"with a pause of 10 s: {rows}")
    held_back = sum(row["suppressed"] for row in rows)
    # A clock with coarse steps can measure some calls as 0.
    check(500 <= held_back + 1 <= 1000 and len(rows) == 2, f"of 1000: {rows}")


def loops_of_attached_processes_are_not_watched(sojourn, samples):
    target = Target([os.path.join(samples, "api_c"), "laps"]).ready()
    database = sojourn.path("unseen.db")
    jank = {"on": "jank", "loop": "*", "longer_than": "100ms", "do": ["mark"]}
    done, _ = attach(sojourn, target.pid, database,
                     ["--for", "50ms", "--policy", write_policy(sojourn, {"triggers": [jank]})])
    check(done.returncode == 0 and "event loops are watched only" in done.stderr, f"{done}")
    stored = sojourn.sql(database, "SELECT not_applied FROM policies")[0]["not_applied"]
    check("event loops are watched only" in stored, f"stored: {stored}")
    check(target.finish()[0] == 0, "the program failed")


def a_jank_dump_is_a_local_file(sojourn, samples):
    """Without a collector the file holds the seconds around the slow frame, and commands can read it."""
    database = recorded(sojourn, os.path.join(samples, "api_c"),
                        {"base": "jank", "budget": None}, ["frames"])
    sessions = sojourn.sql(database, "SELECT session_id, cause, stored_calls, parent_session_id "
                                     "FROM sessions ORDER BY session_id")
    check(sessions[0]["stored_calls"] == 0, f"the parent has calls: {sessions}")
    check(len(sessions) >= 2 and "jank" in sessions[1]["cause"], f"no dump: {sessions}")
    check(sessions[1]["stored_calls"] > 0, f"the dump is empty: {sessions}")
    for command in (["report"], ["tree"]):
        shown = sojourn.run([*command, "--session", str(sessions[1]["session_id"]), database],
                           capture_output=True, text=True)
        check(shown.returncode == 0 and "api_frame" in shown.stdout, f"{command}: {shown}")


TESTS = [event_loops_are_watched, slow_calls_and_late_frames,
         marks_of_the_program_start_a_recording, stacks_of_busy_threads,
         held_back_triggers_are_counted, loops_of_attached_processes_are_not_watched, a_jank_dump_is_a_local_file]


def test(sojourn, arguments):
    samples = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests/samples")
    # Commands look for live recordings. A separate runtime directory hides those of other tests.
    sojourn.environment["XDG_RUNTIME_DIR"] = sojourn.folder
    for each in TESTS:
        if not arguments or arguments[0] in each.__name__:
            started = time.monotonic()
            each(sojourn, samples)
            print(f"{each.__name__.replace('_', ' ')}: {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main(test)
