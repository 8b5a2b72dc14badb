#!/usr/bin/env python3
"""Sets, changes and removes rules repeatedly while four threads call the function that the rules are about. Each
call either follows one rule completely or behaves as by itself. The recorder is then killed with rules in place,
and soon afterwards no call changes any more.

rules_under_load.py BUILD_FOLDER (SJ_LONG=1: 10,000 times)
"""
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, set_policy
from sojourn_testing import check, check_accounts, children, main, sample_text, wait_for

TIMES = 10000 if os.environ.get("SJ_LONG") == "1" else 60
SOURCE = sample_text("policy/rules_under_load.c")
RULE = {"function": "chg_load", "argument": 1, "as": "long", "name": "load"}
# These changes follow each other. The last one removes the rule.
CHANGES = [{"return": -77, "errno": 7}, {"return": -88, "errno": 8}, {"return": -99, "errno": 9, "one_in": 3}, None]


def permit(sojourn):
    folder = sojourn.path("config/sojourn")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "changes.json"), "w", encoding="utf-8") as file:
        json.dump({"allow": [{"programs": ["*"], "functions": ["*"], "kinds": ["return", "errno"]}]}, file)


def policies(sojourn):
    paths = []
    for number, change in enumerate(CHANGES):
        paths.append(sojourn.path(f"{number}.json"))
        rules = [{**RULE, "change": change}] if change else []
        with open(paths[-1], "w", encoding="utf-8") as file:
            json.dump({"policy": 1, "values": rules}, file)
    return paths


def ask(target):
    """Returns the calls by their outcome, and the calls that no rule explains."""
    target.process.stdin.write("?\n")
    target.process.stdin.flush()
    numbers = [int(part) for part in re.findall(r"\d+", target.process.stdout.readline())]
    return numbers[:4], numbers[4]


def start(sojourn, program, first, name):
    target = Target([sojourn.program, "record", "-q", "-o", sojourn.path(name), "--policy", first,
                     "--", program], env=sojourn.environment)
    return target.ready()


def test_set_and_removed(sojourn, program, paths):
    target = start(sojourn, program, paths[0], "load.db")
    try:
        pid = children(target.pid)[0]
        wait_for("the first rule", lambda: ask(target)[0][1] > 0)
        for number in range(TIMES):
            answer = set_policy(sojourn, pid, "--policy", paths[(number + 1) % len(paths)])
            check(not answer["not_applied"], f"{number}: {answer}")
            if number % 10 == 0:
                kind = (number + 2) % len(paths)  # 0: no rule
                before = ask(target)[0][kind]
                wait_for(f"policy {number + 1}", lambda: ask(target)[0][kind] > before + 10)
        seen, wrong = ask(target)
        check(wrong == 0, f"{wrong} calls were half of one rule and half of another")
        check(all(seen), f"calls by rule: {seen}")
        status, _ = target.finish()
        check(status == 0, f"it ended with {status}")
    finally:
        target.kill()
    check_accounts(sojourn, sojourn.path("load.db"))
    print(f"{TIMES} times set, changed and removed: {sum(seen)} calls, {seen} by rule, none torn")


def test_killed(sojourn, program, paths):
    """The program itself stops changing calls within a second of the recorder's end."""
    target = start(sojourn, program, paths[0], "killed.db")
    wait_for("the rule", lambda: ask(target)[0][1] > 0)
    target.process.kill()
    target.process.wait()
    killed = time.monotonic()
    plain = ask(target)[0][0]
    wait_for("calls by themselves", lambda: ask(target)[0][0] > plain)
    took = time.monotonic() - killed
    changed = ask(target)[0][1]
    plain = ask(target)[0][0]
    wait_for("more of them", lambda: ask(target)[0][0] > plain + 1000)
    seen, wrong = ask(target)
    check(wrong == 0 and seen[1] - changed < 10, f"the rule came back: {seen[1] - changed} calls")
    target.process.stdin.close()
    print(f"rules ended {took:.1f} s after their recorder")


def test(sojourn, arguments):
    sojourn.environment["XDG_CONFIG_HOME"] = sojourn.path("config")
    permit(sojourn)
    program = sojourn.path("load")
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-x", "c", "-", "-pthread", "-o", program], input=SOURCE, text=True, check=True)
    paths = policies(sojourn)
    test_set_and_removed(sojourn, program, paths)
    test_killed(sojourn, program, paths)


if __name__ == "__main__":
    main(test)
