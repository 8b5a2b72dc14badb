#!/usr/bin/env python3
"""A device's state is copied to a second machine, so both daemons have its identity. Each command runs once, and
the collector names the device until the copy is gone.

fleet_copies.py BUILD_FOLDER
"""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import Collector, Device, enrol
from sojourn_testing import check, check_accounts, json_rows, main, wait_for

COMMANDS = 6
CALLS = 1003  # calls of the sample


def named_by(sojourn, collector):
    """Returns what the commands that read a collector print about the device."""
    rows = json_rows(sojourn.run(["devices", "--json", collector.database], capture_output=True, text=True).stdout)
    checks = json_rows(sojourn.run(["doctor", "--json", "--database", collector.database], capture_output=True, text=True).stdout)
    return [row["note"] for row in rows], next(row for row in checks if row["check"] == "copied devices")


def runs_once(collector, device, copy, ends):
    """Both daemons wait for a command when the collector queues it. Each command runs once."""
    for number in range(COMMANDS):
        collector.ask(device.name, "launch", ends, "return")
        wait_for(f"session {number + 1}", lambda: collector.sql(
            f"SELECT 1 AS n FROM sessions WHERE state = 'completed' AND stored_calls = {CALLS} LIMIT 1 OFFSET {number}"))
    wait_for("a command that one of the two left alone", lambda: device.log_says("is left alone") or copy.log_says("is left alone"))
    found = collector.sql("SELECT count(*) AS n FROM sessions")[0]["n"]
    check(found == COMMANDS, f"{COMMANDS} commands made {found} sessions")
    states = collector.sql("SELECT DISTINCT state, claimed_by > 0 AS is_claimed FROM commands WHERE kind = 'launch'")
    check(states == [{"state": "done", "is_claimed": 1}], f"commands: {states}")


def test(sojourn, _arguments):
    ends = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests/samples/ends")
    collector, device, copy = Collector(sojourn), Device(sojourn, "phone7"), Device(sojourn, "copy")
    try:
        enrol(collector, device)
        device.start()
        collector.ask(device.name, "status")
        check(named_by(sojourn, collector)[0] == [""], "one daemon is called a copy")
        shutil.copytree(device.state, copy.state)
        copy.start()
        wait_for("the copy to ask", lambda: collector.ask(device.name, "status") and
                 collector.sql("SELECT 1 AS n FROM copied_devices"))
        notes, doctor = named_by(sojourn, collector)
        check(notes == ["two daemons have this identity: see sojourn doctor"], f"devices: {notes}")
        check(not doctor["ok"] and doctor["found"] == "phone7 (1)", f"doctor: {doctor}")
        with open(collector.log.name, encoding="utf-8") as log:
            told = [line for line in log if "event=copied" in line]
        check(len(told) == 1 and "identity and token of device 1" in told[0], f"the log: {told}")
        runs_once(collector, device, copy, ends)
        copy.stop()
        check(collector.ask(device.name, "status")["recording"] == 0, "the device answers no more")
        check_accounts(sojourn, collector.database)
    finally:
        for party in (device, copy, collector):
            if party.process is not None and party.process.poll() is None:
                party.process.kill()
                party.process.wait()


main(test)
