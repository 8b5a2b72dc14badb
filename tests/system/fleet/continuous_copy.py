#!/usr/bin/env python3
"""Litestream copies the database of a collector that stores calls, into a folder or into a store that speaks S3. The
collector is killed and its database lost. The database that Litestream restores is sound and has everything that was
copied, and the recording continues in it.

continuous_copy.py BUILD_FOLDER PACKAGES_FOLDER [STORE_PACKAGES_FOLDER]
"""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import accepts_connections, free_port
from sojourn_testing import PATIENCE_S, check, main, wait_for

TOOL = "node_modules/@flydotio/litestream-linux-x64/litestream"
STORE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "packages", "store.cjs")
BUCKET = "copies"
KEY = "S3RVER"  # the name and the secret of the store's only user


class Folder:
    """A folder for the copies."""

    def __init__(self, sojourn):
        self.replica = {"type": "file", "path": sojourn.path("copies")}

    def stop(self):
        """Does nothing: a folder has no process."""


class Store:
    """A store for the copies that speaks S3, with one bucket."""

    def __init__(self, sojourn, packages):
        port = free_port()
        self.folder, self.log = sojourn.path("store"), open(sojourn.path("store.log"), "wb")
        os.mkdir(self.folder)
        self.process = subprocess.Popen(
            ["node", STORE, packages, self.folder, str(port), BUCKET], stdout=self.log, stderr=self.log)
        wait_for("the store", lambda: accepts_connections(port))
        self.replica = {"type": "s3", "bucket": BUCKET, "path": "lab", "endpoint": f"http://127.0.0.1:{port}",
                        "region": "us-east-1", "force-path-style": "true", "access-key-id": KEY,
                        "secret-access-key": KEY}

    def stop(self):
        held = sum(len(files) for _, _, files in os.walk(os.path.join(self.folder, BUCKET)))
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.log.close()
        check(held > 0, "the store has no copy")


class Copies:
    """The database's copies and the process that makes them."""

    def __init__(self, sojourn, tool, database, place):
        self.tool, self.database, self.given_back = tool, database, sojourn.path("given_back.db")
        self.log = open(sojourn.path("litestream.log"), "wb")
        self.configuration = sojourn.path("litestream.yml")
        replica = "\n        ".join(f"{key}: {value}" for key, value in place.replica.items())
        with open(self.configuration, "w", encoding="utf-8") as file:
            file.write(f"dbs:\n  - path: {database}\n    monitor-interval: 50ms\n    replicas:\n"
                       f"      - {replica}\n        sync-interval: 50ms\n")
        self.process = subprocess.Popen([tool, "replicate", "-config", self.configuration], stdout=self.log,
                                        stderr=self.log)

    def give_back(self):
        """Restores a database from the copies. Returns false while there are no copies."""
        if os.path.exists(self.given_back):
            os.unlink(self.given_back)
        done = subprocess.run([self.tool, "restore", "-config", self.configuration, "-o", self.given_back,
                               self.database], capture_output=True, timeout=PATIENCE_S, check=False)
        return done.returncode == 0

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)
        self.log.close()


def start(sojourn, url, database):
    program = os.path.join(os.path.dirname(sojourn.program), "sojournd")
    with open(sojourn.path("collector.log"), "ab") as log:
        server = subprocess.Popen([program, "--listen", url, "--database", database], stderr=log)
    wait_for("the collector", lambda: os.path.exists(url.removeprefix("ipc://")))
    return server


def sqlite(database, words):
    """Runs sqlite3 in another process, because the files of a process with open connections must not be replaced."""
    done = subprocess.run(["sqlite3", database, words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return done.stdout.strip()


def stored_calls(database):
    return int(sqlite(database, "SELECT coalesce(sum(stored_calls), 0) FROM sessions") or 0)


def wait_for_more(database):
    before = stored_calls(database)
    wait_for("calls that are stored", lambda: stored_calls(database) > before)


def lose_database(sojourn, copies, server, url, database):
    """Kills the collector once the copies have what it has acknowledged, and replaces its database by the restored
    one."""
    wait_for_more(database)
    # A collector restarts its log when the log is large, but not before the log is copied.
    busy = sqlite(database, "PRAGMA wal_checkpoint(RESTART)").split("|")[0]
    check(busy == "1", f"the log was restarted below Litestream: {busy}")
    wait_for_more(database)
    acknowledged = stored_calls(database)
    wait_for("the copies", lambda: copies.give_back() and stored_calls(copies.given_back) >= acknowledged)
    server.send_signal(signal.SIGKILL)
    server.wait(PATIENCE_S)
    copies.kill()
    for path in (url.removeprefix("ipc://"), database, database + "-wal", database + "-shm"):
        os.unlink(path)
    check(copies.give_back() and stored_calls(copies.given_back) >= acknowledged, "acknowledged calls are not there")
    done = sojourn.run(["restore", copies.given_back, database], capture_output=True, text=True)
    check(done.returncode == 0 and "0 findings" in done.stdout, f"restore: {done}")
    return start(sojourn, url, database)


def test(sojourn, arguments):
    url = f"ipc://{sojourn.path('collector.ipc')}"
    database = sojourn.path("lab.db")
    server = start(sojourn, url, database)
    place = Store(sojourn, arguments[1]) if len(arguments) > 1 else Folder(sojourn)
    copies = Copies(sojourn, os.path.join(arguments[0], TOOL), database, place)
    ends = os.path.join(os.path.dirname(sojourn.program), "..", "tests", "samples", "ends")
    command = [sojourn.program, "record", "--quiet", "--collector", url, "--wait", "60", "--", ends, "wait"]
    with subprocess.Popen(command, env=sojourn.environment, stdout=subprocess.DEVNULL) as recorder:
        try:
            server = lose_database(sojourn, copies, server, url, database)
            wait_for_more(database)
        finally:
            copies.kill()
            recorder.terminate()
            recorder.wait(PATIENCE_S)
            server.terminate()
            server.wait(PATIENCE_S)
            place.stop()
    row, = sojourn.sql(database, "SELECT sent_calls - stored_calls - lost_calls AS uncounted, stored_calls FROM sessions")
    check(row["uncounted"] == 0 and row["stored_calls"] > 0, f"sent is not stored + lost: {row}")


if __name__ == "__main__":
    main(test, checks_sums=False)
