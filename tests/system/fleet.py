#!/usr/bin/env python3
"""A device enrols over TLS, works on commands, records while the lab is away, and is thrown out.

fleet.py BUILD_FOLDER
"""
import json
import os
import signal
import socket
import struct
import subprocess
import time

from sojourn_testing import check, check_accounts, main


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(what, condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    check(False, f"waited in vain: {what}")


class Lab:
    """A lab server that wants tokens, on a TLS address that every machine could reach."""

    def __init__(self, sojourn, *options):
        self.sojourn = sojourn
        self.options = options
        self.database = sojourn.path("lab.db")
        self.port = free_port()
        self.url = f"tls+tcp://127.0.0.1:{self.port}"
        self.log = open(sojourn.path("lab.log"), "ab")
        self.process = None
        self.start()

    def start(self):
        program = os.path.join(os.path.dirname(self.sojourn.program), "sojournd")
        self.process = subprocess.Popen(
            [program, "--listen", f"tls+tcp://0.0.0.0:{self.port}", "--database", self.database,
             *self.options],
            stderr=self.log)
        wait_for("the lab's certificate", lambda: os.path.exists(self.database + ".tls"))
        wait_for("the lab's port", self.is_open)

    def is_open(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(30)

    def device(self, *words, code=0):
        done = self.sojourn.run(["device", "--database", self.database, *words],
                                capture_output=True, text=True, timeout=150)
        check(done.returncode == code, f"device {words}: {done.returncode} {done.stderr}")
        return done

    def ask(self, *words):
        return json.loads(self.device(*words).stdout)

    def sql(self, query):
        return self.sojourn.sql(self.database, query)


class Device:
    """One device: a state directory of its own and, mostly, its daemon."""

    def __init__(self, sojourn, name):
        self.program = os.path.join(os.path.dirname(sojourn.program), "sojourn-device")
        self.name = name
        self.state = sojourn.path(name)
        runtime = sojourn.path(name + "-run")
        os.makedirs(runtime, mode=0o700)
        self.environment = dict(sojourn.environment, XDG_STATE_HOME=self.state,
                                XDG_RUNTIME_DIR=runtime)
        self.runtime = runtime
        self.log_path = sojourn.path(name + ".log")
        self.log = open(self.log_path, "ab")
        self.process = None

    def run(self, *words):
        return subprocess.run([self.program, *words], env=self.environment, capture_output=True,
                              text=True, timeout=60)

    def start(self, *options):
        self.process = subprocess.Popen([self.program, "run", *options], env=self.environment,
                                        stderr=self.log)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(30)

    def spool(self):
        folder = os.path.join(self.state, "sojourn/device/spool")
        return os.listdir(folder) if os.path.isdir(folder) else []


def enrol(lab, device, *options):
    invitation = lab.sojourn.path(device.name + ".invitation")
    lab.device("--lab", lab.url, "invite", invitation)
    check(os.stat(invitation).st_mode & 0o77 == 0, "others can read the invitation")
    done = device.run("enroll", "--token-file", invitation, "--name", device.name, *options)
    check(done.returncode == 0, f"enroll: {done.stderr}")
    kept = os.path.join(device.state, "sojourn/device/lab.json")
    check(os.stat(kept).st_mode & 0o77 == 0, "others can read the token")
    with open(kept, encoding="utf-8") as file:
        token = json.load(file)["token"]
    again = device.run("enroll", "--token-file", invitation)
    check(again.returncode != 0 and "used or expired" in again.stderr, "an invitation held twice")
    return token


def finished_sessions(lab, count):
    rows = lab.sql("SELECT state FROM sessions WHERE sent_calls IS NOT NULL")
    return rows if len(rows) >= count else None


def check_secrets(lab, device, token):
    """The token is in the device's own file and nowhere else."""
    hits = lab.sql(f"SELECT count(*) AS n FROM device_tokens WHERE instr(hex(token_hash), "
                   f"upper('{token}')) > 0")[0]["n"]
    check(hits == 0, "the lab keeps the token itself")
    for path in (device.log_path, lab.sojourn.path("lab.log"), lab.database,
                 lab.database + "-wal"):
        if os.path.exists(path):
            with open(path, "rb") as file:
                check(token.encode() not in file.read(), f"the token is in {path}")
    with open(f"/proc/{device.process.pid}/cmdline", "rb") as file:
        check(token.encode() not in file.read(), "the token is on the command line")


def commands(lab, device, ends):
    check(lab.ask(device.name, "status")["recording"] == 0, "it records already")
    check(lab.ask(device.name, "apps")[0]["name"] == "ends", "the catalogue is not told")
    check(any(row["pid"] == device.process.pid for row in lab.ask(device.name, "ps")),
          "ps does not list the daemon")
    checks = {row["check"]: row["ok"] for row in lab.ask(device.name, "doctor")}
    check(checks["enrolment"] and checks["certificate"] and checks["agent"], f"doctor: {checks}")
    session = lab.ask("--name", "cold", device.name, "launch", "ends")["session"]
    wait_for("the session", lambda: finished_sessions(lab, 1))
    row = lab.sql("SELECT lower(hex(uuid)) AS uuid, name, state, stored_calls FROM sessions")[0]
    check(row["uuid"] == session and row["name"] == "cold", f"another session came: {row}")
    check(row["state"] == "completed" and row["stored_calls"] == 1003, f"not its calls: {row}")
    check(os.path.exists(os.path.join(device.state, "prepared")), "it was not prepared")
    lab.device(device.name, "launch", "/nowhere/program", code=1)
    lab.device(device.name, "launch", "unknown-app", code=1)
    lab.device(device.name, "stop", "ffff", code=1)
    lab.device("nobody", "status", code=3)
    running = lab.ask(device.name, "launch", ends, "wait")["session"]
    check(any(row["session"] == running and row["recording"]
              for row in lab.ask(device.name, "sessions")), "the session is not listed")
    check(lab.ask(device.name, "stop", running[:8])["stopped"] == [running], "it was not stopped")
    wait_for("the stopped session", lambda: finished_sessions(lab, 2))
    audit = lab.sql("SELECT kind, state, requested_by FROM commands ORDER BY command_id")
    check([row["state"] for row in audit] ==
          ["done"] * 5 + ["failed"] * 3 + ["done"] * 3, f"the audit: {audit}")
    check(all(row["requested_by"] for row in audit), "nobody gave the command")


def offline(lab, device, ends):
    """The lab dies; daemon and recorder are killed; nothing but what was unread is missing."""
    session = lab.ask(device.name, "launch", ends, "wait")["session"]
    lab.stop(signal.SIGKILL)
    time.sleep(1.5)
    device.stop(signal.SIGKILL)
    claim = os.path.join(device.state, "sojourn/device/spool", session + ".to")
    with open(claim, encoding="utf-8") as file:
        recorder = int(file.read().split("\n")[2])
    children = subprocess.run(["pgrep", "-P", str(recorder)], capture_output=True, text=True,
                              check=True).stdout.split()
    os.kill(recorder, signal.SIGKILL)
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    device.start()
    time.sleep(1)
    check(device.spool(), "the spool was emptied without a lab")
    lab.start()
    wait_for("the salvaged session", lambda: finished_sessions(lab, 3), 60)
    row = lab.sql(f"SELECT state, stored_calls FROM sessions WHERE lower(hex(uuid)) = '{session}'")
    check(row[0]["state"] == "lost" and row[0]["stored_calls"] > 100, f"salvaged: {row}")
    wait_for("an empty spool", lambda: not device.spool())
    folder = os.path.join(device.runtime, "sojourn")
    check(os.listdir(folder) == [], "a runtime directory was left")
    twice = lab.sql("SELECT stream_id, kind, first_event FROM blocks "
                    "GROUP BY stream_id, kind, first_event HAVING count(*) > 1")
    check(twice == [], f"stored twice: {twice}")


def broken_handshakes(lab):
    """Noise, and handshakes that end in the middle: the listener is there for the next one."""
    for number in range(20):
        with socket.socket() as peer:
            peer.connect(("127.0.0.1", lab.port))
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.sendall(os.urandom(64) if number % 2 else
                         b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")


def strangers(lab, device):
    """A lab with another certificate is not spoken to; a revoked token opens nothing."""
    broken_handshakes(lab)
    thief = Device(lab.sojourn, "thief")
    fake = lab.sojourn.path("fake.invitation")
    own = lab.sojourn.path("own.invitation")
    lab.device("--lab", lab.url, "invite", own)
    other = lab.sojourn.path("other.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj",
                    "/CN=sojourn-lab", "-days", "2", "-keyout", "/dev/null", "-out", other],
                   check=True, capture_output=True)
    with open(own, encoding="utf-8") as file, open(other, encoding="utf-8") as wrong:
        invitation = json.load(file)
        invitation["certificate"] = wrong.read()
    with open(fake, "w", encoding="utf-8") as file:
        json.dump(invitation, file)
    done = thief.run("enroll", "--token-file", fake)
    check(done.returncode != 0, "a lab with a wrong certificate was trusted")
    done = thief.run("run")
    check(done.returncode != 0 and "not enrolled" in done.stderr, "it ran without enrolment")
    with open(fake, "w", encoding="utf-8") as file:
        invitation["certificate"] = json.load(open(own, encoding="utf-8"))["certificate"]
        invitation["token"] = "0" * 64
        json.dump(invitation, file)
    done = thief.run("enroll", "--token-file", fake)
    check("unknown, used or expired" in done.stderr, f"a guessed token: {done.stderr}")
    with open(fake, "w", encoding="utf-8") as file:
        invitation["token"] = json.load(open(own, encoding="utf-8"))["token"]
        json.dump(invitation, file)
    done = thief.run("enroll", "--token-file", fake)
    check(done.returncode == 0, f"a good invitation after broken handshakes: {done.stderr}")
    lab.device(device.name, "revoke")
    lab.device("--timeout", "3", device.name, "status", code=1)
    wait_for("the refusal in the log",
             lambda: "the lab refuses" in open(device.log_path, encoding="utf-8").read())


def test(sojourn, _arguments):
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    ends = os.path.join(build, "tests/samples/ends")
    lab = Lab(sojourn)
    device = Device(sojourn, "phone7")
    try:
        token = enrol(lab, device)
        with open(os.path.join(device.state, "sojourn/device/apps.json"), "w",
                  encoding="utf-8") as file:
            json.dump({"apps": [{"name": "ends", "command": [ends, "return"],
                                 "directory": device.state,
                                 "prepare": [["/usr/bin/touch", "prepared"]]}]}, file)
        device.start()
        commands(lab, device, ends)
        check_secrets(lab, device, token)
        offline(lab, device, ends)
        strangers(lab, device)
        enrolled = {row["name"]: row["enrolled"] for row in json.loads(
            sojourn.run(["devices", "--json", lab.database], capture_output=True,
                        text=True).stdout)}
        check(enrolled.pop(device.name) == "revoked", f"devices does not tell: {enrolled}")
        check(list(enrolled.values()) == ["yes"], f"the other device: {enrolled}")
        device.stop()
        check(device.process.returncode == 0, "the daemon ended badly")
    finally:
        for party in (device, lab):
            if party.process is not None and party.process.poll() is None:
                party.process.kill()
                party.process.wait()


if __name__ == "__main__":
    main(test)
