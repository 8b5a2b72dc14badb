#!/usr/bin/env python3
"""Another program overwrites a collector's database while it is open. From then on the collector acknowledges
nothing, and reports it in its log and at /healthz, also while no frames arrive. The next collector does not mix the
log of the overwritten file into the copy. Frames that devices sent meanwhile are stored by it.

written_over.py BUILD_FOLDER
"""
import os
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import free_port
from sojourn_testing import PATIENCE_S, check, main, wait_for


class Server:
    def __init__(self, sojourn, database, url, log):
        self.port = free_port()
        self.log = sojourn.path(log)
        self.database = database
        self.socket = url.removeprefix("ipc://")
        self.process = subprocess.Popen([sojourn.program + "d", "--database", database, "--listen", url, "--http",
                                         f"127.0.0.1:{self.port}"], stderr=open(self.log, "w", encoding="utf-8"))
        wait_for("a healthy collector", lambda: self.health() == 200)

    def health(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=PATIENCE_S) as answer:
                return answer.status
        except urllib.error.HTTPError as refusal:
            return refusal.code
        except OSError:
            return 0

    def metrics(self):
        """Returns two metrics: not 0 if frames are refused, and the age in seconds of the oldest frame without an
        acknowledgement."""
        with open(self.database + ".token", encoding="utf-8") as file:
            shown = {"Authorization": f"Bearer {file.read().strip()}"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/metrics", headers=shown)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            found = dict(line.split(" ") for line in answer.read().decode().splitlines() if line[0] != "#")
        return tuple(float(found["sojourn_" + name]) for name in ("refusing", "oldest_unacknowledged_seconds"))

    def says(self, words):
        with open(self.log, encoding="utf-8") as file:
            return words in file.read()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE_S)
        if os.path.exists(self.socket):
            os.unlink(self.socket)


def write_over(source, target):
    """Overwrites as `cp` does: empties the file, then writes to it."""
    subprocess.run(["cp", source, target], check=True)


def expect_refusal(server):
    wait_for("a health check that fails", lambda: server.health() == 503)
    wait_for("the log", lambda: server.says("event=database") and server.says("was overwritten while it was open"))


def put_in_place(sojourn, backup, database):
    for end in ("", "-wal", "-shm"):
        if os.path.exists(database + end):
            os.unlink(database + end)
    sojourn.run(["restore", backup, database], check=True, capture_output=True)


def overwritten_while_idle(sojourn, server, database, backup):
    sojourn.run(["backup", backup, database], check=True, capture_output=True)
    write_over("/dev/null", database)
    expect_refusal(server)
    server.end()
    put_in_place(sojourn, backup, database)


def overwritten_while_recording(sojourn, server, database, backup):
    """Calls that arrive after the overwriting are not acknowledged."""
    def stored():
        return sojourn.sql(database, "SELECT coalesce(sum(stored_calls), 0) AS n FROM sessions")[0]["n"]

    wait_for("calls that are stored", lambda: stored() > 0)
    check(server.metrics()[0] == 0, f"frames are refused already: {server.metrics()}")
    write_over(backup, database)
    expect_refusal(server)
    wait_for("a batch that is refused", lambda: server.says("no frame is stored"))
    refusing, before = server.metrics()
    _, after = server.metrics()
    check(refusing == 1 and 0 < before < after, f"the oldest frame waits {before}, then {after} s; refusing: {refusing}")
    server.end()


def expect_log_aside(server, database):
    """The next collector keeps the log of the overwritten file, and writes nothing of it into the copy."""
    check(server.says("the log belongs to the file that was there before"), "the log does not name the foreign log")
    check(os.path.getsize(database + "-wal.foreign") > 0, "the foreign log is empty")


def test(sojourn, _arguments):
    url, database, backup = f"ipc://{sojourn.path('s.ipc')}", sojourn.path("lab.db"), sojourn.path("copy.db")
    ends = os.path.join(os.path.dirname(sojourn.program), "..", "tests", "samples", "ends")
    servers = [Server(sojourn, database, url, "1.log")]
    try:
        overwritten_while_idle(sojourn, servers[-1], database, backup)
        servers.append(Server(sojourn, database, url, "2.log"))
        command = [sojourn.program, "record", "--quiet", "--collector", url, "--wait", "60", "--", ends, "wait"]
        with subprocess.Popen(command, env=sojourn.environment, stdout=subprocess.DEVNULL) as recorder:
            try:
                overwritten_while_recording(sojourn, servers[-1], database, backup)
                servers.append(Server(sojourn, database, url, "3.log"))
                expect_log_aside(servers[-1], database)
                wait_for("frames that are stored again", lambda: servers[-1].metrics() == (0, 0))
            finally:
                recorder.terminate()
                recorder.wait(PATIENCE_S)
        wait_for("the session's end", lambda: sojourn.sql(
            database, "SELECT 1 AS n FROM sessions WHERE state <> 'recording' AND sent_calls = stored_calls + lost_calls"))
        servers[-1].process.terminate()
        check(servers[-1].process.wait(PATIENCE_S) == 0, "the collector's exit code")
    finally:
        for server in servers:
            server.end()


main(test, checks_sums=False)  # the copy lacks calls that were stored after it was made
