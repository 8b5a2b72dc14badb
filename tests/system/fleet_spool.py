#!/usr/bin/env python3
"""A device without its lab, with little room: what it holds stays within its budget, what it cannot
keep is counted, what the lab has acknowledged is never lost, and a full disk harms nobody.

fleet_spool.py BUILD_FOLDER
"""
import os
import signal
import subprocess
import sys
import time

from fleet import Device, Lab, enrol, wait_for
from sojourn_testing import check, check_accounts, main

MIB = 1 << 20
BUDGET = 6 * MIB
SEGMENT = 4 * MIB
BUSY = "local function f(n) return n < 2 and n or f(n - 1) + f(n - 2) end " \
       "local finish = os.time() + 60 while os.time() < finish do f(12) end"
SHORT = "local n = 0 for i = 1, 1000 do n = n + #tostring(i) end"


def spool_bytes(device):
    total = 0
    for path, _, files in os.walk(os.path.join(device.state, "sojourn/device/spool")):
        for name in files:
            try:
                total += os.stat(os.path.join(path, name)).st_size
            except FileNotFoundError:
                continue
    return total


def launch(lab, device, program=BUSY):
    return lab.ask(device.name, "launch", "/usr/bin/lua5.4", "-e", program)["session"]


def recording(device):
    return [name for name in device.spool() if name.endswith(".to") and subprocess.run(
        ["flock", "-n", "-s", os.path.join(device.state, "sojourn/device/spool", name), "true"],
        check=False).returncode != 0]


def recorders(device):
    for name in recording(device):
        with open(os.path.join(device.state, "sojourn/device/spool", name), encoding="utf-8") as file:
            yield int(file.read().split("\n")[2])


def blocks(lab):
    return {(row["uuid"], row["stream"], row["first_event"]) for row in lab.sql(
        "SELECT lower(hex(s.uuid)) AS uuid, st.number AS stream, b.first_event FROM blocks b "
        "JOIN streams st USING (stream_id) JOIN sessions s USING (session_id)")}


def all_there(lab, device, before, sessions):
    """After the lab is back: sent = stored + counted lost, nothing that was stored is gone."""
    wait_for("an empty spool", lambda: not device.spool(), 60)
    check(before <= blocks(lab), "what was acknowledged is gone")
    check_accounts(lab.sojourn, lab.database)
    rows = lab.sql("SELECT lower(hex(uuid)) AS uuid, state, device_lost_calls FROM sessions")
    check({row["uuid"] for row in rows} >= set(sessions), f"a session is missing: {rows}")
    return {row["uuid"]: row for row in rows}


def budget(lab, device):
    """Two recorders at once, no lab: together they stay within the budget of the device, but for a
    segment each."""
    device.start("--spool-bytes", str(BUDGET))
    sessions = [launch(lab, device), launch(lab, device)]
    wait_for("calls of both", lambda: len(lab.sql(
        "SELECT 1 FROM sessions WHERE stored_calls > 0")) == 2)
    lab.stop()
    wait_for("a full spool", lambda: spool_bytes(device) > BUDGET - MIB, 60)
    time.sleep(1.5)
    most = spool_bytes(device)
    check(BUDGET / 2 < most < BUDGET + 2 * SEGMENT, f"the spool grew to {most} bytes")
    lab.start()
    lab.ask(device.name, "stop")
    rows = all_there(lab, device, set(), sessions)
    lost = sum(rows[session]["device_lost_calls"] for session in sessions)
    check(lost > 0, "nothing was left out: the test tests nothing")
    gaps = {row["reason"] for row in lab.sql("SELECT DISTINCT reason FROM gaps WHERE calls > 0")}
    check("spool_full" in gaps, f"the gaps do not say why: {gaps}")
    device.stop()


def refused_when_full(lab, device):
    """What could keep nothing is not begun; the end of a session finds room all the same."""
    done = device.run("run", "--spool-bytes", "1000")
    check(done.returncode == 2 and "at least" in done.stderr, f"1,000 bytes: {done.stderr}")
    device.start("--spool-bytes", str(MIB))
    session = launch(lab, device)
    wait_for("its calls", lambda: lab.sql("SELECT 1 FROM sessions WHERE state = 'recording' AND "
                                          "stored_calls > 0"))
    lab.stop()
    wait_for("a full spool", lambda: spool_bytes(device) > MIB - 300000)
    time.sleep(1)
    lab.start()
    lab.ask(device.name, "stop", session)
    rows = all_there(lab, device, set(), [session])
    check(rows[session]["device_lost_calls"] > 0 and rows[session]["state"] == "killed", f"{rows}")
    device.stop()


def disk_full(lab, device, mount):
    """Another program fills the disk, to the last byte, while two recordings go on."""
    device.start()
    sessions = [launch(lab, device), launch(lab, device)]
    wait_for("calls of both", lambda: len(lab.sql(
        "SELECT 1 FROM sessions WHERE state = 'recording' AND stored_calls > 0")) == 2)
    before = blocks(lab)
    lab.stop()
    time.sleep(0.5)
    with open(os.path.join(mount, "foreign"), "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(MIB))
        except OSError:
            pass
    room = os.statvfs(mount)
    check(room.f_bavail * room.f_frsize < MIB, "the disk is not full")
    time.sleep(0.5)
    doctor = device.run("doctor")
    check("PROBLEM  spool" in doctor.stdout, f"doctor: {doctor.stdout}")
    for recorder in recorders(device):
        os.kill(recorder, signal.SIGTERM)  # the programs end while nothing can be written
    time.sleep(1)
    check(device.process.poll() is None, "the daemon ended")
    os.remove(os.path.join(mount, "foreign"))
    lab.start()
    wait_for("the end of both", lambda: not recording(device), 30)
    rows = all_there(lab, device, before, sessions)
    check(all(rows[session]["state"] == "killed" for session in sessions), f"{rows}")
    session = launch(lab, device, SHORT)
    wait_for("a session as before", lambda: lab.sql(
        f"SELECT 1 FROM sessions WHERE lower(hex(uuid)) = '{session}' AND state = 'completed' "
        "AND device_lost_calls = 0"))
    device.stop()


def as_root(*command):
    subprocess.run(command if os.geteuid() == 0 else ["sudo", "-n", *command], check=True)


def test(sojourn, _arguments):
    lab = Lab(sojourn)
    device = Device(sojourn, "phone7")
    small = Device(sojourn, "phone8")
    mount = sojourn.path("small")
    os.makedirs(mount)
    small.state = small.environment["XDG_STATE_HOME"] = os.path.join(mount, "state")
    as_root("mount", "-t", "tmpfs", "-o", f"size=76M,uid={os.getuid()},mode=700", "tmpfs", mount)
    try:
        enrol(lab, device)
        enrol(lab, small)
        budget(lab, device)
        refused_when_full(lab, device)
        disk_full(lab, small, mount)
    finally:
        for party in (device, small, lab):
            if party.process is not None and party.process.poll() is None:
                party.process.kill()
                party.process.wait()
        as_root("umount", "-l", mount)


if __name__ == "__main__":
    sys.exit(main(test))
