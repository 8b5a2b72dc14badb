#!/usr/bin/env python3
"""A collector restarts with an older copy of its database, or with a cut log, during a recording. The session is
announced again, later calls are stored, and missing calls are counted as lost, with gaps.

restored_backup.py BUILD_FOLDER
"""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, json_rows, main, wait_for


def start(sojourn, url, database):
    program = os.path.join(os.path.dirname(sojourn.program), "sojournd")
    with open(sojourn.path("collector.log"), "ab") as log:
        server = subprocess.Popen([program, "--listen", url, "--database", database], stderr=log)
    wait_for("the collector", lambda: os.path.exists(url.removeprefix("ipc://")))
    return server


def kill(server, url):
    server.send_signal(signal.SIGKILL)
    server.wait(PATIENCE_S)
    os.unlink(url.removeprefix("ipc://"))


def sqlite(database, words):
    """Runs sqlite3 in another process, because the files of a process with open connections must not be replaced."""
    done = subprocess.run(["sqlite3", "-cmd", ".timeout 60000", database, words], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=True)
    return done.stdout.strip()


def stored_calls(database):
    """Returns the stored calls of all sessions, or 0 if there are none."""
    return int(sqlite(database, "SELECT coalesce(sum(stored_calls), 0) FROM sessions"))


def wait_for_more(database):
    before = stored_calls(database)
    wait_for("calls that are stored", lambda: stored_calls(database) > before)


def copy(sojourn, source, target):
    """Copies the database while the collector writes to it."""
    done = sojourn.run(["backup", "--json", target, source], capture_output=True, text=True)
    check(done.returncode == 0, f"backup: {done}")
    row, = json_rows(done.stdout)
    check(row["bytes"] == os.path.getsize(target) and row["file"] == target, f"backup: {row}")
    again = sojourn.run(["backup", target, source], capture_output=True, text=True)
    check(again.returncode == 1 and "not overwritten" in again.stderr, f"a second backup: {again}")


def put_in_place(sojourn, backup, database):
    done = sojourn.run(["restore", backup, database], capture_output=True, text=True)
    check(done.returncode == 1 and "not overwritten" in done.stderr, f"restored over a database: {done}")
    for end in ("", "-wal", "-shm"):
        if os.path.exists(database + end):
            os.unlink(database + end)
    done = sojourn.run(["restore", backup, database], capture_output=True, text=True)
    check(done.returncode == 0 and "restored" in done.stdout, f"restore: {done}")


def forget_threads(database):
    """Makes the database like a copy from before the first thread was announced."""
    sqlite(database, "UPDATE streams SET thread_id = NULL; DELETE FROM threads; DELETE FROM mappings; "
           "DELETE FROM processes")


def cut_log(database):
    """Cuts the log, as a disk does that loses the end of a file."""
    size = os.path.getsize(database + "-wal")
    os.truncate(database + "-wal", size // 2)
    if os.path.exists(database + "-shm"):
        os.unlink(database + "-shm")


def damage_repeatedly(sojourn, url, database, empty):
    """Damages the database repeatedly. Ends with a collector that has stored calls after each loss."""
    early, late = sojourn.path("early.db"), sojourn.path("late.db")
    server = start(sojourn, url, database)

    def restore(backup):
        nonlocal server
        kill(server, url)
        put_in_place(sojourn, backup, database)
        server = start(sojourn, url, database)
        wait_for_more(database)

    wait_for_more(database)
    restore(empty)  # this copy does not know the session
    copy(sojourn, database, early)
    wait_for_more(database)
    restore(early)  # this copy lacks the last calls
    copy(sojourn, database, late)
    forget_threads(late)
    wait_for_more(database)
    restore(late)  # this copy lacks the thread, too
    kill(server, url)
    cut_log(database)
    server = start(sojourn, url, database)
    wait_for_more(database)
    return server


def check_answers(sojourn, database):
    row = sojourn.sql(database, "SELECT state, sent_calls, stored_calls, lost_calls, (SELECT sum(calls) FROM gaps "
                      "WHERE reason = 'not_stored') AS in_gaps FROM sessions")
    check(len(row) == 1, f"sessions: {row}")
    row = row[0]
    check(row["sent_calls"] == row["stored_calls"] + row["lost_calls"], f"sent is not stored + lost: {row}")
    check(row["lost_calls"] > 0 and row["in_gaps"] == row["lost_calls"], f"gaps do not say what is missing: {row}")
    names = sojourn.sql(database, "SELECT DISTINCT t.is_main, p.executable LIKE '%/ends' AS known FROM streams AS s "
                        "LEFT JOIN threads AS t USING (thread_id) LEFT JOIN processes AS p ON p.session_id = "
                        "t.session_id AND p.number = t.process_number")
    check(names == [{"is_main": 1, "known": 1}], f"threads or processes were not announced again: {names}")
    functions = {row["name"] for row in sojourn.sql(database, "SELECT DISTINCT name FROM calls JOIN functions USING "
                                                    "(function_id)")}
    check("ends_step" in functions, f"functions: {functions}")
    with open(os.path.join(os.path.dirname(__file__), "..", "support", "contradictions.sql"), encoding="utf-8") as file:
        rows = sojourn.sql(database, file.read())
    check([row["what"] for row in rows] == ["calls or blocks were sent and are not stored"], f"contradictions: {rows}")
    for words, code in ((["report"], 0), (["verify"], 1)):
        done = sojourn.run([*words, database], capture_output=True, text=True)
        check(done.returncode == code and "not stored" in done.stdout, f"{words}: {done}")
    listed = sojourn.run(["sessions", database], capture_output=True, text=True).stdout
    check("completed" not in listed or "lost" in listed, f"sessions does not say that calls are lost: {listed}")


def test(sojourn, _):
    url = f"ipc://{sojourn.path('collector.ipc')}"
    database, empty = sojourn.path("lab.db"), sojourn.path("empty.db")
    server = start(sojourn, url, database)
    copy(sojourn, database, empty)
    kill(server, url)
    ends = os.path.join(os.path.dirname(sojourn.program), "..", "tests", "samples", "ends")
    command = [sojourn.program, "record", "--quiet", "--collector", url, "--wait", "60", "--", ends, "wait"]
    with subprocess.Popen(command, env=sojourn.environment, stdout=subprocess.DEVNULL) as recorder:
        try:
            server = damage_repeatedly(sojourn, url, database, empty)
        finally:
            recorder.terminate()
            recorder.wait(PATIENCE_S)
    left = [name for _, _, names in os.walk(sojourn.path("state")) for name in names if "rejected" in name]
    check(not left, f"frames were refused for good: {left}")
    server.terminate()
    check(server.wait(PATIENCE_S) == 0, "the collector's exit code")
    check_answers(sojourn, database)


if __name__ == "__main__":
    main(test, checks_sums=False)
