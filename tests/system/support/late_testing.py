"""Helpers for the tests of rules that begin in a running program. They provide a program that counts what rules
change in it, policies, and values by name."""
import json
import os
import re
import subprocess

from attaching import check_same, code_bytes, look
from sojourn_testing import PATIENCE_S, check, sample_text, wait_for
SOURCE = sample_text("policy/late_rules.c")
HEAP_NAME = "/memfd:sojourn-heap (deleted)"


def permit(sojourn, kinds):
    folder = sojourn.path("config/sojourn")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "changes.json"), "w", encoding="utf-8") as file:
        json.dump({"allow": [{"programs": ["*"], "functions": ["*"], "kinds": kinds}]}, file)


def build(sojourn):
    """Builds the program for a run in which rules may change calls."""
    sojourn.environment["XDG_CONFIG_HOME"] = sojourn.path("config")
    permit(sojourn, ["return", "errno", "set"])
    program = sojourn.path("late")
    subprocess.run(["gcc", "-O1", "-g", "-D_GNU_SOURCE", "-x", "c", "-", "-pthread", "-o", program], input=SOURCE,
                   text=True, check=True)
    return program


def write_policy(sojourn, name, rules, **more):
    path = sojourn.path(name + ".json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": rules, **more}, file)
    return path


def ask(target):
    """Returns the program's counts: calls of late_open that no rule changed, and that a rule changed; changed calls
    of late_size; changed calls of late_open from late_outer; and wrong results."""
    target.process.stdin.write("?\n")
    target.process.stdin.flush()
    return [int(part) for part in re.findall(r"\d+", target.process.stdout.readline())]


def goes_on(target, column, what):
    before = ask(target)[column]
    wait_for(what, lambda: ask(target)[column] > before + 100)


def stands(target, column, what):
    """Checks that a count stays the same once the calls that were running have ended."""
    goes_on(target, 0 if column else 1, what)
    before = ask(target)
    goes_on(target, 0 if column else 1, what)
    check(ask(target)[column] == before[column], f"{what}: {before} and then {ask(target)}")


def leave(sojourn, target, recorder, before, code, has_heap=False):
    """Checks that a detach restores the process. Only the code that frees blocks of a patched heap may stay."""
    done = sojourn.run(["detach", str(target.pid)], capture_output=True, text=True)
    check(done.returncode == 0 and recorder.wait(PATIENCE_S) == 0, f"detach: {done}")
    after, now = look(target.pid), code_bytes(target.pid)
    if has_heap:
        after["mappings"] = [row for row in after["mappings"] if row[1] != HEAP_NAME and row[:2] != ("r-xp", "")]
        now = {key: value for key, value in now.items() if key[2] != HEAP_NAME}
    check_same(before, after, code, now, "after detach")


def typed_calls(sojourn, database, *names):
    """Returns the values, by name, of the calls of a function that have values."""
    calls = {}
    for row in sojourn.sql(database, f"""SELECT a.call_id, coalesce(nullif(t.name, ''), 'result') AS name, a.value
            FROM arguments AS a JOIN calls USING (session_id, call_id) JOIN functions AS f USING (function_id)
            LEFT JOIN value_types AS t ON t.session_id = a.session_id AND t.function_id = f.function_id
            AND t.position = a.position WHERE f.name IN ({", ".join(repr(name) for name in names)})"""):
        check(row["name"] not in calls.setdefault(row["call_id"], {}), f"{row} is there twice")
        calls[row["call_id"]][row["name"]] = row["value"]
    return list(calls.values())
