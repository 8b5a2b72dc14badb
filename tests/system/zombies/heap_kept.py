#!/usr/bin/env python3
"""Delays frees of ordinary blocks. A write, a second free or a virtual call on such a block is found, in launched and
attached programs. Sizes, call sites and classes that the policy names are always guarded.

heap_kept.py BUILD_FOLDER SAMPLES: by gcc and clang at -O0 and -O2, at each level with SJ_LONG=1
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from attaching import Target, check_left, code_bytes, set_policy, start_attach
from heap_attached import Heap, Recorded, leave
from sojourn_testing import IS_LONG, check, main

DROP, DUCK = "drop_block(char*)", "zoo::duck"
# Mistake: (kind, own functions that used and freed, class and function of a virtual call)
KEPT = {
    1: ("write_after_free", "", DROP, "", ""),
    2: ("double_free", DROP, DROP, "", ""),
    3: ("double_free", "resize_freed()", DROP, "", ""),
    4: ("virtual_call_on_freed", "ask_name(named const*)", "drop_duck(named*)", DUCK, "zoo::duck::name() const"),
    5: ("virtual_call_on_freed", "ask_count(counted const*)", "drop_duck(named*)", DUCK, "zoo::duck::count() const"),
    6: ("virtual_call_on_freed", "ask_speed(zoo::duck const*)", "drop_duck(named*)", DUCK, "zoo::duck::speed() const"),
    7: ("virtual_call_on_freed", "ask_measures(zoo::duck const*)", "drop_duck(named*)", DUCK,
        "zoo::duck::measures() const"),
    8: ("virtual_call_on_freed", "drop_duck(named*)", "drop_duck(named*)", DUCK, "zoo::duck::~duck()"),
    9: ("use_after_free", "read_block(char const volatile*, long)", DROP, "", ""),
    10: ("use_after_free", "read_block(char const volatile*, long)", DROP, "", ""),
    12: ("write_after_free", "", "grow(char*)", "", ""),
    13: ("virtual_call_on_freed", "ask_last(many<50> const*)", "drop_many(many<50>*)", "many<50>",
         "many<50>::call(char (*) [407]) const"),
}
FOUND = ("SELECT z.kind, z.used_in, z.freed_in, z.class, z.selector FROM zombie_reports r"
         " JOIN zombies z USING (zombie_id) ORDER BY r.report_id")
ACCOUNT = ("SELECT sum(guarded) AS guarded, sum(uses) AS uses, sum(suppressed) AS suppressed,"
           " sum(delayed) AS kept, sum(delayed_full) AS full, sum(delayed_pressure) AS pressure,"
           " sum(delayed_left) AS left, group_concat(DISTINCT not_watched) AS not_watched FROM zombie_accounts")
GUARD = {"bytes": [777], "caller": ["make_named_block*"]}


def write_zombies(sojourn, name, zombies):
    path = sojourn.path(f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "mode": "profile", "zombies": zombies}, file)
    return path


def write_policy(sojourn, name, **heap):
    heap = {"delayed_free": True, "vtables": True, "guard": GUARD, **heap}
    return write_zombies(sojourn, name, {"heap": heap})


def record(sojourn, command, name, policy):
    database = sojourn.path(f"{name}.db")
    done, _ = sojourn.record([str(word) for word in command], database, ["--policy", policy])
    return done, database


def found_in(sojourn, database):
    return [tuple(row.values()) for row in sojourn.sql(database, FOUND)]


def account_of(sojourn, database):
    account = sojourn.sql(database, ACCOUNT)[0]
    check(account["not_watched"] == "", f"{database}: {account}")
    return account


def common(row):
    """Returns the parts of a finding that do not depend on optimisation. At -O0, destructors have stack frames and
    leave the table of a base class."""
    kind, used, freed, name, function = row
    freed = {"zoo::duck::~duck()": "drop_duck(named*)", "many<50>::~many()": "drop_many(many<50>*)"}.get(freed, freed)
    return (kind, used, freed, name, bool(function))


def test_found(sojourn, folder, label):
    program = os.path.join(folder, "kept")
    numbers = [0, *sorted(KEPT)]
    done, database = record(sojourn, [program, *numbers], f"found-{label}", write_policy(sojourn, "all"))
    check((done.returncode, done.stdout.decode().split()) == (0, [str(number) for number in numbers]), f"{done}")
    found = found_in(sojourn, database)
    if label == "gcc2":
        check(set(found) == set(KEPT.values()), f"{program}: {found}")
    found, wanted = sorted(map(common, found)), sorted(map(common, KEPT.values()))
    check(found == wanted, f"{program}: {found}, not {wanted}")
    check(account_of(sojourn, database)["uses"] == len(KEPT), f"{account_of(sojourn, database)}")


def test_stripped(sojourn, folder):
    """Without symbols, the class comes from the type information."""
    program = sojourn.path("stripped")
    subprocess.run(["strip", "-o", program, os.path.join(folder, "kept")], check=True)
    done, database = record(sojourn, [program, 4], "stripped", write_policy(sojourn, "all"))
    found = [(row[0], row[3]) for row in found_in(sojourn, database)]
    check(done.returncode == 0 and found == [("virtual_call_on_freed", DUCK)], f"{done}, {found}")


def test_same(sojourn, folder):
    """Programs without mistakes behave the same, and no more blocks are kept than the policy says."""
    program = os.path.join(folder, "kept")
    for blocks, memory in ((4096, "16M"), (16, "16M"), (100000, "1M")):
        policy = write_policy(sojourn, f"same-{blocks}", delayed_free={"blocks": blocks, "memory": memory})
        done, database = record(sojourn, [program, 0, 11], f"same-{blocks}", policy)
        check((done.returncode, done.stdout) == (0, b"0\n11\n"), f"{done}")
        account = account_of(sojourn, database)
        held = account["kept"] - account["full"] - account["left"]
        check(account["uses"] == 0 and account["kept"] > 10000 and 0 < held <= blocks, f"{blocks}: {account}")
        check(blocks < 100000 or held < 1 << 20 >> 7, f"more than {memory}: {account}")
    for command in (["python3", "-c", "import json; print(len(json.dumps(list(range(50000)))))"],
                    ["redis-server", "--version"], ["perl", "-e", "my @a = map {$_ x 3} 1..30000; print scalar @a"]):
        plain = subprocess.run(command, capture_output=True, check=True)
        done, database = record(sojourn, command, f"same-{command[0]}", write_policy(sojourn, "all"))
        check((done.returncode, done.stdout) == (0, plain.stdout), f"{command}: {done}")
        account = account_of(sojourn, database)
        check(account["uses"] == 0 and account["kept"] > 0, f"{command}: {account}")


def test_attached(sojourn, program):
    """Attaches and detaches twice. The process is unchanged afterwards."""
    target = Heap(program)
    target.obey(0)
    code = code_bytes(target.pid)
    for turn in range(2):
        database = sojourn.path(f"attached-{turn}.db")
        policy = write_policy(sojourn, "all")
        recorder = start_attach(sojourn, target.pid, database, ["--policy", policy])
        target.obey(0, *sorted(KEPT))
        leave(recorder, target.pid)
        found = set(found_in(sojourn, database))
        wanted = set(KEPT.values())
        check(found == wanted, f"turn {turn}: missing {wanted - found}, more than planted {found - wanted}")
        account = account_of(sojourn, database)
        check(account["kept"] == account["full"] + account["left"] > 10000, f"turn {turn}: {account}")
        check_left(code, target.pid, f"turn {turn}")
        target.obey(0)
    check(target.finish()[0] == 0, "the program did not end well")


def test_set(sojourn, program):
    """A policy starts and ends delayed frees of a program that is recorded. Half of the blocks are freed on command."""
    database = sojourn.path("set.db")
    target = Recorded(sojourn, program, database, "--profile")
    target.obey(0, 0)
    answer = set_policy(sojourn, target.program, "--policy", write_policy(sojourn, "all"))
    check(answer["not_applied"] == [], f"{answer}")
    target.obey(0, 4, 1)
    shrunk = sojourn.run(["zombies", "shrink", str(target.program)], capture_output=True)
    check(shrunk.returncode == 0, f"{shrunk}")
    target.obey(0)
    set_policy(sojourn, target.program, "--policy", write_zombies(sojourn, "none", None))
    target.obey(0)
    check(target.finish()[0] == 0, "the program did not end well")
    found = set(found_in(sojourn, database))
    check(found == {KEPT[4], KEPT[1]}, f"{found}")
    account = account_of(sojourn, database)
    check(account["pressure"] > 0 and account["left"] > 0, f"{account}")


def test_classes(sojourn, folder):
    """Uses of instance variables are found, with the class, if the policy names the class. Messages to such objects
    return zero."""
    policy = write_zombies(sojourn, "classes", {"heap": {"guard": {"class": ["Egg"]}}, "objc": True})
    done, database = record(sojourn, [os.path.join(folder, "guarded")], f"classes-{os.path.basename(folder)}", policy)
    check((done.returncode, done.stdout) == (0, b"40\n39\n2\n"), f"{done}")
    check_classes(sojourn, database, folder)


def check_classes(sojourn, database, what):
    found = [row[:4] for row in found_in(sojourn, database)]
    wanted = [("use_after_free", function, "drop_egg", "Egg") for function in ("read_warmth", "write_days", "ask_warmth")]
    check(found == wanted, f"{what}: {found}")
    # The first allocation of a class makes the runtime allocate a block, too.
    check(3 <= account_of(sojourn, database)["guarded"] <= 5, f"{what}: {account_of(sojourn, database)}")


def test_classes_attached(sojourn, folder):
    """Attaches, detaches, and attaches again."""
    policy = write_zombies(sojourn, "classes", {"heap": {"guard": {"class": ["Egg"]}}, "objc": True})
    target = Target([os.path.join(folder, "guarded"), "-"]).ready()
    for turn in range(2):
        database = sojourn.path(f"classes-attached-{turn}.db")
        recorder = start_attach(sojourn, target.pid, database, ["--policy", policy])
        target.process.stdin.write("\n")
        target.process.stdin.flush()
        said = [target.process.stdout.readline().strip() for _ in range(3)]
        check(said == ["40", "39", "2"], f"attached, turn {turn}: {said}")
        leave(recorder, target.pid)
        check_classes(sojourn, database, f"attached, turn {turn}")
    check(target.finish()[0] == 0, "the program did not end well")


def test(sojourn, arguments):
    samples = arguments[0]
    levels = range(4) if IS_LONG else (0, 2)
    for compiler in ("gcc", "clang"):
        for level in levels:
            test_found(sojourn, os.path.join(samples, f"{compiler}-O{level}"), f"{compiler}{level}")
    folder = os.path.join(samples, "gcc-O2")
    test_stripped(sojourn, folder)
    test_same(sojourn, folder)
    test_attached(sojourn, os.path.join(folder, "kept"))
    test_set(sojourn, os.path.join(folder, "kept"))
    for level in levels:
        test_classes(sojourn, os.path.join(samples, f"gcc-O{level}"))
    test_classes_attached(sojourn, folder)


if __name__ == "__main__":
    main(test)
