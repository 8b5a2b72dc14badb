#!/usr/bin/env python3
"""Faults of connections: SIGTERM with peers at every stage of a connection, a clock that jumps, no free
descriptors, IPv6 from end to end. Acknowledged data is stored, the collector ends in order, and the other peers
keep working.

edge_faults.py BUILD_FOLDER
"""
import contextlib
import os
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import Collector, Device, device_id, enrol, free_port
from hostile_peers import (BLOCK, GREETING, PING, POLL, SESSION, Peer, any_certificate, count, field,
                           frame, hello, message)
from sojourn_testing import PATIENCE_S, check, check_accounts, main, wait_for

EACH = 3  # peers at each stage
SHIFTS_S = (86400 * 400, -86400 * 400, 0)


class Stages:
    """Peers that have reached a stage and wait there. Each method opens one."""

    def __init__(self, port, device, token):
        self.port, self.device, self.token = port, device, token
        self.tls = any_certificate()

    def connect(self, tls=True):
        return Peer(("127.0.0.1", self.port), self.tls if tls else None)

    def accepted(self):
        return self.connect(False)

    def half_handshake(self):
        peer = self.connect(False)
        peer.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        return peer

    def shaken(self):
        return self.connect()

    def half_greeting(self):
        peer = self.connect()
        peer.send(GREETING[:3])
        return peer

    def greeted(self):
        peer = self.connect()
        peer.send(GREETING)
        return peer

    def half_a_strangers_message(self):
        peer = self.greeted()
        peer.send(message(frame(PING))[:9])
        return peer

    def unread_answers(self):
        peer = self.greeted()
        peer.send(message(frame(PING)) * 60)
        return peer

    def known(self):
        peer = self.connect()
        check(peer.ask(hello(self.device, self.token)) == 0, "a device is refused")
        return peer

    def half_a_block(self):
        peer = self.known()
        peer.send(message(frame(BLOCK, b"", b"\0" * 300000))[:200000])
        return peer

    def blocks_without_answers_read(self):
        peer = self.known()
        for _ in range(20):
            peer.tell(frame(BLOCK, field(1, b"\5" * 16), b"\0" * 3000))
        return peer

    def parked_question(self):
        peer = self.known()
        peer.tell(frame(POLL, field(1, self.device) + field(2, self.token) + count(4, 20000) +
                        field(5, b"{}")))
        return peer

    def half_open(self):
        peer = self.known()
        peer.socket.shutdown(socket.SHUT_WR)
        return peer

    def open_all(self):
        return [stage() for stage in (
            self.accepted, self.half_handshake, self.shaken, self.half_greeting, self.greeted,
            self.half_a_strangers_message, self.unread_answers, self.known, self.half_a_block,
            self.blocks_without_answers_read, self.parked_question, self.half_open)
            for _ in range(EACH)]


def check_sound(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        check(database.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "damaged")


def session_of(device, number):
    return frame(SESSION, field(1, bytes([number]) * 16) + field(2, device) + field(3, b"kept") +
                 field(5, b"trace") + count(6, 1) + count(8, 1) + count(9, 1))


def the_collector_stops_with_peers_at_all_stages(sojourn):
    lab, device = Collector(sojourn), Device(sojourn, "phone7")
    try:
        token = enrol(lab, device).encode()
        known = device_id(lab, "phone7")
        for number in (signal.SIGTERM, signal.SIGINT):
            stages = Stages(lab.port, known, token)
            peers = stages.open_all()
            good = stages.known()
            check(good.ask(session_of(known, number)) == 0, "a session is refused")
            lab.stop(number)
            check(lab.process.returncode == 0, f"ended with {lab.process.returncode}")
            for peer in (*peers, good):
                check(peer.is_hung_up(), "a connection outlives the collector")
                peer.socket.close()
            check_sound(lab.database)
            lab.start()
            kept = bytes([number] * 16).hex()
            check(lab.sql(f"SELECT 1 FROM sessions WHERE uuid = x'{kept}'") != [],
                  "what was acknowledged is gone")
        lab.stop()
    finally:
        if lab.process.poll() is None:
            lab.process.kill()
            lab.process.wait()


def record(sojourn, url):
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    done = subprocess.run(
        [sojourn.program, "record", "-q", "--collector", url, "--wait", str(PATIENCE_S), "--",
         os.path.join(build, "tests/samples/ends"), "return"],
        env=sojourn.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    check("sojourn:" not in done.stderr, f"record: {done.stderr}")


@contextlib.contextmanager
def plain_collector(sojourn, name, url, prefix=(), **environment):
    database = sojourn.path(name + ".db")
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    with open(sojourn.path(name + ".log"), "wb") as log:
        server = subprocess.Popen([*prefix, os.path.join(build, "bin/sojournd"), "--listen", url,
                                   "--database", database], env=dict(os.environ, **environment), stderr=log)
    try:
        wait_for("the collector", lambda: os.path.exists(database))
        yield database
    finally:
        server.terminate()
        server.wait(PATIENCE_S)
    check(server.returncode == 0, f"the collector ended with {server.returncode}")


def a_clock_jumps(sojourn):
    """The collector's clock is set forward and back by more than a year. No timeout of a connection depends on it,
    an open connection stays, and new ones are served."""
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    preload = os.path.join(build, "tests/samples/libshifted_clock.so")
    for shift in SHIFTS_S:
        port, setting = free_port(), sojourn.path(f"jump{shift}")
        url = f"tcp://127.0.0.1:{port}"
        with plain_collector(sojourn, f"clock{shift}", url, LD_PRELOAD=preload, SHIFT_S=str(shift),
                             SHIFT_FILE=setting) as database:
            wait_for("the port", lambda p=port: socket.socket().connect_ex(("127.0.0.1", p)) == 0)
            with Peer(("127.0.0.1", port)) as known, Peer(("127.0.0.1", port)) as stranger:
                check(known.ask(hello(b"\4" * 16)) == 0, "refused")
                check(stranger.ask(frame(PING)) == 0, "no answer")
                with open(setting, "w", encoding="utf-8"):
                    pass
                check(known.ask(session_of(b"\4" * 16, 9)) == 0, "an open connection was lost")
                check(stranger.ask(frame(PING)) == 0, "a stranger was timed out by the clock")
                record(sojourn, url)
                check(known.ask(frame(PING)) == 0, "an open connection was lost")
            rows = sojourn.sql(database, "SELECT stored_calls FROM sessions WHERE sent_calls > 0")
            check([row["stored_calls"] for row in rows] == [1003], f"not the session: {rows}")


def ipv6(sojourn):
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
            port = probe.getsockname()[1]
    except OSError:
        print("this machine has no IPv6")
        return
    url = f"tcp://[::1]:{port}"
    with plain_collector(sojourn, "six", url) as database:
        wait_for("the port", lambda: socket.socket(socket.AF_INET6).connect_ex(("::1", port)) == 0)
        crowd = [socket.create_connection(("::1", port)) for _ in range(200)]
        record(sojourn, url)
        for peer in crowd:
            peer.close()
        check_accounts(sojourn, database)
        check(len(sojourn.sql(database, "SELECT 1 FROM sessions")) == 1, "no session over IPv6")


def devices_keep_names_and_sessions_keep_paths(sojourn):
    """The collector requires no token on loopback addresses, with or without TLS. A recording that a user makes
    there does not rename the enrolled device. A module has in each session the path that it has there."""
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    port, device = free_port(), Device(sojourn, "shelf3")
    lab = Collector(sojourn, "--listen", f"tcp://127.0.0.1:{port}", host="127.0.0.1")
    paths = [sojourn.path(name) for name in ("one", "other")]
    try:
        enrol(lab, device)
        for path in paths:
            shutil.copy(os.path.join(build, "tests/samples/ends"), path)
            done = subprocess.run(
                [sojourn.program, "record", "-q", "--collector", f"tcp://127.0.0.1:{port}", "--wait",
                 "60", "--", path, "return"], env=device.environment, capture_output=True, text=True,
                timeout=PATIENCE_S, check=False)
            check("sojourn:" not in done.stderr, f"record: {done.stderr}")
        names = [row["name"] for row in lab.sql("SELECT name FROM devices")]
        check("shelf3" in names, f"renamed: {names}")
        told = lab.sql("SELECT coalesce(s.path, m.path) AS path FROM session_modules AS s JOIN modules "
                       "AS m USING (module_id) ORDER BY session_id")
        for path in paths:
            check(any(row["path"] == path for row in told), f"no module {path}: {told}")
    finally:
        lab.stop()


def descriptors_run_out(sojourn):
    """There are more silent connections than the collector has descriptors. A recorder connects meanwhile, and
    afterwards all descriptors are free again."""
    port = free_port()
    url = f"tcp://127.0.0.1:{port}"
    mine = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (mine[1], mine[1]))
    wanted = min(20000 if os.environ.get("SJ_LONG") else 3000, mine[1] - 200)
    with plain_collector(sojourn, "few", url, prefix=["prlimit", "--nofile=1024:1024"]) as database:
        wait_for("the port", lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
        crowd = [socket.create_connection(("127.0.0.1", port), PATIENCE_S) for _ in range(wanted)]
        record(sojourn, url)
        with Peer(("127.0.0.1", port)) as peer:
            check(peer.ask(frame(PING)) == 0, "the collector no longer answers")
        for peer in crowd:
            peer.close()
        check_accounts(sojourn, database)
        check(len(sojourn.sql(database, "SELECT 1 FROM sessions")) == 1, "not the session")
    print(f"{wanted} silent connections at a limit of 1,024 descriptors")


def test(sojourn, _arguments):
    the_collector_stops_with_peers_at_all_stages(sojourn)
    devices_keep_names_and_sessions_keep_paths(sojourn)
    descriptors_run_out(sojourn)
    a_clock_jumps(sojourn)
    ipv6(sojourn)


if __name__ == "__main__":
    main(test)
