#!/usr/bin/env python3
"""A device is enrolled at two collectors, which are killed in turn. Each session is stored whole, by one of them.

two_collectors.py BUILD_FOLDER
"""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import Collector, Device
from sojourn_testing import PATIENCE_S, check, check_accounts, main, wait_for


def enrol(collector, device, name, *options):
    invitation = collector.sojourn.path(name + ".invitation")
    collector.device("--collector", collector.url, "invite", invitation)
    done = device.run("enroll", "--token-file", invitation, "--name", device.name, *options)
    check(done.returncode == 0, f"enroll at {name}: {done.stderr}")


def sessions(collector):
    return {row["uuid"]: row for row in collector.sql("SELECT lower(hex(uuid)) AS uuid, * FROM sessions")}


def has_calls(collector, session):
    return session in sessions(collector) and sessions(collector)[session]["stored_calls"] > 0


def is_whole(collector, session):
    row = sessions(collector).get(session)
    return row is not None and row["sent_calls"] is not None and row["stored_blocks"] == row["sent_blocks"]


def launch(asked, device, ends, how, stored_by):
    """Starts a program by a command of the collector `asked`. Its session must arrive at the collector `stored_by`."""
    session = asked.ask(device.name, "launch", ends, how)["session"]
    wait_for(f"session {session}", lambda: has_calls(stored_by, session))
    return session


def stop_and_wait(asked, device, session, stored_by):
    asked.ask(device.name, "stop", session)
    wait_for(f"the end of {session}", lambda: is_whole(stored_by, session))


def each_collector_has_its_own_policies(device, ends, policies):
    """Each collector's policy applies to the programs that this collector starts. A collector sends its policies
    once."""
    for collector, policy in policies:
        collector.ask("all", "policy", policy)
        wait_for(f"{policy} on the device", lambda asked=collector: asked.sql(
            "SELECT 1 FROM commands WHERE kind = 'policies' AND state = 'done'"))
    for collector, policy in policies:
        told = collector.ask(device.name, "launch", ends, "return")
        check(told["policy"] == policy, f"not the policy {policy}: {told}")
        wait_for("its end", lambda session=told["session"]: is_whole(policies[0][0], session))
    for collector, _ in policies:
        given = collector.sql("SELECT count(*) AS n FROM commands WHERE kind = 'policies'")
        check(given == [{"n": 1}], f"policies were given again: {given}")


def import_all(sojourn, source, target):
    """Imports the sessions of both collectors into one database. A second import stores no session twice."""
    for code in (0, 1):
        done = subprocess.run([sojourn.program, "session", "--database", target, "import", source],
                              env=sojourn.environment, capture_output=True, text=True, timeout=PATIENCE_S)
        check(code == 0 and done.returncode == 0 or code == 1 and "exists already" in done.stdout + done.stderr,
              f"import: {done.returncode} {done.stdout} {done.stderr}")
    check_accounts(sojourn, target)


def test(sojourn, _arguments):
    ends = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program))), "tests/samples/ends")
    first, second = Collector(sojourn, name="first"), Collector(sojourn, name="second")
    device = Device(sojourn, "phone")
    try:
        enrol(first, device, "first")
        enrol(second, device, "second", "--also")
        with open(os.path.join(device.state, "sojourn/device/collector.json"), encoding="utf-8") as file:
            kept = json.load(file)
        check([kept["collector"], *(one["collector"] for one in kept["more"])] == [first.url, second.url],
              f"kept: {list(kept)}")
        device.start()
        doctor = device.run("doctor").stdout
        check(first.url in doctor and second.url in doctor, f"doctor: {doctor}")

        cut = launch(first, device, ends, "wait", first)
        first.stop(signal.SIGKILL)
        elsewhere = launch(second, device, ends, "return", second)  # new sessions go to the next collector
        wait_for("the end elsewhere", lambda: is_whole(second, elsewhere))
        also_cut = launch(second, device, ends, "wait", second)
        first.start()
        second.stop(signal.SIGKILL)
        stop_and_wait(first, device, cut, first)  # its open recording continues while the other collector is away
        back = launch(first, device, ends, "return", first)  # new sessions go to the first collector again
        wait_for("the end at the first", lambda: is_whole(first, back))
        first.ask(device.name, "stop", also_cut)
        second.start()
        wait_for("the rest at the second", lambda: is_whole(second, also_cut))
        wait_for("an empty spool", lambda: device.spool() == [])

        check(set(sessions(first)) == {cut, back}, f"at the first: {list(sessions(first))}")
        check(set(sessions(second)) == {elsewhere, also_cut}, f"at the second: {list(sessions(second))}")
        for collector in (first, second):
            check_accounts(sojourn, collector.database)
            check(collector.sql("SELECT 1 FROM sessions WHERE lost_calls <> 0") == [], "calls were lost")
        each_collector_has_its_own_policies(device, ends, [(first, "coverage"), (second, "everything")])
        device.stop()
        first.stop()
        second.stop()
        count = len(sessions(first))
        import_all(sojourn, second.database, first.database)
        check({cut, back, elsewhere, also_cut} <= set(sessions(first)) and len(sessions(first)) == count + 2,
              f"together: {list(sessions(first))}")
    finally:
        for one in (device, first, second):
            if one.process is not None and one.process.poll() is None:
                one.process.kill()


main(test)
