#!/usr/bin/env python3
"""A program in other namespaces than the recorder's is recorded, launched and attached, with all its threads and its
children. The recorder uses its own numbers for processes and threads, never the program's: the first process of a PID
namespace is process 1 to itself only.

attach_namespaces.py BUILD_FOLDER; exits with 77 if namespaces cannot be made.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import check_same, code_bytes, has_agent, look, start_attach
from sojourn_testing import PATIENCE_S, build_sample, check, check_accounts, children, main, wait_for

PIDS = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
ALL = (*PIDS, "--mount", "--mount-proc", "--ipc", "--net", "--uts", "--cgroup")
CALLS_OF_CHILD = 500


def leaves(sojourn, database):
    rows = sojourn.sql(database, "SELECT total(calls) AS calls FROM function_stats JOIN functions USING (function_id) "
                       "WHERE name = 'leaf'")
    return rows[0]["calls"]


def has_host_numbers(sojourn, database, pids):
    """Each process and each first thread has its number of this test's namespace."""
    found = {row["pid"] for row in sojourn.sql(database, "SELECT pid FROM processes")}
    check(1 not in found and pids <= found, f"pids {sorted(found)}, and the host's are {sorted(pids)}")
    tids = {row["tid"] for row in sojourn.sql(database, "SELECT tid FROM threads WHERE is_main")}
    check(tids <= found and (not pids or tids), f"first threads {sorted(tids)} of the processes {sorted(found)}")


def test_launched(sojourn, program, namespaces):
    database = sojourn.path(f"launched-{len(namespaces)}.db")
    done, told = sojourn.record([*namespaces, program], database, text=True)
    check(done.returncode == 0 and "process 1" not in done.stderr, f"{namespaces}: {done}")
    check(leaves(sojourn, database) == int(done.stdout), f"{leaves(sojourn, database)} calls of {done.stdout}")
    check(told["lost_calls"] == 0 and not told["unrecorded_programs"], f"{namespaces}: {told}")
    own = sojourn.sql(database, "SELECT count(*) AS n FROM threads t JOIN processes p ON p.session_id = t.session_id AND "
                      "p.number = t.process_number WHERE executable LIKE '%own_numbers' AND NOT t.is_main")
    check(own[0]["n"] == 8, f"{own} threads of 8")
    has_host_numbers(sojourn, database, set())
    check_accounts(sojourn, database)


def start(program, namespaces, end, is_first):
    """Starts the program in namespaces, as their first process or as a child of it. Returns the process that made
    them, and the program's pid here."""
    words = [program, end] if is_first else ["sh", "-c", '"$@" & wait $!', "sh", program, end]
    maker = subprocess.Popen([*namespaces, *words], stdout=subprocess.PIPE, text=True)
    check(maker.stdout.readline() == "ready\n", "the program did not start")
    first = wait_for("the first process", lambda: children(maker.pid))[0]
    return maker, first if is_first else wait_for("the program", lambda: children(first))[0]


def test_attached(sojourn, program, namespaces, is_first):
    name = f"attached-{len(namespaces)}-{is_first}"
    database, end = sojourn.path(f"{name}.db"), sojourn.path(f"{name}.end")
    maker, pid = start(program, namespaces, end, is_first)
    before, code = look(pid), code_bytes(pid)
    recorder = start_attach(sojourn, pid, database)
    wait_for("calls of new threads", lambda: leaves(sojourn, database) > 20000)
    recorder.terminate()
    check(recorder.wait(PATIENCE_S) == 0, f"attach to {name}: {recorder.stderr.read()}")
    check(not has_agent(pid), f"{name} keeps the agent")
    check_same({key: before[key] for key in ("descriptors",)}, look(pid), code, code_bytes(pid), f"after {name}")
    with open(end, "wb"):
        pass
    counted = int(maker.communicate(timeout=PATIENCE_S)[0])
    check(maker.returncode == 0 and leaves(sojourn, database) <= counted, f"{name}: {maker.returncode}, {counted}")
    has_host_numbers(sojourn, database, {pid})
    check_accounts(sojourn, database)


def test(sojourn, _arguments):
    if subprocess.run([*ALL, "true"], check=False, capture_output=True).returncode != 0:
        print("skipped: namespaces cannot be made here")
        sys.exit(77)
    program = build_sample(sojourn, "own_numbers.c", "-O1", "-pthread")
    for namespaces in (PIDS, ALL):
        test_launched(sojourn, program, namespaces)
        for is_first in (True, False):
            test_attached(sojourn, program, namespaces, is_first)


main(test)
