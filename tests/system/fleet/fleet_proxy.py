#!/usr/bin/env python3
"""A proxy between recorder and collector delays, throttles, cuts, resets and half-opens connections. Everything
arrives once.

fleet_proxy.py BUILD_FOLDER
"""
import os
import random
import select
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import free_port, accepts_connections
from sojourn_testing import PATIENCE_S, check, check_accounts, main, wait_for

PIECE = 16384


class Proxy:
    """Forwards one port to another, and disturbs connections as `fault` says."""

    def __init__(self, target):
        self.target = target
        self.fault = "none"
        self.counts = {}
        self.dice = random.Random(7)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def note(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def serve(self, client):
        if self.fault == "half-open":
            self.note("half-open")
            time.sleep(0.5)
            self.end(client, False)
            return
        try:
            server = socket.create_connection(("127.0.0.1", self.target), timeout=PATIENCE_S)
        except OSError:
            client.close()
            return
        try:
            self.forward(client, server)
        except OSError:
            pass
        finally:
            self.end(client, self.fault == "reset")
            self.end(server, self.fault == "reset")

    def forward(self, client, server):
        passed = 0
        limit = self.dice.randrange(2000, 60000)
        while True:
            ready, _, _ = select.select([client, server], [], [], 0.2)
            for source in ready:
                data = source.recv(PIECE if self.fault != "throttle" else 700)
                if not data:
                    return
                if self.fault == "delay":
                    self.note("delay")
                    time.sleep(0.02)
                if self.fault == "throttle":
                    self.note("throttle")
                    time.sleep(0.003)
                (server if source is client else client).sendall(data)
                passed += len(data)
            if self.fault in ("cut", "reset") and passed > limit:
                self.note(self.fault)
                return
            if self.fault == "half-open":
                self.note("half-open")
                time.sleep(0.5)
                return

    @staticmethod
    def end(end, reset):
        if reset:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.close()


def more_calls(sojourn, database, least):
    stored = sojourn.sql(database, "SELECT coalesce(sum(stored_calls), 0) AS n FROM sessions")[0]["n"]
    return stored if stored > least else 0


def test(sojourn, _arguments):
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    ends = os.path.join(build, "tests/samples/ends")
    port = free_port()
    database = sojourn.path("lab.db")
    server = subprocess.Popen(
        [os.path.join(build, "bin/sojournd"), "--listen", f"tcp://127.0.0.1:{port}", "--database",
         database], stderr=subprocess.DEVNULL)
    proxy = Proxy(port)
    recorder = None
    try:
        wait_for("the collector", lambda: accepts_connections(port))
        recorder = subprocess.Popen(
            [sojourn.program, "record", "-q", "--collector", f"tcp://127.0.0.1:{proxy.port}",
             "--wait", str(PATIENCE_S), "--", ends, "wait"], env=sojourn.environment,
            stdout=subprocess.DEVNULL)
        stored = 0
        for fault in ("delay", "throttle", "cut", "reset", "half-open"):
            proxy.fault = "none"
            stored = wait_for("more calls", lambda least=stored: more_calls(sojourn, database, least))
            proxy.fault = fault
            wait_for(fault, lambda name=fault: proxy.counts.get(name, 0) > 1)
        proxy.fault = "none"
        recorder.terminate()
        recorder.wait(PATIENCE_S)
        spool = os.path.join(sojourn.folder, "state/sojourn/spool")
        check(os.listdir(spool) == [], f"not everything was delivered: {os.listdir(spool)}")
        check_accounts(sojourn, database)
        twice = sojourn.sql(database, "SELECT 1 FROM blocks GROUP BY stream_id, kind, first_event "
                                      "HAVING count(*) > 1")
        check(twice == [], "blocks are stored twice")
        check(sojourn.sql(database, "SELECT stored_calls AS n FROM sessions")[0]["n"] > 1000,
              "next to nothing was recorded")
    finally:
        if recorder is not None and recorder.poll() is None:
            recorder.kill()
        server.terminate()
        server.wait(PATIENCE_S)


main(test)
