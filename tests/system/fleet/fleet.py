#!/usr/bin/env python3
"""A device enrols over TLS, runs commands, records while the collector is away, and is revoked.

fleet.py BUILD_FOLDER
"""
import json
import os
import signal
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import Device, Collector, enrol
from sojourn_testing import check, json_rows, main, wait_for


def finished_sessions(collector, count):
    rows = collector.sql("SELECT state FROM sessions WHERE sent_calls IS NOT NULL")
    return rows if len(rows) >= count else None


def check_secrets(collector, device, token):
    """The token is only in the device's own file."""
    hits = collector.sql(f"SELECT count(*) AS n FROM device_tokens WHERE instr(hex(token_hash), "
                   f"upper('{token}')) > 0")[0]["n"]
    check(hits == 0, "the collector keeps the token itself")
    for path in (device.log_path, collector.sojourn.path("collector.log"), collector.database,
                 collector.database + "-wal"):
        if os.path.exists(path):
            with open(path, "rb") as file:
                check(token.encode() not in file.read(), f"the token is in {path}")
    with open(f"/proc/{device.process.pid}/cmdline", "rb") as file:
        check(token.encode() not in file.read(), "the token is on the command line")


def commands(collector, device, ends):
    check(collector.ask(device.name, "status")["recording"] == 0, "it records already")
    check(collector.ask(device.name, "apps")[0]["name"] == "ends", "the catalogue is not listed")
    check(any(row["pid"] == device.process.pid for row in collector.ask(device.name, "ps")),
          "ps does not list the daemon")
    checks = {row["check"]: row["ok"] for row in collector.ask(device.name, "doctor")}
    check(checks["enrolment"] and checks["certificate"] and checks["agent"], f"doctor: {checks}")
    session = collector.ask("--name", "cold", device.name, "launch", "ends")["session"]
    wait_for("the session", lambda: finished_sessions(collector, 1))
    row = collector.sql("SELECT lower(hex(uuid)) AS uuid, name, state, stored_calls FROM sessions")[0]
    check(row["uuid"] == session and row["name"] == "cold", f"another session came: {row}")
    check(row["state"] == "completed" and row["stored_calls"] == 1003, f"not its calls: {row}")
    check(os.path.exists(os.path.join(device.state, "prepared")), "it was not prepared")
    collector.device(device.name, "launch", "/nowhere/program", code=1)
    collector.device(device.name, "launch", "unknown-app", code=1)
    collector.device(device.name, "stop", "ffff", code=1)
    collector.device("nobody", "status", code=3)
    running = collector.ask(device.name, "launch", ends, "wait")["session"]
    check(any(row["session"] == running and row["recording"]
              for row in collector.ask(device.name, "sessions")), "the session is not listed")
    check(collector.ask(device.name, "stop", running[:8])["stopped"] == [running], "it was not stopped")
    wait_for("the stopped session", lambda: finished_sessions(collector, 2))
    audit = collector.sql("SELECT kind, state, requested_by FROM commands ORDER BY command_id")
    check([row["state"] for row in audit] ==
          ["done"] * 5 + ["failed"] * 3 + ["done"] * 3, f"the audit: {audit}")
    check(all(row["requested_by"] for row in audit), "a command has no sender")


def offline(collector, device, ends):
    """The collector dies, and daemon and recorder are killed. Only unread records are missing."""
    session = collector.ask(device.name, "launch", ends, "wait")["session"]
    collector.stop(signal.SIGKILL)
    device.wait_for_more()
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
    folder = os.path.join(device.runtime, "sojourn")
    wait_for("the recovery", lambda: os.listdir(folder) == [])
    check(device.spool(), "the spool was emptied without a collector")
    collector.start()
    wait_for("the recovered session", lambda: finished_sessions(collector, 3))
    row = collector.sql(f"SELECT state, stored_calls FROM sessions WHERE lower(hex(uuid)) = '{session}'")
    check(row[0]["state"] == "lost" and row[0]["stored_calls"] > 100, f"recovered: {row}")
    wait_for("an empty spool", lambda: not device.spool())
    check(os.listdir(folder) == [], "a runtime directory was left")
    twice = collector.sql("SELECT stream_id, kind, first_event FROM blocks "
                    "GROUP BY stream_id, kind, first_event HAVING count(*) > 1")
    check(twice == [], f"stored twice: {twice}")


def broken_handshakes(collector):
    """Noise, and handshakes that end in the middle, do not disturb the listener's next peer."""
    for number in range(20):
        with socket.socket() as peer:
            peer.connect(("127.0.0.1", collector.port))
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.sendall(os.urandom(64) if number % 2 else
                         b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")


def strangers(collector, device):
    """The device does not connect to a collector with another certificate. A revoked token gives no access."""
    broken_handshakes(collector)
    thief = Device(collector.sojourn, "thief")
    fake = collector.sojourn.path("fake.invitation")
    own = collector.sojourn.path("own.invitation")
    collector.device("--collector", collector.url, "invite", own)
    other = collector.sojourn.path("other.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj",
                    "/CN=sojourn-collector", "-days", "2", "-keyout", "/dev/null", "-out", other],
                   check=True, capture_output=True)
    with open(own, encoding="utf-8") as file, open(other, encoding="utf-8") as wrong:
        invitation = json.load(file)
        invitation["certificate"] = wrong.read()
    with open(fake, "w", encoding="utf-8") as file:
        json.dump(invitation, file)
    done = thief.run("enroll", "--token-file", fake)
    check(done.returncode != 0, "a collector with a wrong certificate was trusted")
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
    collector.device(device.name, "revoke")
    collector.device("--timeout", "3", device.name, "status", code=1)
    wait_for("the refusal in the log",
             lambda: "the collector refuses" in open(device.log_path, encoding="utf-8").read())


def test(sojourn, _arguments):
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    ends = os.path.join(build, "tests/samples/ends")
    collector = Collector(sojourn)
    device = Device(sojourn, "phone7")
    try:
        token = enrol(collector, device)
        with open(os.path.join(device.state, "sojourn/device/apps.json"), "w",
                  encoding="utf-8") as file:
            json.dump({"apps": [{"name": "ends", "command": [ends, "return"],
                                 "directory": device.state,
                                 "prepare": [["/usr/bin/touch", "prepared"]]}]}, file)
        device.start()
        commands(collector, device, ends)
        check_secrets(collector, device, token)
        offline(collector, device, ends)
        strangers(collector, device)
        enrolled = {row["name"]: row["enrolled"] for row in json_rows(
            sojourn.run(["devices", "--json", collector.database], capture_output=True,
                        text=True).stdout)}
        check(enrolled.pop(device.name) == "revoked", f"devices does not show it: {enrolled}")
        check(list(enrolled.values()) == ["yes"], f"the other device: {enrolled}")
        device.stop()
        check(device.process.returncode == 0, "the daemon ended badly")
    finally:
        for party in (device, collector):
            if party.process is not None and party.process.poll() is None:
                party.process.kill()
                party.process.wait()


if __name__ == "__main__":
    main(test)
