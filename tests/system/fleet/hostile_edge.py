#!/usr/bin/env python3
"""Peers attack the collector in every way that a socket allows (hostile_peers.py), all at once, beside a good
sender. Afterwards the accounts are exact, descriptors and memory are free again, and SIGTERM ends the collector.

hostile_edge.py BUILD_FOLDER [SEED [SECONDS]]: seconds, an hour with SJ_LONG=1.
"""
import json
import os
import random
import signal
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import Collector, Device, device_id, enrol, free_port
from hostile_peers import Attack
from sojourn_testing import PATIENCE_S, check, main, wait_for

SECONDS = 3600 if os.environ.get("SJ_LONG") else 20
ATTACKERS = 6
MEMORY_KB = 64 * 1024
SESSION_KB, SESSIONS_KB = 64, 48 * 1024  # memory that the collector keeps for the good sender's sessions
CALLS = 1003  # calls of each session


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident_kb(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))


def is_sanitized(pid):
    """True if the collector runs under a sanitizer, whose own memory hides the memory of the product."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        maps = file.read()
    return "libasan" in maps or "libtsan" in maps


def health(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE_S) as answer:
        return answer.status


def good_sender(lab, device, attack):
    """Records sessions one after the other. The collector must have each of them completely."""
    while not attack.done.is_set():
        session = lab.ask(device.name, "launch", "ends")["session"]
        attack.sessions.append(session)
        wait_for("the session is whole", lambda: lab.sql(
            f"SELECT 1 FROM sessions WHERE sent_calls IS NOT NULL AND uuid = x'{session}'"), 60)


def storm(lab, device, attack, seconds):
    """Runs the attackers and the sender for the given time. Returns the largest memory seen."""
    failures = []

    def send():
        try:
            good_sender(lab, device, attack)
        except Exception as failure:  # the main thread reports it
            failures.append(failure)

    sender = threading.Thread(target=send)
    end = time.monotonic() + seconds
    largest = 0
    attack.start(ATTACKERS)
    sender.start()
    try:
        while time.monotonic() < end and not failures:
            check(lab.process.poll() is None, f"the collector ended with {lab.process.returncode}")
            largest = max(largest, resident_kb(lab.process.pid))
            check(health(attack.http_port) == 200, "no health while under attack")
            attack.done.wait(0.25)
    finally:
        attack.stop()
        sender.join()
    check(not failures, f"the good sender: {failures}")
    return largest


def check_contents(lab, sent):
    """Every session that was sent is stored completely, and no data of other peers is."""
    rows = lab.sql("SELECT lower(hex(uuid)) AS uuid, name, state, stored_calls, sent_calls, lost_calls, "
                   "device_lost_calls, stored_blocks, sent_blocks FROM sessions")
    check(sorted(row["uuid"] for row in rows) == sorted(sent),
          f"{len(rows)} sessions, {len(sent)} were sent")
    for row in rows:
        check(row["state"] == "completed" and row["stored_calls"] == row["sent_calls"] == CALLS and
              row["lost_calls"] == row["device_lost_calls"] == 0 and
              row["stored_blocks"] == row["sent_blocks"] and row["name"] != "stolen",
              f"not what was sent: {row}")
    check(lab.sql("SELECT count(*) AS n FROM gaps")[0]["n"] == 0, "a stranger has reported a gap")
    check(lab.sql("SELECT count(*) AS n FROM devices")[0]["n"] == 2, "a stranger has made a device")
    check(lab.sql("SELECT count(*) AS n FROM token_events")[0]["n"] == 2, "an attacker was let in")


def make_attack(sojourn, lab, clear, ipc, http, seed):
    """Makes the attack, with a second device whose token the attackers have."""
    insider = Device(sojourn, "insider")
    token = enrol(lab, insider)
    attack = Attack(lab.port, clear, ipc, http, seed)
    attack.victim = device_id(lab, "phone7")
    attack.insider = (device_id(lab, "insider"), token.encode())
    return attack


def prepare(sojourn, device, build):
    with open(os.path.join(device.state, "sojourn/device/apps.json"), "w", encoding="utf-8") as file:
        json.dump({"apps": [{"name": "ends", "command": [
            os.path.join(build, "tests/samples/ends"), "return"]}]}, file)
    device.start()


def report_state(lab, device, http):
    """Prints the state that explains a failure, because the files are gone afterwards."""
    for path in (lab.log.name, device.log_path):
        with open(path, encoding="utf-8", errors="replace") as log:
            print(path, *[line.rstrip() for line in log if "dropped a frame" not in line][-30:],
                  sep="\n", file=sys.stderr)
    print(lab.sql("SELECT * FROM commands ORDER BY command_id DESC LIMIT 3"), file=sys.stderr)
    print(f"spool: {device.spool()}, daemon: {device.process and device.process.poll()}, collector: "
          f"{lab.process.poll()}", file=sys.stderr)
    if lab.process.poll() is None:
        with open(lab.database + ".token", encoding="utf-8") as file:
            login = {"Authorization": "Bearer " + file.read().strip()}
        request = urllib.request.Request(f"http://127.0.0.1:{http}/metrics", headers=login)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            print(*[line for line in answer.read().decode().splitlines() if line[0] != "#"],
                  sep="\n", file=sys.stderr)


def test(sojourn, arguments):
    seed = int(arguments[0]) if arguments else random.randrange(1 << 30)
    seconds = int(arguments[1]) if len(arguments) > 1 else SECONDS
    print(f"seed {seed}, {seconds} s", flush=True)
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    clear, http, ipc = free_port(), free_port(), sojourn.path("edge.ipc")
    lab = Collector(sojourn, "--listen", f"tcp://127.0.0.1:{clear}", "--listen", f"ipc://{ipc}",
                    "--http", f"127.0.0.1:{http}")
    device = Device(sojourn, "phone7")
    try:
        enrol(lab, device)
        attack = make_attack(sojourn, lab, clear, ipc, http, seed)
        prepare(sojourn, device, build)
        attack.sessions.append(lab.ask(device.name, "launch", "ends")["session"])
        wait_for("the first session", lambda: lab.sql(
            "SELECT 1 FROM sessions WHERE sent_calls IS NOT NULL"))
        health(http)
        before, resident = descriptors(lab.process.pid), resident_kb(lab.process.pid)
        largest = storm(lab, device, attack, seconds)
        print(f"{len(attack.sessions)} good sessions beside {sum(attack.counts.values())} attacks "
              f"{attack.counts}")
        print(f"descriptors {before} before, {descriptors(lab.process.pid)} after; memory {resident} kB "
              f"before, {largest} at most")
        check(not attack.believed, f"{len(attack.believed)} lies about another's session were taken")
        if not is_sanitized(lab.process.pid):
            kept = min(SESSION_KB * len(attack.sessions), SESSIONS_KB)
            check(largest <= resident + MEMORY_KB + kept, f"memory rose from {resident} to {largest} kB")
        wait_for("descriptors are back", lambda: descriptors(lab.process.pid) <= before + 4)
        check_contents(lab, attack.sessions)
        device.stop()
        lab.stop(signal.SIGTERM)
        check(lab.process.returncode == 0, f"the collector ended with {lab.process.returncode}")
    except Exception:
        report_state(lab, device, http)
        raise
    finally:
        for party in (device, lab):
            if party.process is not None and party.process.poll() is None:
                party.process.kill()
                party.process.wait()


if __name__ == "__main__":
    main(test)
