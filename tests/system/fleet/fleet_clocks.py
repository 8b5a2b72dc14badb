#!/usr/bin/env python3
"""Sessions of devices with wrong clocks have the collector's time line.

One device has the right time. The real-time clock of another is an hour off, the clock of the third is set back by an
hour during its recording, and the fourth boots in another time namespace. All run on this machine, so the test knows
when each session began.

fleet_clocks.py BUILD_FOLDER
"""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import free_port, accepts_connections
from sojourn_testing import PATIENCE_S, check, check_accounts, main, wait_for

SHIFT_S = 3600


def record(sojourn, name, url, prefix=(), **environment):
    """Records `ends` on the device `name`. Returns the earliest time of its begin, and the time of its end."""
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    began = time.time_ns()
    done = subprocess.run(
        [*prefix, sojourn.program, "record", "-q", "--name", name, "--collector", url, "--wait",
         str(PATIENCE_S), "--", os.path.join(build, "tests/samples/ends"), "return"],
        env=dict(sojourn.environment, XDG_STATE_HOME=sojourn.path(name), **environment),
        capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    check("sojourn:" not in done.stderr, f"{name}: {done.stderr}")
    return began, time.time_ns()


def record_and_set_back(sojourn, name, url, preload, database):
    """Sets the device's clock back once the collector has seen its earlier time."""
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    setting = sojourn.path("set-back.now")
    began = time.time_ns()
    recorder = subprocess.Popen(
        [sojourn.program, "record", "-q", "--name", name, "--collector", url, "--wait", str(PATIENCE_S), "--",
         os.path.join(build, "tests/samples/ends"), "wait"],
        env=dict(sojourn.environment, XDG_STATE_HOME=sojourn.path(name), LD_PRELOAD=preload,
                 SHIFT_S=str(-SHIFT_S), SHIFT_FILE=setting),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for("a clock pair", lambda: sojourn.sql(
        database, f"SELECT 1 FROM clock_pairs JOIN sessions USING (session_id) WHERE name = '{name}'"))
    seen = time.time_ns()
    with open(setting, "w", encoding="utf-8"):
        pass
    recorder.terminate()
    recorder.wait(PATIENCE_S)
    return began, seen


def check_time(row, began, ended):
    off = int(row["uncertainty_ns"])
    check(0 <= off < SHIFT_S * 10**9 // 4, f"the bound says nothing: {row}")
    check(began - off <= int(row["started_collector_ns"]) <= ended + off,
          f"not between {began} and {ended}: {row}")


def check_set_back(sojourn, database):
    """A clock that was set shows in the clock pairs, and in no duration."""
    moved = sojourn.sql(database, "SELECT max(realtime_ns - boottime_ns) - "
                                  "min(realtime_ns - boottime_ns) AS ns FROM clock_pairs JOIN "
                                  "sessions USING (session_id) WHERE name = 'set-back'")[0]["ns"]
    check(int(moved) > (SHIFT_S - 60) * 10**9, f"the clock was not set back: {moved}")
    odd = sojourn.sql(database, "SELECT function_id, min_ns, max_ns FROM function_stats "
                                "WHERE min_ns < 0 OR max_ns > 600 * 1000000000")
    check(odd == [], f"durations that cannot be: {odd}")


def test(sojourn, _arguments):
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    preload = os.path.join(build, "tests/samples/libshifted_clock.so")
    port = free_port()
    url = f"tcp://127.0.0.1:{port}"
    database = sojourn.path("lab.db")
    server = subprocess.Popen([os.path.join(build, "bin/sojournd"), "--listen", url, "--database",
                               database], stderr=subprocess.DEVNULL)
    try:
        wait_for("the collector", lambda: accepts_connections(port))
        as_user = [] if os.geteuid() == 0 else ["--map-root-user", "--user"]
        boots = ["unshare", *as_user, "--time", "--fork", "--boottime", "777000", "--monotonic",
                 "777000"]
        times = {
            "right": record(sojourn, "right", url),
            "an-hour-off": record(sojourn, "an-hour-off", url, LD_PRELOAD=preload,
                                  SHIFT_S=str(SHIFT_S)),
            "set-back": record_and_set_back(sojourn, "set-back", url, preload, database),
            "booted-earlier": record(sojourn, "booted-earlier", url, boots),
        }
    finally:
        server.terminate()
        server.wait(PATIENCE_S)
    rows = {row["name"]: row for row in sojourn.sql(
        database, "SELECT name, started_realtime_ns, t.* FROM sessions LEFT JOIN "
                  "session_collector_times AS t USING (session_id)")}
    check(set(rows) == set(times), f"sessions are missing: {rows}")
    for name, (began, ended) in times.items():
        check(rows[name]["started_collector_ns"] is not None, f"no time for {rows[name]}")
        check_time(rows[name], began, ended)
    check_accounts(sojourn, database)
    check_set_back(sojourn, database)
    off = rows["an-hour-off"]
    check(abs(int(off["clock_error_ns"]) + SHIFT_S * 10**9)
          <= int(off["uncertainty_ns"]) + 10 * 10**9,
          f"the clock's error is not reported: {off}")
    check(int(off["started_realtime_ns"]) > times["an-hour-off"][1], "the clock was not off at all")
    boots = sojourn.sql(database, "SELECT name, max(boottime_ns) AS ns FROM clock_pairs JOIN "
                                  "sessions USING (session_id) GROUP BY name")
    boots = {row["name"]: int(row["ns"]) for row in boots}
    check(boots["booted-earlier"] - boots["right"] > 776_000 * 10**9,
          f"the time namespace was none: {boots}")


main(test)
