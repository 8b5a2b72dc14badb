#!/usr/bin/env python3
"""Rules lead Debian's programs to paths that rarely run: a file that may not be opened, memory that is missing,
short reads, connections that fail or are refused for a while, statements that fail. python3, curl, sqlite3 and
redis react as to the real failure, and keep working. The number of changes equals the counts of strace and of the
programs.

error_paths.py BUILD_FOLDER
"""
import json
import os
import re
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target
from sojourn_testing import PATIENCE_S, SAMPLES, check, main, wait_for

PYTHON = os.path.realpath("/usr/bin/python3.11")
ALL = ["set", "return", "errno", "delay"]


def permit(sojourn, programs):
    folder = sojourn.path("config/sojourn")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "changes.json"), "w", encoding="utf-8") as file:
        json.dump({"allow": [{"programs": programs, "functions": ["*"], "kinds": ALL}]}, file)


def policy_file(sojourn, name, rules, module=None):
    """Writes a policy that records only the functions of the rules, of a library if one is given."""
    policy = {"policy": 1, "functions": {"include": sorted({rule["function"] for rule in rules})}, "values": rules}
    if module is not None:
        policy["modules"] = {"system": True, "include": [module]}
    path = sojourn.path(name + ".json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(policy, file)
    return path


def change(name, function, argument, kind, what, when=None):
    rule = {"name": name, "function": function, "argument": argument, "as": kind, "change": what}
    return {**rule, "when": when} if when else rule


def record(sojourn, name, rules, command, module=None, before=(), **options):
    """Records a command. `before` is the command that runs the recorder."""
    database = sojourn.path(name + ".db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    done = subprocess.run([*before, sojourn.program, "record", "-q", "-o", database, "--policy",
                           policy_file(sojourn, name, rules, module), "--", *command], capture_output=True, text=True,
                          env=sojourn.environment, timeout=PATIENCE_S, check=False, **options)
    check(done.returncode >= 0 and done.returncode < 125, f"{command} ended with {done.returncode}: {done.stderr}")
    hits = {row["rule"]: row["n"] for row in sojourn.sql(
        database, "SELECT rule, count(DISTINCT call_id) AS n FROM rule_hits GROUP BY 1")}
    return done, hits


def script(sojourn, name, text):
    path = sojourn.path(name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def python_may_not_open(sojourn):
    path = script(sojourn, "hello.py", "print('hello')\n")
    denied = [change("deny", "_Py_fopen_obj", 1, "pointer", {"return": 0, "errno": 13})]
    done, hits = record(sojourn, "deny", denied, [PYTHON, "-I", "-S", path])
    check(done.returncode == 2 and done.stdout == "" and hits == {"deny": 1}, f"{hits}: {done}")
    check("can't open file" in done.stderr and "[Errno 13] Permission denied" in done.stderr, done.stderr)


def python_handles_failing_allocations(sojourn):
    path = os.path.join(SAMPLES, "policy", "no_memory.py")
    large = {"op": ">=", "value": 5000000}
    for what, expected in (({"return": 0, "times": 3}, 3), ({"return": 0, "from": 4, "one_in": 2}, 9), ({"return": 0}, 20)):
        rules = [change("memory", "PyObject_Malloc", 1, "ulong", what, large)]
        done, hits = record(sojourn, "memory", rules, [PYTHON, "-I", "-S", path])
        check(done.returncode == 0 and done.stderr == "", f"{what}: {done}")
        check(abs(int(done.stdout) - expected) <= 1 and hits == {"memory": int(done.stdout)},
              f"{what}: {hits}, it counts {done.stdout}")


def count_reads(trace):
    """Counts reads of 7 bytes from descriptor 77. Lines of other threads may come between the two halves of a read."""
    seen, begun = 0, set()
    with open(trace, encoding="utf-8", errors="replace") as file:
        for line in file:
            pid = line.split()[0]
            is_one = "read(77," in line or (pid in begun and "read resumed>" in line)
            begun.discard(pid)
            if is_one and line.rstrip().endswith("<unfinished ...>"):
                begun.add(pid)
            elif is_one:
                seen += re.search(r", 7\) += \d+$", line.rstrip()) is not None
    return seen


def python_handles_short_reads(sojourn):
    """The rule fires as often as strace shows short reads."""
    data = script(sojourn, "data", "".join(f"{i}\n" for i in range(500)))
    path = os.path.join(SAMPLES, "policy", "reads_little.py")
    on_file = [{"argument": 1, "as": "int", "op": "==", "value": 77}, {"argument": 3, "as": "ulong", "op": ">", "value": 7}]
    rules = [change("short", "_Py_read", 3, "ulong", {"set": 7}, on_file)]
    trace = sojourn.path("trace")
    done, hits = record(sojourn, "short", rules, [PYTHON, "-I", "-S", path, data],
                        before=["strace", "-f", "-e", "trace=read", "-o", trace])
    check(done.stdout == f"True {os.path.getsize(data)}\n", f"{done}")
    seen = count_reads(trace)
    check(hits == {"short": seen} and seen > 2 * os.path.getsize(data) // 7, f"{hits}, strace saw {seen}")
    return seen


def curl_is_refused(sojourn):
    first, second = script(sojourn, "first", "one\n"), script(sojourn, "second", "two\n")
    refused = [change("refused", "curl_easy_perform", 1, "pointer", {"return": 7, "times": 1})]
    command = ["curl", "-sS", f"file://{first}", f"file://{second}"]
    done, hits = record(sojourn, "curl", refused, command, "*libcurl*")
    check(done.stdout == "two\n" and hits == {"refused": 1} and "curl: (7)" in done.stderr, f"{hits}: {done}")
    slow = [change("slow", "curl_easy_perform", 1, "pointer", {"delay": "50ms"})]
    done, hits = record(sojourn, "curl", slow, command, "*libcurl*")
    check(done.stdout == "one\ntwo\n" and done.returncode == 0 and hits == {"slow": 2}, f"{hits}: {done}")


def sqlite_fails(sojourn):
    statements = "CREATE TABLE t(a);\nINSERT INTO t VALUES (1);\nSELECT a + 1 FROM t;\n"
    for code, what in ((7, {"return": 7, "times": 1}), (5, {"return": 5, "from": 2, "times": 1})):
        rules = [change("fails", "sqlite3_prepare_v2", 1, "pointer", what)]
        done, hits = record(sojourn, "sqlite", rules, ["sqlite3", ":memory:"], "*libsqlite3*", input=statements)
        told = [line for line in done.stderr.splitlines() if line.endswith(f"({code})")]
        check(hits == {"fails": 1} and len(told) == 1 and done.returncode == 1, f"{what}: {hits}: {done}")
    done, hits = record(sojourn, "sqlite", [change("late", "sqlite3_prepare_v2", 1, "pointer", {"return": 7, "from": 100})],
                        ["sqlite3", ":memory:"], "*libsqlite3*", input=statements)
    check(done.stdout == "2\n" and done.stderr == "" and hits == {}, f"{hits}: {done}")
    done, hits = record(sojourn, "sqlite", [change("open", "sqlite3_open_v2", 1, "pointer", {"return": 14})],
                        ["sqlite3", sojourn.path("t.sqlite"), "SELECT 1"], "*libsqlite3*")
    check(done.returncode == 1 and "unable to open database" in done.stderr and hits["open"] >= 1, f"{hits}: {done}")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def redis_cannot_accept(sojourn):
    """redis gets no descriptor for the first two connections and reports it. It serves the client when it gets one."""
    port, log = free_port(), sojourn.path("redis.log")
    database = sojourn.path("redis.db")
    rules = [change("accept", "anetTcpAccept", 2, "int", {"return": -1, "errno": 24, "times": 2})]
    target = Target([sojourn.program, "record", "-q", "-o", database, "--policy", policy_file(sojourn, "redis", rules),
                     "--", "redis-server", "--port", str(port), "--save", "", "--appendonly", "no", "--logfile", log,
                     "--dir", sojourn.folder], env=sojourn.environment)
    try:
        def says(words, answer):
            done = subprocess.run(["redis-cli", "-p", str(port), *words], capture_output=True, text=True, check=False,
                                  timeout=PATIENCE_S)
            return done.stdout.strip() == answer
        wait_for("an answer of redis", lambda: says(["ping"], "PONG"))
        check(says(["set", "key", "value"], "OK") and says(["get", "key"], "value"), "redis does not work")
        subprocess.run(["redis-cli", "-p", str(port), "shutdown", "nosave"], capture_output=True, check=False,
                       timeout=PATIENCE_S)
        check(target.process.wait(PATIENCE_S) == 0, "redis ended with an error")
    finally:
        target.kill()
    hits = sojourn.sql(database, "SELECT count(DISTINCT call_id) AS n FROM rule_hits WHERE rule = 'accept'")[0]["n"]
    with open(log, encoding="utf-8") as file:
        said = file.read().count("Accepting client connection")
    check(hits == 2 and said == 2, f"{hits} hits, redis says it {said} times")


def test(sojourn, arguments):
    sojourn.environment["XDG_CONFIG_HOME"] = sojourn.path("config")
    check(all(shutil.which(name) for name in ("curl", "sqlite3", "redis-server", "strace")), "a program is not there")
    permit(sojourn, [PYTHON, *(os.path.realpath(shutil.which(name)) for name in ("curl", "sqlite3", "redis-server"))])
    python_may_not_open(sojourn)
    python_handles_failing_allocations(sojourn)
    seen = python_handles_short_reads(sojourn)
    curl_is_refused(sojourn)
    sqlite_fails(sojourn)
    redis_cannot_accept(sojourn)
    print(f"{seen} short reads, as strace sees them")


if __name__ == "__main__":
    main(test)
