#!/usr/bin/env python3
"""Rules that change calls are refused without the machine's own permission in every way to set them: record,
attach, policy set, a program that records itself, and a collector's command, policy for all and policy of a command
over HTTP. The program behaves as without rules, and each refusal gives the reason. With the permission record and
attach accept the rules.

change_ways.py BUILD_FOLDER BUILT_SAMPLES_FOLDER
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target
from fleet_testing import Collector, Device, enrol
from sojourn_testing import PATIENCE_S, check, children, main, wait_for

RULE = {"name": "always", "function": "chg_open", "argument": 2, "as": "int", "change": {"return": 77}}
PLAIN, CHANGED = "ret 2 runs 1\n", "ret 77 runs 0\n"


def permit(sojourn, program):
    folder = sojourn.path("config/sojourn")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "changes.json"), "w", encoding="utf-8") as file:
        json.dump({"allow": [{"programs": [program], "functions": ["chg_open"], "kinds": ["return"]}]}, file)


def forbid(sojourn):
    os.unlink(sojourn.path("config/sojourn/changes.json"))


def ask(target):
    target.process.stdin.write("x")
    target.process.stdin.flush()
    return target.process.stdout.readline()


def begin(command, **options):
    target = Target(command, **options)
    wait_for("the loop", lambda: target.process.stdout.readline() == "ready\n")
    return target


def by_record(sojourn, program, policy, is_allowed):
    done, _ = sojourn.record([program], sojourn.path("record.db"), ["--policy", policy], text=True)
    if is_allowed:
        check(done.returncode == 0 and "open 1 ret 77" in done.stdout, f"record: {done}")
    else:
        check(done.returncode == 125 and "does not allow" in done.stderr and done.stdout == "", f"record: {done}")


def by_attach(sojourn, program, policy, is_allowed):
    target = begin([program, "loop"])
    attached = None
    try:
        check(ask(target) == PLAIN, "before attach")
        attached = subprocess.Popen([sojourn.program, "attach", "-q", "-o", sojourn.path("attach.db"), "--policy", policy,
                                     str(target.pid)], env=sojourn.environment, stderr=subprocess.PIPE, text=True)
        if is_allowed:
            wait_for("the rule", lambda: ask(target) == CHANGED)
            attached.terminate()
            attached.wait(PATIENCE_S)
        else:
            _, told = attached.communicate(timeout=PATIENCE_S)
            check(attached.returncode not in (0, None) and "does not allow" in told, f"attach: {told}")
        check(ask(target) == PLAIN, "after attach")
    finally:
        if attached is not None and attached.poll() is None:
            attached.kill()
            attached.wait()
        target.kill()


def by_policy_set(sojourn, program, policy, is_allowed):
    target = begin([sojourn.program, "record", "-q", "-o", sojourn.path("set.db"), "--", program, "loop"],
                   env=sojourn.environment)
    try:
        done = sojourn.run(["policy", "set", "--json", "--policy", policy, str(children(target.pid)[0])],
                           capture_output=True, text=True)
        said = ask(target)
        # A recording that began without such rules may report that it does not accept them.
        check(said == PLAIN or (is_allowed and said == CHANGED), f"policy set: {said} {done}")
        check(said == CHANGED or "values" in done.stdout or "does not allow" in done.stdout + done.stderr,
              f"policy set says nothing: {done}")
    finally:
        target.kill()


def by_itself(sojourn, program, policy, is_allowed):
    """A program that records itself accepts no such rules, whether the machine permits them or not."""
    library = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "lib", "libsojourn-direct.so")
    folder = sojourn.path("direct")
    os.makedirs(folder, exist_ok=True)
    target = begin([program, "loop"], env={**sojourn.environment, "LD_PRELOAD": library,
                                           "SOJOURN_DIRECT": f"file://{folder}", "SOJOURN_DIRECT_POLICY": policy,
                                           "SOJOURN_DIRECT_LOG": sojourn.path("direct.log")})
    try:
        check(ask(target) == PLAIN, f"by itself, {'with' if is_allowed else 'without'} permission")
    finally:
        target.kill()
    with open(sojourn.path("direct.log"), encoding="utf-8") as file:
        check("would be changed" in file.read(), "the log does not say why")


def by_collector(sojourn, program, policy):
    """The device's own file is /etc/sojourn/changes.json, which the collector cannot write."""
    check(not os.path.exists("/etc/sojourn/changes.json"), "this machine has permissions of its own")
    collector, device = Collector(sojourn), Device(sojourn, "phone7")
    try:
        enrol(collector, device)
        device.start()
        done = collector.device("--policy", policy, device.name, "launch", program, code=1)
        check("does not allow" in done.stderr, f"a command: {done}")
        collector.ask("all", "policy", policy)
        done = collector.device(device.name, "launch", program, code=1)
        check("does not allow" in done.stderr, f"a policy for all: {done}")
        rows = collector.sql("SELECT state, result FROM commands WHERE kind = 'launch'")
        check(len(rows) == 2 and all(row["state"] == "failed" for row in rows), f"the audit: {rows}")
        check(collector.sql("SELECT count(*) AS n FROM rule_hits")[0]["n"] == 0, "something was changed")
    finally:
        for party in (device, collector):
            if party.process is not None and party.process.poll() is None:
                party.process.kill()
                party.process.wait()


def test(sojourn, arguments):
    sojourn.environment["XDG_CONFIG_HOME"] = sojourn.path("config")
    program = os.path.realpath(os.path.join(arguments[0], "changed"))
    policy = sojourn.path("always.json")
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "name": "always", "values": [RULE]}, file)
    for is_allowed in (False, True):
        if is_allowed:
            permit(sojourn, program)
        for way in (by_record, by_attach, by_policy_set, by_itself):
            way(sojourn, program, policy, is_allowed)
    forbid(sojourn)
    by_collector(sojourn, program, policy)


if __name__ == "__main__":
    main(test)
