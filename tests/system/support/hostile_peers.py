"""Speaks SP byte by byte, and simulates peers that attack a collector through its sockets. They do not read answers,
send thousands of frames of unknown devices, end handshakes in the middle, and send or read byte by byte. They reset
the connection at every byte, guess tokens and speak HTTP slowly. One device has a valid token and names sessions of
another device."""
import os
import random
import socket
import ssl
import struct
import threading

from sojourn_testing import PATIENCE_S

HELLO, SESSION, BLOCK, GAP, SESSION_END, DEVICE_CLOCK = 1, 2, 7, 9, 10, 13
ENROL, POLL, RESULT, FETCH, ACK, PING = 32, 34, 36, 37, 128, 129
GREETING = b"\0SP\0\0\x30\0\0"
PREFIX_BYTES = 20


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


def varint(value):
    data = b""
    while value >= 128:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def field(number, data):
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def count(number, value):
    return bytes([number << 3]) + varint(value)


def message(body, request=1, ipc=False):
    return (b"\1" if ipc else b"") + struct.pack(">QI", len(body) + 4, 1 << 31 | request) + body


GUESS = "%064x"
PINGS = b"".join(message(frame(PING), i + 1) for i in range(40))
TAGS = message(frame(ENROL, field(1, b"\7" * 16) + field(3, b"x") + b"\x4a\0" * 30000))
ENROLS = [message(frame(ENROL, field(1, os.urandom(16)) + field(3, GUESS.encode() % i)), i + 1)
          for i in range(40)]
BIG_ENROL = message(frame(ENROL, field(1, b"\7" * 16) + field(3, b"y" * 60000)))


def hello(device_id, token=b"", name=b"peer"):
    return frame(HELLO, field(1, device_id) + field(2, name) + (field(3, token) if token else b""))


def any_certificate():
    """Returns a TLS context that accepts every certificate, because attackers pin none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Peer:
    """One connection that sends a greeting and requests, and reads answers. `where` is a path, or host and port."""

    def __init__(self, where, tls=None, timeout=PATIENCE_S):
        self.is_ipc = isinstance(where, str)
        if self.is_ipc:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(where)
        else:
            self.socket = socket.create_connection(where, timeout)
            if tls is not None:
                self.socket = tls.wrap_socket(self.socket)
        self.requests = 0
        self.is_greeted = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def receive(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionResetError("hung up on")
            data += part
        return data

    def tell(self, body):
        """Sends a frame, and before the first frame the greeting."""
        self.requests += 1
        first = b"" if self.is_greeted else GREETING
        self.send(first + message(body, self.requests, self.is_ipc))
        self.is_greeted = True
        if first:
            self.receive(len(GREETING))

    def answer(self):
        """Returns the status of the next answer, or None if the answer is not an ACK."""
        size = struct.unpack(">Q", self.receive(8 + self.is_ipc)[self.is_ipc:])[0]
        body = self.receive(size)[4:]
        if struct.unpack("<H", body[6:8])[0] != ACK:
            return None
        header = body[PREFIX_BYTES:]
        return header[1] if header[:1] == b"\x08" else 0

    def ask(self, body):
        self.tell(body)
        return self.answer()

    def is_hung_up(self):
        """Reads until the other end has closed. Raises TimeoutError if it does not close."""
        try:
            while self.socket.recv(4096):
                pass
        except (ConnectionResetError, BrokenPipeError, ssl.SSLError):
            pass
        return True

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def lies_about(session, liar, victim, dice):
    """Makes frames in which a device names another device's session, or names itself as the other device."""
    own = field(1, session)
    return [frame(SESSION, own + field(2, liar) + field(3, b"stolen")),
            frame(SESSION, own + field(2, victim) + field(3, b"stolen")),
            frame(SESSION_END, own + field(2, b"killed") + count(6, 1 << 40)),
            frame(GAP, own + count(2, dice.randrange(1 << 30)) + count(4, 1) + count(5, 1) +
                  count(6, 10 ** 12)),
            frame(BLOCK, own + count(2, 1) + count(4, 10), dice.randbytes(300)),
            frame(DEVICE_CLOCK, field(1, victim) + field(2, b"boot") + count(3, 1) + count(5, 1))]


class Attack:
    """The target addresses, the count of each kind of attack, and the random numbers."""

    def __init__(self, tls_port, clear_port, ipc, http_port, seed):
        self.tls_port, self.clear_port, self.ipc, self.http_port = tls_port, clear_port, ipc, http_port
        self.victim = b""  # a device's id
        self.sessions = []  # its sessions, as hexadecimal digits
        self.insider = None  # id and token of another device
        self.believed = []  # false frames that the collector accepted
        self.dice = random.Random(seed)
        self.done = threading.Event()
        self.counts = {}
        self.lock = threading.Lock()
        self.context = any_certificate()
        self.threads = []

    def connect(self, where):
        if where == "ipc":
            return Peer(self.ipc, None, 3)
        port = {"tcp": self.clear_port, "http": self.http_port}.get(where, self.tls_port)
        return Peer(("127.0.0.1", port), self.context if where == "tls" else None, 3)

    def say(self, where, data, wait=0.0, reset=False):
        """Sends a greeting and data, and reads nothing."""
        with self.connect(where) as peer:
            peer.send(GREETING + data)
            self.done.wait(wait)
            if reset:
                peer.reset()

    def unread_answers(self):
        where = self.dice.choice(["tcp", "tls", "ipc"])
        data = PINGS if where != "ipc" else message(frame(PING), 1, True) * 40
        self.say(where, data, 0, self.dice.random() < 0.5)

    def enrolments(self):
        self.say(self.dice.choice(["tcp", "tls"]),
                 self.dice.choice([TAGS, BIG_ENROL, b"".join(ENROLS)]), 0.02)

    def guessed_tokens(self):
        shown = field(1, self.victim)
        kind = self.dice.choice([HELLO, POLL, RESULT, FETCH])
        token = field(3 if kind == HELLO else 2, GUESS.encode() % self.dice.getrandbits(200))
        self.say("tls", b"".join(message(frame(kind, shown + token), i + 1) for i in range(8)), 0.02)

    def says_nothing(self):
        peers = [self.connect(self.dice.choice(["tcp", "raw", "ipc"])) for _ in range(40)]
        self.done.wait(0.2)
        for peer in peers:
            peer.socket.close()

    def cleartext_for_tls(self):
        with self.connect("raw") as peer:
            peer.send(self.dice.choice([GREETING + PINGS, b"GET / HTTP/1.1\r\n\r\n",
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
            peer.send(data)
            self.done.wait(0.01)

    def reset_at_a_byte(self):
        whole = GREETING + message(hello(b"\7" * 16, b"", b"nobody")) + PINGS
        with self.connect("tcp") as peer:
            peer.send(whole[:self.dice.randrange(len(whole))])
            peer.reset()

    def drip(self):
        """Sends and reads byte by byte."""
        with self.connect(self.dice.choice(["tcp", "tls"])) as peer:
            for byte in GREETING + PINGS:
                peer.send(bytes([byte]))
                if self.done.wait(0.02) or self.dice.random() < 0.02:
                    return
                if self.dice.random() < 0.3:
                    peer.receive(1)

    def half_open(self):
        with self.connect("tcp") as peer:
            peer.send(GREETING + PINGS[:self.dice.randrange(len(PINGS))])
            peer.socket.shutdown(self.dice.choice([socket.SHUT_WR, socket.SHUT_RD]))
            self.done.wait(0.1)

    def foreign_frames(self):
        """Sends frames of a known device, but without its token."""
        lies = [message(frame(SESSION, field(1, b"\x11" * 16) + field(2, self.victim))),
                message(frame(BLOCK, b"", os.urandom(1000))), message(frame(BLOCK, b"", b"\0" * 200000))]
        self.say(self.dice.choice(["tcp", "tls"]), self.dice.choice(lies) * 3, 0.02)

    def insiders(self):
        """Sends frames about sessions of another device, with its own token. The collector must refuse each frame."""
        if self.insider is None or not self.sessions:
            return
        session = bytes.fromhex(self.dice.choice(self.sessions))
        with self.connect("tls") as peer:
            if peer.ask(hello(*self.insider)) != 0:
                return
            for lie in lies_about(session, self.insider[0], self.victim, self.dice):
                if peer.ask(lie) == 0:
                    self.believed.append(lie)

    def slow_http(self):
        peers = [self.connect("http") for _ in range(30)]
        for peer in peers:
            peer.send(b"GET /api/v1/devices HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        self.done.wait(0.5)
        for peer in peers:
            peer.socket.close()

    def run(self):
        kinds = [self.unread_answers, self.enrolments, self.guessed_tokens, self.says_nothing,
                 self.cleartext_for_tls, self.nonsense, self.reset_at_a_byte, self.drip,
                 self.half_open, self.foreign_frames, self.insiders, self.slow_http]
        while not self.done.is_set():
            kind = self.dice.choice(kinds)
            try:
                kind()
            except OSError:  # the collector closed the connection, as it should, or is down
                self.done.wait(0.01)
            with self.lock:
                self.counts[kind.__name__] = self.counts.get(kind.__name__, 0) + 1

    def start(self, attackers):
        self.threads = [threading.Thread(target=self.run) for _ in range(attackers)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.done.set()
        for thread in self.threads:
            thread.join()
