#!/usr/bin/env python3
"""Rules that change calls where it is delicate: functions that end by a jump to another, that are left by
an exception or longjmp, that call themselves, or run in signal handlers; what Sojourn itself calls; and a
program that dies of a rule, whose session tells so.

rule_hazards.py BUILD_FOLDER
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main

SOURCE = r"""
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#define KEPT __attribute__((noipa))
extern "C" {
static volatile int one = 1;
KEPT int chg_last(int value) { one = 1; return value * one + 1; }
KEPT int chg_jumps(int value) { one = 1; return chg_last(value * one); } // by a jump
KEPT int chg_again(int depth) { return depth == 0 ? 100 * one : chg_again(depth - 1) + one; }
KEPT int chg_throws(int value) { if (value == one) { throw value; } return value * one + 5; }
KEPT int chg_thrower(int value) { try { return chg_throws(value) + 0 * one; } catch (int) { return -50; } }
static jmp_buf back;
KEPT int chg_long(int value) { if (value == one) { longjmp(back, 1); } return value * one + 7; }
KEPT int chg_handled(int value) { errno = 0; return value * one; }
static volatile sig_atomic_t handled, error;
static void handle(int number) { const int before = errno; handled = chg_handled(number); error = errno; errno = before; }
}
int main(int count, char **)
{
    printf("jumps %d %d\n", chg_jumps(1), chg_jumps(2));
    printf("last %d\n", chg_last(9));
    printf("again %d\n", chg_again(5));
    printf("throws %d %d\n", chg_thrower(1), chg_thrower(2));
    const int jumped = setjmp(back);
    printf("long %d\n", jumped != 0 ? -60 : chg_long(1));
    printf("long %d\n", chg_long(2));
    signal(SIGUSR1, handle);
    errno = 33;
    raise(SIGUSR1);
    printf("handler %d %d %d\n", (int)handled, (int)error, errno);
    if (count > 1) {
        volatile char *memory = static_cast<char *>(malloc(4000));
        memory[0] = 1; // dies of it
    }
    return 0;
}
"""
PLAIN = ["jumps 2 3", "last 10", "again 105", "throws -50 7", "long -60", "long 9", "handler 10 0 33"]


def rule(name, function, change, **more):
    where = {"result": True} if more.pop("result", False) else {"argument": 1}
    return {"name": name, "function": function, "as": "int", **where, **more, "change": change}


def equals(value):
    return {"when": {"op": "==", "value": value}}


def record(sojourn, command, rules, **more):
    database, policy = sojourn.path("hazards.db"), sojourn.path("hazards.json")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": rules, **more}, file)
    done, summary = sojourn.record(command, database, ["--policy", policy], text=True)
    check_accounts(sojourn, database)
    hits = sojourn.sql(database, "SELECT rule, value FROM rule_hits ORDER BY call_id, rule")
    return done, [(row["rule"], row["value"]) for row in hits], database, summary


def test_ways_out(sojourn, program):
    done, hits, database, _ = record(sojourn, [program], [
        # One that a jump reaches, and one that never gets to its jump.
        rule("last", "chg_last", {"return": 70}, **equals(1)),
        rule("jumps", "chg_jumps", {"return": 80}, **equals(2)),
        # What ends by a jump has no result of its own; its callee's is that of the call.
        rule("result", "chg_jumps", {"set": 90}, result=True),
        rule("deep", "chg_again", {"return": 1000}, **equals(2)),
        # A call that an exception or longjmp ends has no result to set.
        rule("thrown", "chg_throws", {"set": -1}, result=True),
        rule("left", "chg_long", {"set": -2}, result=True),
        rule("handler", "chg_handled", {"return": -3, "errno": 44})])
    expected = ["jumps 70 80", "last 10", "again 1003", "throws -50 -1", "long -60", "long -2", "handler -3 44 33"]
    check(done.returncode == 0 and done.stdout.splitlines() == expected, f"{done}")
    check(sorted(hits) == sorted([("last", 70), ("jumps", 80), ("deep", 1000), ("thrown", -1), ("left", -2), ("handler", -3)]),
          f"{hits}")
    endings = {(row["name"].split("(")[0], row["ending"]): row["n"] for row in sojourn.sql(
        database, "SELECT name, ending, count(*) AS n FROM calls JOIN functions USING (function_id) "
                  "WHERE name LIKE 'chg_%' GROUP BY 1, 2")}
    check(endings["chg_again", "returned"] == 4 and endings["chg_throws", "unwound"] == 1
          and endings["chg_long", "unwound"] == 1 and endings["chg_jumps", "returned"] == 2, f"{endings}")
    print("tail calls, unwound calls, recursion and handlers do as the rules say")


def test_dies(sojourn, program):
    """Without the rule it lives; with it, it dies as it would if malloc failed, and the session tells why."""
    rules = [{"name": "no memory", "function": "!malloc", "argument": 1, "as": "ulong",
              "when": {"op": "==", "value": 4000}, "change": {"return": 0, "errno": 12}}]
    more = {"modules": {"library_calls": True}}
    done, hits, database, _ = record(sojourn, [program, "die"], rules, **more)
    check(done.returncode in (-11, 128 + 11, 11) or "SIGSEGV" in done.stderr or "signal 11" in done.stderr, f"{done}")
    check(hits == [("no memory", 0)], f"{hits}")
    last = sojourn.sql(database, "SELECT f.name, c.ending FROM rule_hits JOIN calls AS c USING (session_id, call_id) "
                                 "JOIN functions AS f USING (function_id)")
    check([(row["name"].split("!")[1], row["ending"]) for row in last] == [("malloc", "returned")], f"{last}")
    check(subprocess.run([program, "die"], stdout=subprocess.DEVNULL, check=False).returncode == 0, "alone it dies, too")
    print("a program that dies of a rule dies of its own fault")


def test_own_calls(sojourn, program):
    """What the agent calls of the C library is its own: rules about the program's calls change none of it."""
    rules = [{"name": name, "function": f"!{name}", "argument": 1, "as": "long", "change": {"return": -1, "errno": 5}}
             for name in ("open", "read", "write", "mmap", "munmap", "nanosleep", "readlink", "socket", "connect")]
    done, hits, _, summary = record(sojourn, [program], rules, modules={"library_calls": True}, unmatched="allow")
    check(done.returncode == 0 and done.stdout.splitlines() == PLAIN, f"{done}")
    check(summary["calls"] > 20 and not hits, f"{summary['calls']} calls, {hits}")
    print("Sojourn's own calls are left alone")


def test(sojourn, arguments):
    sojourn.environment["XDG_CONFIG_HOME"] = sojourn.path("config")
    folder = sojourn.path("config/sojourn")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "changes.json"), "w", encoding="utf-8") as file:
        json.dump({"allow": [{"programs": ["*"], "functions": ["*"], "kinds": ["set", "return", "errno"]}]}, file)
    program = sojourn.path("hazards")
    subprocess.run(["g++", "-O2", "-w", "-x", "c++", "-", "-o", program], input=SOURCE, text=True, check=True)
    alone = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    check(alone == PLAIN, f"alone it says {alone}")
    test_ways_out(sojourn, program)
    test_dies(sojourn, program)
    test_own_calls(sojourn, program)


if __name__ == "__main__":
    main(test)
