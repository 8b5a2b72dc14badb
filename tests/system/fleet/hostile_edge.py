#!/usr/bin/env python3
"""Everything that a peer with a socket can do to the collector, at once, with good senders beside it:
answers never read, frames of strangers by the thousand, half handshakes, drips, resets at every
byte, guessed tokens, slow HTTP. Afterwards the accounts are exact, descriptors and memory are back,
and SIGTERM ends the collector.

hostile_edge.py BUILD_FOLDER [SEED]: seconds, an hour with SJ_LONG=1.
"""
import json
import os
import random
import signal
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import Collector, Device, enrol, free_port, wait_for
from sojourn_testing import check, check_accounts, main

SECONDS = 3600 if os.environ.get("SJ_LONG") else 20
ATTACKERS = 6
MEMORY_KB = 64 * 1024
HELLO, SESSION, BLOCK, ENROL, POLL, RESULT, FETCH, PING = 1, 2, 7, 32, 34, 36, 37, 129
GREETING = b"\0SP\0\0\x30\0\0"


def make_crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = make_crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def frame(kind, header=b"", payload=b""):
    head = struct.pack("<4sBBHII", b"SJF1", 1, 0, kind, len(header), len(payload))
    return head + struct.pack("<I", crc32c(head + header + payload)) + header + payload


def field(number, data):
    size = len(data)
    length = b""
    while size >= 128:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def message(body, request=1, ipc=False):
    return (b"\1" if ipc else b"") + struct.pack(">QI", len(body) + 4, 1 << 31 | request) + body


GUESS = "%064x"
PINGS = b"".join(message(frame(PING), i + 1) for i in range(40))
TAGS = message(frame(ENROL, field(1, b"\7" * 16) + field(3, b"x") + b"\x4a\0" * 30000))
ENROLS = [message(frame(ENROL, field(1, os.urandom(16)) + field(3, GUESS.encode() % i)), i + 1)
          for i in range(40)]
BIG_ENROL = message(frame(ENROL, field(1, b"\7" * 16) + field(3, b"y" * 60000)))


class Attack:
    """Where to, how many of which kind, and the dice."""

    def __init__(self, lab, clear_port, ipc, http_port, seed):
        self.tls_port, self.clear_port, self.ipc, self.http_port = lab.port, clear_port, ipc, http_port
        self.device_id = b""
        self.dice = random.Random(seed)
        self.done = threading.Event()
        self.counts = {}
        self.lock = threading.Lock()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE

    def connect(self, where):
        if where == "ipc":
            peer = socket.socket(socket.AF_UNIX)
            peer.settimeout(3)
            peer.connect(self.ipc)
            return peer
        peer = socket.create_connection(
            ("127.0.0.1", {"tcp": self.clear_port, "http": self.http_port}.get(where, self.tls_port)), 3)
        if where == "tls":
            peer = self.context.wrap_socket(peer)
        return peer

    def say(self, where, data, wait=0.0, reset=False):
        """Greets, says something, reads nothing."""
        with self.connect(where) as peer:
            peer.sendall(GREETING + data)
            self.done.wait(wait)
            if reset:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def unread_answers(self):
        where = self.dice.choice(["tcp", "tls", "ipc"])
        data = PINGS if where != "ipc" else message(frame(PING), 1, True) * 40
        self.say(where, data, 0, self.dice.random() < 0.5)

    def enrolments(self):
        self.say(self.dice.choice(["tcp", "tls"]),
                 self.dice.choice([TAGS, BIG_ENROL, b"".join(ENROLS)]), 0.02)

    def guessed_tokens(self):
        shown = field(1, self.device_id)
        kind = self.dice.choice([HELLO, POLL, RESULT, FETCH])
        token = field(3 if kind == HELLO else 2, GUESS.encode() % self.dice.getrandbits(200))
        self.say("tls", b"".join(message(frame(kind, shown + token), i + 1) for i in range(8)), 0.02)

    def says_nothing(self):
        peers = [self.connect(self.dice.choice(["tcp", "raw", "ipc"])) for _ in range(40)]
        self.done.wait(0.2)
        for peer in peers:
            peer.close()

    def cleartext_for_tls(self):
        with self.connect("raw") as peer:
            peer.sendall(self.dice.choice([GREETING + PINGS, b"GET / HTTP/1.1\r\n\r\n",
                                           b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                                           os.urandom(4096)]))

    def nonsense(self):
        data = self.dice.choice([
            os.urandom(500), b"\0SP\1\0\x30\0\0", b"\0SP\0\0\x31\0\0",
            GREETING + b"\x7f" + b"\xff" * 7, GREETING + struct.pack(">Q", 3),
            GREETING + struct.pack(">QI", 4096, 0) + os.urandom(4092),
            GREETING + message(os.urandom(3000)),
            GREETING + struct.pack(">QI", 8 << 20, 1 << 31 | 1) + b"\0" * 70000])
        with self.connect(self.dice.choice(["tcp", "tls", "ipc"])) as peer:
            peer.sendall(data)
            self.done.wait(0.01)

    def reset_at_a_byte(self):
        whole = GREETING + message(frame(HELLO, field(1, b"\7" * 16) + field(2, b"nobody"))) + PINGS
        with self.connect("tcp") as peer:
            peer.sendall(whole[:self.dice.randrange(len(whole))])
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def drip(self):
        with self.connect(self.dice.choice(["tcp", "tls"])) as peer:
            for byte in GREETING + PINGS:
                peer.sendall(bytes([byte]))
                if self.done.wait(0.02) or self.dice.random() < 0.02:
                    return

    def foreign_frames(self):
        """Where every frame of a known device's would be welcome: without its token."""
        lies = [message(frame(SESSION, field(1, b"\x11" * 16) + field(2, self.device_id))),
                message(frame(BLOCK, b"", os.urandom(1000))), message(frame(BLOCK, b"", b"\0" * 200000))]
        self.say(self.dice.choice(["tcp", "tls"]), self.dice.choice(lies) * 3, 0.02)

    def slow_http(self):
        peers = [self.connect("http") for _ in range(30)]
        for peer in peers:
            peer.sendall(b"GET /api/v1/devices HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        self.done.wait(0.5)
        for peer in peers:
            peer.close()

    def run(self):
        kinds = [self.unread_answers, self.enrolments, self.guessed_tokens, self.says_nothing,
                 self.cleartext_for_tls, self.nonsense, self.reset_at_a_byte, self.drip,
                 self.foreign_frames, self.slow_http]
        while not self.done.is_set():
            kind = self.dice.choice(kinds)
            try:
                kind()
            except OSError:  # hung up on, as it should be
                pass
            with self.lock:
                self.counts[kind.__name__] = self.counts.get(kind.__name__, 0) + 1


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident_kb(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))


def health(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=30) as answer:
        return answer.status


def good_sender(lab, device, attack, sent):
    """Sessions one after the other, each of which the collector must have whole."""
    while not attack.done.is_set():
        sent.append(lab.ask(device.name, "launch", "ends")["session"])
        wait_for("the session is whole", lambda: lab.sql(
            "SELECT 1 FROM sessions WHERE sent_calls IS NOT NULL AND "
            f"lower(hex(uuid)) = '{sent[-1]}'"), 60)


def storm(lab, device, attack):
    """The attackers and the sender, until the time is over; the largest memory seen."""
    sent = []
    failures = []

    def send():
        try:
            good_sender(lab, device, attack, sent)
        except Exception as failure:  # told by the main thread
            failures.append(failure)

    threads = [threading.Thread(target=attack.run) for _ in range(ATTACKERS)]
    threads.append(threading.Thread(target=send))
    end = time.monotonic() + SECONDS
    largest = 0
    for thread in threads:
        thread.start()
    try:
        while time.monotonic() < end and not failures:
            largest = max(largest, resident_kb(lab.process.pid))
            check(health(attack.http_port) == 200, "no health while under attack")
            attack.done.wait(0.25)
    finally:
        attack.done.set()
        for thread in threads:
            thread.join()
    check(not failures, f"the good sender: {failures}")
    return sent, largest


def check_contents(sojourn, lab, sent):
    rows = lab.sql("SELECT lower(hex(uuid)) AS uuid, state, stored_calls FROM sessions")
    check(sorted(row["uuid"] for row in rows) == sorted(sent), f"other sessions than were sent: {rows}")
    check(all(row["stored_calls"] == 1003 and row["state"] == "completed" for row in rows),
          f"not their calls: {rows}")
    check_accounts(sojourn, lab.database)
    check(len(lab.sql("SELECT 1 FROM devices")) == 1, "a stranger has made a device")
    check(lab.sql("SELECT count(*) AS n FROM token_events")[0]["n"] == 1, "somebody was let in")


def test(sojourn, arguments):
    seed = int(arguments[0]) if arguments else random.randrange(1 << 30)
    print(f"seed {seed}")
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    clear, http, ipc = free_port(), free_port(), sojourn.path("edge.ipc")
    lab = Collector(sojourn, "--listen", f"tcp://127.0.0.1:{clear}", "--listen", f"ipc://{ipc}",
              "--http", f"127.0.0.1:{http}")
    device = Device(sojourn, "phone7")
    try:
        enrol(lab, device)
        with open(os.path.join(device.state, "sojourn/device/apps.json"), "w", encoding="utf-8") as file:
            json.dump({"apps": [{"name": "ends", "command": [
                os.path.join(build, "tests/samples/ends"), "return"]}]}, file)
        device.start()
        attack = Attack(lab, clear, ipc, http, seed)
        attack.device_id = bytes.fromhex(lab.sql("SELECT hex(uuid) AS u FROM devices")[0]["u"])
        first = lab.ask(device.name, "launch", "ends")["session"]
        wait_for("the first session", lambda: lab.sql(
            "SELECT 1 FROM sessions WHERE sent_calls IS NOT NULL"))
        health(http)
        before, resident = descriptors(lab.process.pid), resident_kb(lab.process.pid)
        sent, largest = storm(lab, device, attack)
        print(f"{len(sent)} good sessions beside {sum(attack.counts.values())} attacks {attack.counts}")
        print(f"descriptors {before} before, {descriptors(lab.process.pid)} after; memory {resident} kB "
              f"before, {largest} at most")
        if not os.environ.get("SJ_SANITIZED"):
            check(largest <= resident + MEMORY_KB, f"memory rose from {resident} to {largest} kB")
        wait_for("descriptors are back", lambda: descriptors(lab.process.pid) <= before + 4, 60)
        check_contents(sojourn, lab, [first, *sent])
        device.stop()
        lab.stop(signal.SIGTERM)
        check(lab.process.returncode == 0, f"the collector ended with {lab.process.returncode}")
    finally:
        for party in (device, lab):
            if party.process is not None and party.process.poll() is None:
                party.process.kill()
                party.process.wait()


if __name__ == "__main__":
    main(test)
