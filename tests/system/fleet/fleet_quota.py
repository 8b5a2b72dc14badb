#!/usr/bin/env python3
"""A device over its quota of a day keeps its sessions. The collector says so everywhere, stores them without a
command on the next day, and loses no call.

The collector and the commands that read its database have another clock: noon of today. A file sets it to the next
day.

fleet_quota.py BUILD_FOLDER
"""
import http.client
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import Collector, Device, enrol, free_port
from sojourn_testing import PATIENCE_S, check, check_accounts, json_rows, main, wait_for

CALLS = 1003  # calls of the sample
DAY_S = 86400


class Clock:
    """The collector's clock. It is set by a file that all processes of the collector read."""

    def __init__(self, sojourn):
        build = os.path.dirname(os.path.dirname(sojourn.program))
        self.path = sojourn.path("clock")
        self.shift_s = DAY_S // 2 - int(time.time()) % DAY_S
        self.environment = dict(sojourn.environment, SHIFT_FILE=self.path,
                                LD_PRELOAD=os.path.join(build, "tests/samples/libshifted_clock.so"))
        self.write()

    def write(self):
        with open(self.path + ".new", "w", encoding="ascii") as file:
            file.write(str(self.shift_s))
        os.rename(self.path + ".new", self.path)

    def next_day(self):
        self.shift_s += DAY_S
        self.write()


class Reports:
    """The reports of the collector about its devices."""

    def __init__(self, sojourn, collector, clock, port):
        self.sojourn, self.collector, self.clock, self.port = sojourn, collector, clock, port

    def command(self, *words):
        done = self.sojourn.run([*words], capture_output=True, text=True, env=self.clock.environment)
        return json_rows(done.stdout)

    def get(self, path):
        with open(self.collector.database + ".token", encoding="utf-8") as file:
            token = file.read().strip()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        connection.request("GET", path, headers={"Authorization": "Bearer " + token})
        reply = connection.getresponse()
        content = reply.read().decode()
        connection.close()
        check(reply.status == 200, f"{path} gave {reply.status}: {content}")
        return content

    def over_quota(self):
        """Returns the quota that is used up, on which all reports agree, or "" if no quota is used up."""
        note = self.command("devices", "--json", self.collector.database)[0]["note"]
        checks = self.command("doctor", "--json", "--database", self.collector.database)
        doctor = next(row for row in checks if row["check"] == "quotas")
        metric = "sojourn_devices_over_quota "
        over = next(line for line in self.get("/metrics").splitlines() if line.startswith(metric))
        listed = json.loads(self.get("/api/v1/devices"))["items"][0]["over_quota"]
        self.get("/healthz")  # the collector itself is well
        if not listed:
            check(note == "" and doctor["ok"] and over == metric + "0", f"not all say none: {note} {doctor} {over}")
            return ""
        check(f"quota of {listed} is used up" in note and listed in doctor["found"] and not doctor["ok"]
              and over == metric + "1", f"not all say {listed}: {note} {doctor} {over}")
        return listed


def is_whole(collector, session):
    rows = collector.sql(f"SELECT * FROM sessions WHERE lower(hex(uuid)) = '{session}'")
    return rows and rows[0]["sent_calls"] == rows[0]["stored_calls"] == CALLS and rows[0]["state"] == "completed"


def launch(collector, device, ends):
    return collector.ask(device.name, "launch", ends, "return")["session"]


def check_kept(collector, device, session, quota):
    """The device keeps a session that the collector does not store."""
    wait_for("the reports of " + quota, lambda: collector.reports.over_quota() == quota)
    wait_for("the device's log", lambda: device.log_says(f"quota of {quota} is used up"))
    check(collector.sql(f"SELECT 1 FROM blocks JOIN streams USING (stream_id) JOIN sessions USING (session_id)"
                        f" WHERE lower(hex(uuid)) = '{session}'") == [], "calls beyond the quota were stored")
    kept = wait_for("an ended recording", lambda: [row for row in collector.ask(device.name, "sessions")
                                                   if row["session"] == session and not row["recording"]])
    check(kept[0]["spool_bytes"] > 0, f"the device keeps nothing: {kept}")


def test(sojourn, _arguments):
    ends = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests/samples/ends")
    clock, port = Clock(sojourn), free_port()
    collector = Collector(sojourn, "--quota-sessions", "1", "--http", f"127.0.0.1:{port}",
                          environment=clock.environment)
    collector.reports = Reports(sojourn, collector, clock, port)
    device = Device(sojourn, "phone7")
    try:
        enrol(collector, device)
        device.start()
        first = launch(collector, device, ends)
        wait_for("the first session", lambda: is_whole(collector, first))
        check(collector.reports.over_quota() == "", "the quota is used up too early")
        second = launch(collector, device, ends)
        check_kept(collector, device, second, "1 session a day")
        clock.next_day()
        wait_for("the session of yesterday", lambda: is_whole(collector, second))
        check(collector.reports.over_quota() == "", "still over the quota")

        collector.ask(device.name, "quota", "bytes=1k", "sessions=9")
        third = launch(collector, device, ends)
        check_kept(collector, device, third, "1024 bytes a day")
        collector.ask(device.name, "quota", "none")
        wait_for("the session without a quota", lambda: is_whole(collector, third))
        check(collector.reports.over_quota() == "", "over no quota")
        collector.device(device.name, "quota", "bytes=0", code=2)
        wait_for("an empty spool", lambda: device.spool() == [])
        check_accounts(sojourn, collector.database)
        check(len(collector.sql("SELECT 1 FROM sessions")) == 3, "not three sessions")
    finally:
        for one in (device, collector):
            if one.process is not None and one.process.poll() is None:
                one.process.kill()
                one.process.wait()


main(test)
