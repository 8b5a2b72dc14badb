#!/usr/bin/env python3
"""A server reports that its disk gets full before it is full. Recordings then wait on their devices, and all of
them arrive when there is space again. The same holds for a server without a reserve, whose disk gets full in the
middle of its work. The disk is a small tmpfs in its own mount namespace.

full_disk.py BUILD_FOLDER SAMPLE
"""
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, main, wait_for

RESERVE = 8_000_000


class Server:
    """Runs sojournd, and reads its messages."""

    def __init__(self, sojourn, database, url, reserve=RESERVE):
        self.log = sojourn.path("server.log")
        self.process = subprocess.Popen(
            [sojourn.program + "d", "--database", database, "--listen", url, "--reserve-bytes",
             str(reserve)], stderr=open(self.log, "w", encoding="utf-8"), env=sojourn.environment)

    def wait_for(self, words):
        wait_for(lambda: f"'{words}' from the server, which says {self.said()}",
                 lambda: words in self.said())

    def said(self):
        return read(self.log)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_S)


def fill(path, leave):
    """Fills the disk until `leave` bytes are free."""
    with open(path, "ab") as file:
        disk = os.statvfs(os.path.dirname(path))
        file.write(bytes(disk.f_bavail * disk.f_frsize - leave))


def test(sojourn, arguments):
    disk = sojourn.path("disk")
    os.mkdir(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", disk], check=True)
    database, filler = os.path.join(disk, "lab.db"), os.path.join(disk, "filler")
    url = f"ipc://{sojourn.path('server.ipc')}"
    server = Server(sojourn, database, url)
    try:
        def record():
            done = sojourn.run(["record", "--quiet", "--wait", "2", "--collector", url, "--",
                                arguments[0]], capture_output=True, text=True, timeout=PATIENCE_S)
            return done.returncode, done.stderr

        server.wait_for("collecting into")
        record()
        check("left on its disk" not in server.said(), f"said too early: {server.said()}")
        fill(filler, 3 * RESERVE)
        server.wait_for("recordings will wait")
        record()  # there is still space
        check(stored(database) == 2, f"{stored(database)} sessions before the disk is full")
        fill(filler, RESERVE // 2)
        server.wait_for("recordings wait on their devices")
        _code, said = record()
        check(stored(database) == 2, "a session was stored on a full disk")
        check("full" in said, f"the recorder says nothing: {said}")
        os.unlink(filler)
        server.wait_for("there is space on its disk again")
        sojourn.run(["flush"], capture_output=True, timeout=PATIENCE_S)
        server.stop()
        arrived(sojourn, database, 3)
    finally:
        server.process.kill()
        subprocess.run(["umount", "-l", disk], check=False)
    test_wait_ends(sojourn)
    test_each_stage(sojourn, arguments[0])
    test_tiny_disk(sojourn)


def test_wait_ends(sojourn):
    """A recorder that waits for space in its file ends at SIGTERM, and says where the session is kept. The session
    is delivered when there is space again."""
    disk = sojourn.path("small")
    os.mkdir(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", disk], check=True)
    database, filler, errors = os.path.join(disk, "s.db"), os.path.join(disk, "filler"), sojourn.path("errors")
    with open(errors, "w", encoding="utf-8") as file:
        recorder = subprocess.Popen(
            [sojourn.program, "record", "-o", database, "--", "/bin/sh", "-c", "echo on; read line"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, env=sojourn.environment)
    try:
        recorder.stdout.readline()
        fill_up(filler)
        recorder.stdin.close()
        wait_for(lambda: f"it does not wait: {read(errors)}", lambda: "waiting" in read(errors))
        recorder.send_signal(signal.SIGTERM)
        recorder.wait(PATIENCE_S)
        check("spool" in read(errors), f"where the session is kept: {read(errors)}")
        done = sojourn.run(["flush", "--wait", "1s"], capture_output=True, timeout=PATIENCE_S)
        check(done.returncode == 1, f"flush with the disk full: {done}")
        os.unlink(filler)
        sojourn.run(["flush"], capture_output=True, timeout=PATIENCE_S)
        arrived(sojourn, database, 1)
    finally:
        recorder.kill()
        subprocess.run(["umount", "-l", disk], check=False)


def test_each_stage(sojourn, sample):
    """Without a reserve the disk fills up during work: in the journal, in a commit, while it is copied into the
    database, at the start, at the end. Acknowledged data stays, and the rest arrives when there is space."""
    disk = sojourn.path("tight")
    os.mkdir(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", disk], check=True)
    database, filler = os.path.join(disk, "lab.db"), os.path.join(disk, "filler")
    url = f"ipc://{sojourn.path('tight.ipc')}"
    server = None
    try:
        server = Server(sojourn, database, url, 0)
        server.wait_for("collecting into")
        for number, leave in enumerate((0, 4096, 20000, 60000, 200000)):
            fill_up(filler)
            os.truncate(filler, max(os.stat(filler).st_size - leave, 0))
            done = sojourn.run(["record", "--quiet", "--wait", "1", "--collector", url, "--", sample],
                               capture_output=True, text=True, timeout=PATIENCE_S)
            check(done.returncode in (0, 1), f"record ended with {done.returncode}: {done.stderr}")
            check(server.process.poll() is None, f"the server ended: {server.said()}")
            if number % 2 == 0:  # the server ends and starts on the full disk
                server.stop()
                check(server.process.returncode == 0, f"ended with {server.process.returncode}")
                server = Server(sojourn, database, url, 0)
                wait_for(server.said, lambda s=server: s.process.poll() is not None or
                         "collecting into" in s.said())
                if server.process.poll() is not None:
                    check("disk" in server.said(), f"why it does not start: {server.said()}")
            os.unlink(filler)
            if server.process.poll() is not None:
                server = Server(sojourn, database, url, 0)
                server.wait_for("collecting into")
            wait_for(lambda n=number: f"{stored(database)} sessions, not {n + 1}: {server.said()}",
                     lambda n=number: flushed(sojourn, database, n + 1))
        server.stop()
        check(server.process.returncode == 0, f"ended with {server.process.returncode}")
        arrived(sojourn, database, 5)
    finally:
        if server is not None:
            server.process.kill()
            server.process.wait()
        subprocess.run(["umount", "-l", disk], check=False)


def test_tiny_disk(sojourn):
    """A device whose whole disk has 512 KiB keeps what fits until there is a server, and counts the rest."""
    disk, database = sojourn.path("tiny"), sojourn.path("tiny.db")
    url = f"ipc://{sojourn.path('tiny.ipc')}"
    os.mkdir(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", disk], check=True)
    try:
        fibonacci = "local function f(n) return n < 2 and n or f(n - 1) + f(n - 2) end f(30)"
        sojourn.run(["record", "--quiet", "--wait", "0", "--collector", url, "--spool",
                     os.path.join(disk, "spool"), "--", "/usr/bin/lua5.4", "-e", fibonacci],
                    capture_output=True, timeout=PATIENCE_S)
        room = os.statvfs(disk)
        used = (room.f_blocks - room.f_bfree) * room.f_frsize
        check(300_000 < used < 490_000, f"{used} bytes of the tiny disk are used")
        server = Server(sojourn, database, url)
        server.wait_for("collecting into")
        sojourn.run(["flush", "--spool", os.path.join(disk, "spool")], capture_output=True,
                    timeout=PATIENCE_S)
        server.stop()
        with sqlite3.connect(database) as connection:
            calls, lost = connection.execute("SELECT stored_calls, lost_calls FROM sessions").fetchone()
        check(calls > 0 and lost > 0, f"{calls} calls are stored and {lost} lost")
        check_accounts(sojourn, database)
    finally:
        subprocess.run(["umount", "-l", disk], check=False)


def flushed(sojourn, database, sessions):
    sojourn.run(["flush"], capture_output=True, timeout=PATIENCE_S)
    return stored(database) == sessions


def fill_up(path):
    """Fills the disk completely."""
    with open(path, "ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def arrived(sojourn, database, sessions):
    check(stored(database) == sessions, f"{stored(database)} sessions after the flush")
    check_accounts(sojourn, database)
    check(sqlite3.connect(database).execute("PRAGMA integrity_check").fetchall() == [("ok",)],
          "damaged")


def stored(database):
    """Returns the number of sessions that have blocks."""
    with sqlite3.connect(database) as connection:
        return connection.execute("SELECT count(DISTINCT session_id) FROM streams JOIN blocks USING "
                                  "(stream_id)").fetchone()[0]


if __name__ == "__main__":
    if os.environ.get("SJ_OWN_MOUNTS") != "1":
        own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
        os.execvpe(own[0], [*own, sys.executable, *sys.argv], dict(os.environ, SJ_OWN_MOUNTS="1"))
    main(test)
