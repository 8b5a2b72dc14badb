#!/usr/bin/env python3
"""A collector ends connections right after their handshake, as a collector that is killed at that moment does. The
device reconnects each time, and runs commands once the collector works.

fleet_redial.py BUILD_FOLDER
"""
import os
import random
import socket
import ssl
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import Device, Collector, enrol
from sojourn_testing import check, main, wait_for

# In most runs, one of this many connections got stuck for ever with NNG alone. The device notices it and makes a new
# connection.
CONNECTIONS = 24
# The device waits 100 to 103 s for an answer after two connections that stayed silent (dial.c).
LONGEST_SILENCE_S = "240"
GREETING = b"\0SP\0\0\x31\0\0"


class RudeCollector(threading.Thread):
    """Has the collector's address and certificate, and ends connections at once."""

    def __init__(self, collector):
        super().__init__(daemon=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(collector.database + ".tls/certificate.pem",
                                     collector.database + ".tls/key.pem")
        self.listener = socket.create_server(("127.0.0.1", collector.port), backlog=64)
        self.listener.settimeout(1)
        self.dice = random.Random(7)
        self.count = 0
        self.stop = False
        self.start()

    def run(self):
        while not self.stop:
            try:
                peer, _ = self.listener.accept()
                peer.settimeout(5)
                with self.context.wrap_socket(peer, server_side=True) as greeted:
                    greeted.sendall(GREETING)
                    greeted.recv(len(GREETING))
                    self.count += 1
                    time.sleep(self.dice.choice([0, 0.003]) * self.dice.random())
            except OSError:
                continue

    def end(self):
        self.stop = True
        self.listener.shutdown(socket.SHUT_RDWR)
        self.join()
        self.listener.close()


def ends_at_once(collector, device):
    """A device that is asked to end while its collector is silent sends no more requests. Each request would be one
    more connection, and take 5 s."""
    collector.stop()
    with socket.create_server(("127.0.0.1", collector.port), backlog=64) as silent:
        silent.settimeout(60)
        os.utime(os.path.join(device.state, "sojourn/device/collector.json"))  # this makes the daemon connect again
        held = [silent.accept()[0], silent.accept()[0]]
        device.stop()
        silent.setblocking(False)
        try:
            while True:
                held.append(silent.accept()[0])
        except BlockingIOError:
            pass
        check(len(held) < 6, f"{len(held)} connections")
        for peer in held:
            peer.close()


def test(sojourn, _arguments):
    collector = Collector(sojourn)
    device = Device(sojourn, "phone7")
    try:
        enrol(collector, device)
        device.start()
        check(collector.ask(device.name, "status")["recording"] == 0, "it records already")
        collector.stop()
        rude = RudeCollector(collector)
        wait_for(f"{CONNECTIONS} connections", lambda: rude.count >= CONNECTIONS)
        rude.end()
        collector.start()
        check(collector.ask("--timeout", LONGEST_SILENCE_S, device.name, "status")["recording"] == 0, "it records")
        ends = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests/samples/ends")
        collector.ask(device.name, "launch", ends, "return")
        wait_for("the session", lambda: collector.sql(
            "SELECT 1 AS n FROM sessions WHERE state = 'completed' AND stored_calls = 1003"))
        ends_at_once(collector, device)
    finally:
        for party in (device, collector):
            if party.process is not None and party.process.poll() is None:
                party.process.kill()
                party.process.wait()


main(test)
