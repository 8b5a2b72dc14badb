"""kill -9 of the program or of its recorder, in profile and flight mode. The existing calls are salvaged and
marked, and sent = stored + counted as lost. SJ_LONG=1: 60 rounds at random moments."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, children, main, wait_for

FLIGHT = {"before": "30s", "after": "10ms", "memory": "16M"}
POLICIES = {"trace": {"mode": "trace"},
            "profile": {"mode": "profile"},
            "flight": {"mode": "flight", "flight": FLIGHT,
                       "triggers": [{"on": "command", "do": ["dump"]}]}}


def start(sojourn, program, mode, database):
    path = sojourn.path("killed.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, **POLICIES[mode]}, file)
    recorder = subprocess.Popen(
        [sojourn.program, "record", "-q", "-o", database, "--policy", path, "--", program, "wait"],
        env=sojourn.environment, stdout=subprocess.PIPE, text=True)
    recorder.stdout.readline()  # the program runs, and has made its first thousand calls
    return recorder, children(recorder.pid)[0]


def accounted(sojourn, database):
    rows = sojourn.sql(database, "SELECT * FROM sessions ORDER BY session_id")
    for row in rows:
        check(row["sent_calls"] == row["stored_calls"] + row["device_lost_calls"] and
              row["lost_calls"] == row["device_lost_calls"] and
              row["sent_blocks"] == row["stored_blocks"], f"not accounted for: {row}")
    return rows


def kept_files(sojourn, start):
    """Returns what the recorder keeps for its successor: the files of its runtime directory."""
    return [name for _, _, files in os.walk(sojourn.path("sojourn")) for name in files
            if name.startswith(start)]


def kept_calls(sojourn, mode):
    """Waits until the recorder has kept calls that the mode holds back."""
    start = {"profile": "profile-sums", "flight": "flight-"}[mode]
    wait_for(f"a file {start}*", lambda: kept_files(sojourn, start))


def kill_recorder(sojourn, program, mode, seconds=None, later=None):
    """Kills both after `seconds`, or once calls were kept. `later`: the recording changes to that mode. Returns the
    sessions that `flush` delivered."""
    database = sojourn.path("killed.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    recorder, program_pid = start(sojourn, program, mode, database)
    if later is not None:
        wait_for("a block", lambda: sojourn.sql(database, "SELECT 1 FROM sessions WHERE stored_calls > 1000"))
        sojourn.run(["policy", "set", "--mode", later, str(program_pid)], check=True,
                    stdout=subprocess.DEVNULL)
    if seconds is None:
        kept_calls(sojourn, later or mode)
    else:
        time.sleep(seconds)
    os.kill(recorder.pid, signal.SIGKILL)
    recorder.wait()
    os.kill(program_pid, signal.SIGKILL)
    recorder.stdout.close()
    wait_for("the program ends", lambda: not os.path.exists(f"/proc/{program_pid}"))
    done = sojourn.run(["flush"], capture_output=True, text=True)
    check(done.returncode == 0 and "1 session finished" in done.stdout, f"flush: {done}")
    left = os.listdir(sojourn.path("sojourn"))
    check(left == [], f"left behind: {left}")
    return database, accounted(sojourn, database)


def steps(sojourn, database, session=1):
    rows = sojourn.sql(database, "SELECT s.calls FROM function_stats s JOIN functions "
                                 "USING (function_id) WHERE name = 'ends_step' "
                                 f"AND session_id = {session}")
    return rows[0]["calls"] if rows else 0


def profiles_outlive_their_recorder(sojourn, program):
    database, sessions = kill_recorder(sojourn, program, "profile")
    check(len(sessions) == 1 and sessions[0]["state"] == "lost", f"sessions: {sessions}")
    reports = sojourn.sql(database, "SELECT calls FROM profiles")
    check(len(reports) == 1 and reports[0]["calls"] > 1000, f"no sums were salvaged: {reports}")
    check(steps(sojourn, database) > 1000, "the first thousand calls are missing")
    threads = sojourn.sql(database, "SELECT count(*) AS n FROM threads")[0]["n"]
    check(threads == 1, f"{threads} threads of one")


def flights_outlive_their_recorder(sojourn, program):
    database, sessions = kill_recorder(sojourn, program, "flight")
    check(len(sessions) == 2, f"no child session: {sessions}")
    check(sessions[0]["state"] == "lost" and sessions[0]["stored_calls"] == 0, f"{sessions[0]}")
    check(sessions[1]["parent_session_id"] == 1 and
          sessions[1]["cause"] == "the recorder was killed", f"cause: {sessions[1]}")
    found = steps(sojourn, database, 2)
    check(found > 0, "the last calls are missing")


def flights_may_begin_later(sojourn, program):
    """Calls recorded in another mode before belong to the session itself, once."""
    database, sessions = kill_recorder(sojourn, program, "trace", later="flight")
    check(len(sessions) == 2 and sessions[0]["state"] == "lost", f"no child session: {sessions}")
    check(sessions[1]["cause"] == "the recorder was killed", f"cause: {sessions[1]}")
    before, found = steps(sojourn, database), steps(sojourn, database, 2)
    check(before > 1000 and found > 1000, f"{before} calls before, {found} in flight")
    threads = sojourn.sql(database, "SELECT count(*) AS n FROM threads WHERE session_id = 2")
    check(threads[0]["n"] == 1, f"{threads} threads of one")


def profiles_may_begin_later(sojourn, program):
    database, sessions = kill_recorder(sojourn, program, "trace", later="profile")
    check(len(sessions) == 1 and sessions[0]["state"] == "lost", f"sessions: {sessions}")
    reports = sojourn.sql(database, "SELECT calls FROM profiles")
    check(len(reports) == 1 and reports[0]["calls"] > 1000, f"no sums were salvaged: {reports}")


def programs_are_killed(sojourn, program):
    for mode in POLICIES:
        database = sojourn.path(f"{mode}.db")
        recorder, program_pid = start(sojourn, program, mode, database)
        os.kill(program_pid, signal.SIGKILL)
        check(recorder.wait(timeout=PATIENCE_S) == 128 + 9, f"{mode}: ended with {recorder.returncode}")
        recorder.stdout.close()
        sessions = accounted(sojourn, database)
        check(len(sessions) == 1 and sessions[0]["state"] == "killed", f"{mode}: {sessions}")
        if mode != "flight":
            check(steps(sojourn, database) >= 1000, "the profile of a killed program is empty")


def at_any_moment(sojourn, program):
    rounds = 60 if os.environ.get("SJ_LONG") else 2
    for number in range(rounds):
        mode = "profile" if number % 2 == 0 else "flight"
        kill_recorder(sojourn, program, mode, random.uniform(0.0, 1.2))
        shutil.rmtree(sojourn.path("state"), ignore_errors=True)


TESTS = [profiles_outlive_their_recorder, flights_outlive_their_recorder, profiles_may_begin_later,
         flights_may_begin_later, programs_are_killed, at_any_moment]


def test(sojourn, arguments):
    program = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests/samples/ends")
    sojourn.environment["XDG_RUNTIME_DIR"] = sojourn.folder
    for each in TESTS:
        if not arguments or arguments[0] in each.__name__:
            started = time.monotonic()
            each(sojourn, program)
            print(f"{each.__name__.replace('_', ' ')}: {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main(test)
