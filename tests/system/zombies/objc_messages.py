#!/usr/bin/env python3
"""Finds messages to freed Objective-C objects, whatever code sends them. A finding has class, selector and the
program's own functions on both stacks. Each message returns zero. Programs without mistakes behave the same. C++
instance variables are destroyed at the same moments as without Sojourn.

objc_messages.py BUILD_FOLDER SAMPLES: by gcc and clang at -O0 and -O2; at each level with SJ_LONG=1
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import IS_LONG, check, main

# mistake: (class, selector, the program's functions that used and freed the object)
MESSAGES = {
    1: ("Duck", "quack", "send_message", "drop"),
    2: ("Duck", "release", "release_again", "drop"),
    3: ("Duck", "release", "drain_pool", "drop"),
    4: ("Duck", "retain", "retain_again", "drop"),
    5: ("Duck", "performSelector:", "perform", "drop"),
    6: ("Duck", "performSelector:withObject:", "turn_loop", "drop"),
    7: ("Duck", "retain", "invoke", "drop"),
    8: ("Duck", "performSelector:withObject:", "notify", "drop"),
    9: ("Duck", "retain", "fire_timer", "drop"),
    10: ("Duck", "performSelector:", "tell_all", "drop"),
    11: ("Duck", "isKindOfClass:", "describe_array", "drop"),
    12: ("Duck", "isKindOfClass:", "find_in_array", "drop"),
    13: ("Duck", "methodForSelector:", "empty_array", "drop"),
    14: ("Duck", "quack", "find_in_dictionary", "drop"),
    15: ("Duck", "quack", "find_in_set", "drop"),
    16: ("Duck", "respondsToSelector:", "format_text", "drop"),
    17: ("Duck", "measures", "get_large", "drop"),
    18: ("Duck", "depth", "get_long_double", "drop"),
    19: ("Duck", "speed", "get_double", "drop"),
    20: ("Duck", "slowness", "get_float", "drop"),
    21: ("Duck", "quack", "freed_by_thread", "drop"),
    22: ("Duck", "quack", "use_in_thread", "drop"),
    23: ("Duckling", "weight", "use_subclass", "drop"),
    24: ("MyString", "length", "use_string", "drop"),
    25: ("Duck", "methodForSelector:", "ask_for_code", "drop"),
    26: ("Duck", "weight", "look_up_code", "drop"),
    27: ("Duck", "respondsToSelector:", "ask_whether", "drop"),
    28: ("Duck", "isEqual:", "compare_dead", "drop"),
    29: ("Duck", "class", "ask_class", "drop"),
    30: ("Duck", "isKindOfClass:", "ask_kind", "drop"),
    31: ("Duck", "quack", "-[Nest wake]", "drop"),
    32: ("Duck", "weight", "-[Proxy forwardInvocation:]", "drop"),
    33: ("Proxy", "weight", "use_proxy", "drop"),
    34: ("Plain", "value", "use_plain", "-[Plain destroy]"),
    35: ("Duck", "release", "-[Owner dealloc]", "-[Owner dealloc]"),
    36: ("Swan", "quack", "-[Swan dealloc]", "-[Swan dealloc]"),
    37: ("Duck", "methodForSelector:", "sort_dead", "drop"),
    38: ("Duck", "quack", "enumerate", "drop"),
    39: ("Duck", "valueForKey:", "ask_for_key", "drop"),
    40: ("Duck", "quack", "catch_it", "drop"),
    41: ("Duck", "setWeight:", "use_observed", "drop"),
    42: ("Watcher", "observeValueForKeyPath:ofObject:change:context:", "tell_watcher", "drop"),
    43: ("Duck", "copy", "copy_dead", "drop"),
    44: ("Duck", "retain", "add_dead", "drop"),
    45: ("Duck", "hash", "take_address", "drop"),
    46: ("Duck", "dealloc", "call_kept_dealloc", "drop"),
    47: ("Duck", "weight", "use_replaced", "drop"),
    48: ("Duck", "weight", "call_kept_code", "drop"),
    49: ("Duck", "measures", "call_kept_large", "drop"),
    50: ("Duckling", "speed", "call_kept_double", "drop"),
    51: ("Duck", "quack", "call_kept_lookup", "drop"),
    52: ("Duckling", "weight", "doubled_weight", "drop"),
}
FOUND = ("SELECT z.class, z.selector, z.used_in, z.freed_in FROM zombie_reports r JOIN zombies z USING (zombie_id)"
         " WHERE z.kind = 'message_to_freed' ORDER BY r.report_id")
ACCOUNT = ("SELECT count(*) AS processes, sum(kept) AS kept, sum(kept_full) AS full, sum(kept_old) AS old,"
           " sum(kept_pressure) AS pressure, sum(kept_left) AS left, sum(kept_used) AS used, sum(not_kept) AS not_kept,"
           " sum(uses) AS uses, sum(suppressed) AS suppressed, group_concat(DISTINCT not_watched) AS not_watched"
           " FROM zombie_accounts")
REST = ["--profile", "--allow-unmatched", "--exclude", "*"]


def write_policy(sojourn, name, **objc):
    path = sojourn.path(f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "mode": "profile", "functions": {"exclude": ["*"]}, "unmatched": "allow",
                   "zombies": {"objc": objc, "reports_per_minute": 1000}}, file)
    return path


def record(sojourn, command, name, *options):
    database = sojourn.path(f"{name}.db")
    done, _ = sojourn.record(command, database, list(options) or ["--zombies", "objc", *REST])
    return done, database


def found_in(sojourn, database):
    return [tuple(row.values()) for row in sojourn.sql(database, FOUND)]


def account_of(sojourn, database):
    account = sojourn.sql(database, ACCOUNT)[0]
    reports = sojourn.sql(database, "SELECT count(*) AS reports FROM zombie_reports")[0]["reports"]
    check(account["uses"] == reports + account["suppressed"], f"{database}: {account}, {reports} reports")
    return account


def test_messages(sojourn, program, label):
    """Makes every mistake. A process makes a dozen of them, because a region holds only so many reports at once."""
    policy = write_policy(sojourn, "all")
    numbers = sorted(MESSAGES)
    for first in range(0, len(numbers), 12):
        part = numbers[first:first + 12]
        done, database = record(sojourn, [program, *map(str, part)], f"messages-{label}-{first}", "--policy", policy)
        check((done.returncode, done.stdout) == (0, b""), f"{program} {part}: {done}")
        check(account_of(sojourn, database)["not_watched"] == "", f"{program}: not watched")
        found = set(found_in(sojourn, database))
        wanted = {MESSAGES[number] for number in part}
        check(found == wanted, f"{program}: missing {wanted - found}, more than planted {found - wanted}")


def test_stripped(sojourn, program):
    """Methods have names without symbols, because the runtime's tables have them."""
    stripped = sojourn.path("stripped")
    subprocess.run(["strip", "-o", stripped, program], check=True)
    done, database = record(sojourn, [stripped, "31", "36"], "stripped")
    check((done.returncode, done.stdout) == (0, b""), f"{done}")
    found = {row[:3] for row in found_in(sojourn, database)}
    check(found == {MESSAGES[number][:3] for number in (31, 36)}, f"stripped: {found}")


def test_report(sojourn, program):
    """A report has the known facts about the object. An observed object has its class of the source code, not the
    runtime's class."""
    done, database = record(sojourn, [program, "47", "23"], "report")
    check(done.returncode == 0, f"{done}")
    rows = sojourn.sql(database, "SELECT payload FROM reports WHERE kind = 'message_to_freed' ORDER BY report_id")
    observed, duckling = (json.loads(row["payload"]) for row in rows)
    check((observed["class"], observed["real_class"]) == ("Duck", "MadeDuck"), f"{observed['real_class']}")
    check("i weight 0x00000007" in observed["values"], f"{observed['values']}")
    check(duckling["ancestors"] == ["Duck", "NSObject"] and "real_class" not in duckling, f"{duckling['ancestors']}")
    shown = sojourn.run(["zombies", "show", "1", "--database", database], capture_output=True, text=True)
    for wanted in ("-[Duck weight], an object of", "inherits from NSObject", "had i weight 0x00000007", "use_replaced"):
        check(wanted in shown.stdout, f"{wanted} is not in {shown.stdout}")
    again, _ = record(sojourn, [program, "23"], "report")
    check(again.returncode == 0, f"{again}")
    rows = sojourn.sql(database, "SELECT class, reports FROM zombies ORDER BY zombie_id")
    check([tuple(row.values()) for row in rows] == [("Duck", 1), ("Duckling", 2)], f"{rows}")


def test_same(sojourn, folder, parts):
    """Programs without mistakes print the same and have no report, and the queue of kept objects stays within its
    limit."""
    messages = os.path.join(folder, "messages")
    for name, program in (("work", messages), ("parts", parts)):
        plain = subprocess.run([program], capture_output=True, check=True)
        for objects in (20000, 500, 3):
            policy = write_policy(sojourn, f"{name}-{objects}", queue={"objects": objects})
            done, database = record(sojourn, [program], f"{name}-{objects}", "--policy", policy)
            check((done.returncode, done.stdout) == (0, plain.stdout), f"{program}: {done}, not {plain}")
            account = account_of(sojourn, database)
            check(account["uses"] == 0 and account["not_watched"] == "", f"{program}: {account}")
            check(account["kept"] >= 2000 and account["kept"] - account["full"] <= objects, f"{objects}: {account}")


def test_choice(sojourn, program):
    """Patterns select classes. Classes of system libraries are selected only on request."""
    for name, objc, numbers, wanted in (
            ("pattern", {"classes": ["Duck?ing", "Swan"]}, (23, 36), 2),
            ("exclude", {"exclude": ["Duck"]}, (23,), 1),
            ("replaced", {"classes": ["Duck"]}, (47,), 2001)):
        done, database = record(sojourn, [program, "0", *map(str, numbers)], name, "--policy",
                                write_policy(sojourn, name, **objc))
        check(done.returncode == 0, f"{name}: {done}")
        found = set(found_in(sojourn, database))
        check(found == {MESSAGES[number] for number in numbers}, f"{name}: {found}")
        check(account_of(sojourn, database)["kept"] == wanted, f"{name}: {account_of(sojourn, database)}")
    kept = {}
    for system in (False, True):
        policy = write_policy(sojourn, f"system-{system}", system=system)
        done, database = record(sojourn, [program], f"system-{system}", "--policy", policy)
        check(done.returncode == 0 and found_in(sojourn, database) == [], f"system: {done}")
        kept[system] = account_of(sojourn, database)["kept"]
    check(kept[True] > kept[False], f"{kept}")
    done, database = record(sojourn, [program, "23"], "option", "--zombies", "objc", "--zombie-class", "Duckl*", *REST)
    check(found_in(sojourn, database) == [MESSAGES[23]], f"option: {done}")


def test_on_use(sojourn, program):
    """With `stop` the program ends after the report. With `free` the object is freed."""
    done, database = record(sojourn, [program, "1", "2"], "stop", "--policy",
                            write_policy(sojourn, "stop", on_use="stop"))
    check(done.returncode == 128 + 6 and found_in(sojourn, database) == [MESSAGES[1]], f"stop: {done}")
    done, database = record(sojourn, [program, "1", "2"], "free", "--policy",
                            write_policy(sojourn, "free", on_use="free"))
    check(done.returncode == 0 and account_of(sojourn, database)["used"] == 2, f"free: {done}")


EVENTS = "SELECT event, owners, function, partner FROM zombie_events ORDER BY report_id, number"


def test_history(sojourn, program):
    """Records allocations, retains, releases and autoreleases with the function of each, so that a missing partner
    shows."""
    policy = write_policy(sojourn, "history", history=True)
    for number, wanted in ((3, [("allocation", 1, "make_duck", 1), ("autorelease", 1, "drain_pool", 0),
                                ("release", 0, "drop", None)]),
                           (14, [("allocation", 1, "make_duck", 3), ("retain", 2, "find_in_dictionary", 2),
                                 ("release", 1, "drop", 1), ("release", 0, "drop", 0)])):
        done, database = record(sojourn, [program, str(number)], f"history-{number}", "--policy", policy)
        check((done.returncode, done.stdout) == (0, b""), f"{done}")
        events = [tuple(row.values()) for row in sojourn.sql(database, EVENTS)]
        check(events == wanted, f"{number}: {events}")
        report = json.loads(sojourn.sql(database, "SELECT payload FROM reports WHERE monitor <> 'code' AND kind <> 'account'")[0]["payload"])
        check(report["history_is_whole"] is True, f"{report['history_is_whole']}")
    shown = sojourn.run(["zombies", "show", "1", "--database", database], capture_output=True, text=True)
    check("#1  retain       owners 2  partner #2" in shown.stdout, f"{shown.stdout}")
    policy_of_one = write_policy(sojourn, "history-of-one", history=["Duckl*"])
    done, database = record(sojourn, [program, "3", "23"], "history-of-one", "--policy", policy_of_one)
    check(done.returncode == 0 and len(found_in(sojourn, database)) == 2, f"{done}")
    kept = sojourn.sql(database, "SELECT DISTINCT class FROM zombie_events JOIN zombie_reports USING (report_id)"
                                 " JOIN zombies USING (zombie_id)")
    check(kept == [{"class": "Duckling"}], f"{kept}")
    plain = subprocess.run([program], capture_output=True, check=True)
    done, database = record(sojourn, [program], "history", "--policy", policy)
    check((done.returncode, done.stdout) == (0, plain.stdout), f"{done}")
    rows = sojourn.sql(database, "SELECT count(*) AS events FROM zombie_events")
    check(rows == [{"events": 0}], f"{rows}")


def test_threads(sojourn, program):
    """There are more threads than slabs. No thread waits for another."""
    plain = subprocess.run([program, "threads"], capture_output=True, check=True)
    for objects in (3, 40, 20000):
        policy = write_policy(sojourn, f"threads-{objects}", queue={"objects": objects}, system=objects == 40)
        done, database = record(sojourn, [program, "threads"], f"threads-{objects}", "--policy", policy)
        check((done.returncode, done.stdout) == (0, plain.stdout), f"{objects}: {done}")
        account = account_of(sojourn, database)
        check(account["uses"] == 0 and account["kept"] - account["full"] <= objects, f"{objects}: {account}")
        check(account["kept"] + account["not_kept"] >= 16000, f"{objects}: {account}")


def test_forked(sojourn, program):
    """A forked child whose threads free objects is watched, too."""
    plain = subprocess.run([program], capture_output=True, check=True)
    done, database = record(sojourn, [program, "fork"], "fork")
    check((done.returncode, done.stdout) == (0, 2 * plain.stdout + b"the child returned 0\n"), f"{done}, not {plain}")
    check(found_in(sojourn, database) == [MESSAGES[22]], f"{found_in(sojourn, database)}")
    account = account_of(sojourn, database)
    check((account["processes"], account["not_watched"]) == (2, ""), f"{account}")


def test_refused(sojourn, program):
    """A program that keeps freed objects itself is not watched, and the summary says so."""
    done, database = record(sojourn, ["env", "NSZombieEnabled=YES", program], "own")
    check(done.returncode == 0, f"{done}")
    check("NSZombieEnabled" in account_of(sojourn, database)["not_watched"], f"{account_of(sojourn, database)}")


def test(sojourn, arguments):
    samples = arguments[0]
    for compiler in ("gcc", "clang"):
        for level in range(4) if IS_LONG else (0, 2):
            test_messages(sojourn, os.path.join(samples, f"{compiler}-O{level}", "messages"), f"{compiler}{level}")
    folder = os.path.join(samples, "gcc-O2")
    program = os.path.join(folder, "messages")
    test_stripped(sojourn, program)
    test_report(sojourn, program)
    test_same(sojourn, folder, os.path.join(samples, "clang-O1", "parts"))
    test_choice(sojourn, program)
    test_on_use(sojourn, program)
    test_history(sojourn, program)
    test_threads(sojourn, program)
    test_forked(sojourn, program)
    test_refused(sojourn, program)


if __name__ == "__main__":
    main(test)
