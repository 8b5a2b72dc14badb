#!/usr/bin/env python3
"""A device has no collector and little disk space. What it holds stays within its budget, what it cannot keep is
counted, acknowledged data is never lost, and a full disk stops no program.

fleet_spool.py BUILD_FOLDER
"""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import Device, Collector, enrol
from sojourn_testing import check, check_accounts, children, let_run, main, wait_for

MIB = 1 << 20
BUDGET = 6 * MIB
SEGMENT = 4 * MIB
BUSY = "local function f(n) return n < 2 and n or f(n - 1) + f(n - 2) end " \
       "local finish = os.time() + 60 while os.time() < finish do f(12) end"
SHORT = "local n = 0 for i = 1, 1000 do n = n + #tostring(i) end"


def launch(collector, device, program=BUSY):
    return collector.ask(device.name, "launch", "/usr/bin/lua5.4", "-e", program)["session"]


def recording(device):
    return [name for name in device.spool() if name.endswith(".to") and subprocess.run(
        ["flock", "-n", "-s", os.path.join(device.state, "sojourn/device/spool", name), "true"],
        check=False).returncode != 0]


def recorders(device):
    for name in recording(device):
        with open(os.path.join(device.state, "sojourn/device/spool", name), encoding="utf-8") as file:
            yield int(file.read().split("\n")[2])


def let_programs_run(device):
    """Lets the programs use as much processor time as fills the spool several times over."""
    for recorder in recorders(device):
        for program in children(recorder):
            let_run(program, 100)


def blocks(collector):
    return {(row["uuid"], row["stream"], row["first_event"]) for row in collector.sql(
        "SELECT lower(hex(s.uuid)) AS uuid, st.number AS stream, b.first_event FROM blocks b "
        "JOIN streams st USING (stream_id) JOIN sessions s USING (session_id)")}


def all_there(collector, device, before, sessions):
    """After the collector is back: sent = stored + counted lost, and nothing that was stored is gone."""
    wait_for("an empty spool", lambda: not device.spool())
    check(before <= blocks(collector), "what was acknowledged is gone")
    check_accounts(collector.sojourn, collector.database)
    rows = collector.sql("SELECT lower(hex(uuid)) AS uuid, state, device_lost_calls FROM sessions")
    check({row["uuid"] for row in rows} >= set(sessions), f"a session is missing: {rows}")
    return {row["uuid"]: row for row in rows}


def budget(collector, device):
    """Two recorders run at once without a collector. Together they stay within the budget of the device, plus one
    segment each."""
    device.start("--spool-bytes", str(BUDGET))
    sessions = [launch(collector, device), launch(collector, device)]
    wait_for("calls of both", lambda: len(collector.sql(
        "SELECT 1 FROM sessions WHERE stored_calls > 0")) == 2)
    collector.stop()
    wait_for("a full spool", lambda: device.spool_bytes() > BUDGET - MIB)
    let_programs_run(device)
    most = device.spool_bytes()
    check(BUDGET / 2 < most < BUDGET + 2 * SEGMENT, f"the spool grew to {most} bytes")
    collector.start()
    collector.ask(device.name, "stop")
    rows = all_there(collector, device, set(), sessions)
    lost = sum(rows[session]["device_lost_calls"] for session in sessions)
    check(lost > 0, "nothing was left out: the test tests nothing")
    gaps = {row["reason"] for row in collector.sql("SELECT DISTINCT reason FROM gaps WHERE calls > 0")}
    check("spool_full" in gaps, f"the gaps do not say why: {gaps}")
    device.stop()


def refused_when_full(collector, device):
    """A recording that could keep nothing is not started. The end of a session still finds space."""
    done = device.run("run", "--spool-bytes", "1000")
    check(done.returncode == 2 and "at least" in done.stderr, f"1,000 bytes: {done.stderr}")
    device.start("--spool-bytes", str(MIB))
    session = launch(collector, device)
    wait_for("its calls", lambda: collector.sql("SELECT 1 FROM sessions WHERE state = 'recording' AND "
                                          "stored_calls > 0"))
    collector.stop()
    wait_for("a full spool", lambda: device.spool_bytes() > MIB - 300000)
    let_programs_run(device)
    collector.start()
    collector.ask(device.name, "stop", session)
    rows = all_there(collector, device, set(), [session])
    check(rows[session]["device_lost_calls"] > 0 and rows[session]["state"] == "killed", f"{rows}")
    device.stop()


def disk_full(collector, device, mount):
    """Another program fills the disk to the last byte while two recordings run."""
    device.start()
    sessions = [launch(collector, device), launch(collector, device)]
    wait_for("calls of both", lambda: len(collector.sql(
        "SELECT 1 FROM sessions WHERE state = 'recording' AND stored_calls > 0")) == 2)
    before = blocks(collector)
    collector.stop()
    device.wait_for_more()
    with open(os.path.join(mount, "foreign"), "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(MIB))
        except OSError:
            pass
    room = os.statvfs(mount)
    check(room.f_bavail * room.f_frsize < MIB, "the disk is not full")
    doctor = device.run("doctor")
    check("PROBLEM  spool" in doctor.stdout, f"doctor: {doctor.stdout}")
    programs = [child for recorder in recorders(device) for child in children(recorder)]
    check(programs, "nothing is being recorded")
    for recorder in recorders(device):
        os.kill(recorder, signal.SIGTERM)  # the programs end while nothing can be written
    wait_for("the programs' ends", lambda: not any(os.path.exists(f"/proc/{pid}") for pid in programs))
    check(device.process.poll() is None, "the daemon ended")
    os.remove(os.path.join(mount, "foreign"))
    collector.start()
    wait_for("the end of both", lambda: not recording(device))
    rows = all_there(collector, device, before, sessions)
    check(all(rows[session]["state"] == "killed" for session in sessions), f"{rows}")
    session = launch(collector, device, SHORT)
    wait_for("a session as before", lambda: collector.sql(
        f"SELECT 1 FROM sessions WHERE lower(hex(uuid)) = '{session}' AND state = 'completed' "
        "AND device_lost_calls = 0"))
    device.stop()


def as_root(*command):
    subprocess.run(command if os.geteuid() == 0 else ["sudo", "-n", *command], check=True)


def test(sojourn, _arguments):
    collector = Collector(sojourn)
    device = Device(sojourn, "phone7")
    small = Device(sojourn, "phone8")
    mount = sojourn.path("small")
    os.makedirs(mount)
    small.state = small.environment["XDG_STATE_HOME"] = os.path.join(mount, "state")
    as_root("mount", "-t", "tmpfs", "-o", f"size=76M,uid={os.getuid()},mode=700", "tmpfs", mount)
    try:
        enrol(collector, device)
        enrol(collector, small)
        budget(collector, device)
        refused_when_full(collector, device)
        disk_full(collector, small, mount)
    finally:
        for party in (device, small, collector):
            if party.process is not None and party.process.poll() is None:
                party.process.kill()
                party.process.wait()
        as_root("umount", "-l", mount)


if __name__ == "__main__":
    sys.exit(main(test))
