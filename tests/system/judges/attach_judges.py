#!/usr/bin/env python3
"""The judges of the engine (judge_*.py) are attached to and left at random moments while they work:
nginx under load, redis-server under redis-benchmark and while it saves in forked children, git, the
sqlite3 shell over its long script, CPython's own tests, exceptions, threads, signals and coroutines.
They tell what they tell without, every byte of their code is as
before, and gdb attaches before and after. attach_judges.py BUILD_FOLDER [JUDGE...]; SJ_SEED=N repeats a
run. With SJ_LONG=1 each workload is repeated for two minutes, CPython's tests in any order for
fifteen."""
import contextlib
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import judge_nginx
import judge_redis
from attaching import (attach, attach_meanwhile, check_left, code_bytes, run_attached, run_plain)
from judge_git import history
from judge_python import LONG
from judge_sqlite import SCRIPT
from judging import compare, need
from sojourn_testing import check, main

IS_LONG = bool(os.environ.get("SJ_LONG"))
LONG_SECONDS = 120
LONG_CPYTHON_SECONDS = 900


def judge(sojourn, name, command, modules, chance, stdin=None, **options):
    """Attached to again and again; runs that are too short to be met are repeated."""
    expected, plain = run_plain(command, stdin, **options)
    rounds = calls = 0
    words = [word for module in modules for word in ("--module", module)]
    until = time.monotonic() + LONG_SECONDS
    for run in range(40 if IS_LONG else 10):
        if IS_LONG and calls > 0 and time.monotonic() > until:
            break
        digest, status, met, made = run_attached(sojourn, command, chance, words, stdin, **options)
        check((digest, status) == expected,
              f"{name} ends with {status}, unattached with {expected[1]}, or says something else")
        rounds, calls = rounds + met, calls + made
        if calls > 0 and not IS_LONG:
            break
    check(calls > 0, f"{name} was never met: {rounds} rounds, {calls} calls")
    print(f"{name}: {plain:.1f} s plain, {rounds} rounds, {calls} calls", flush=True)


def gdb_attaches(pid, when):
    done = subprocess.run(["gdb", "-q", "-nx", "-batch", "-p", str(pid), "-ex", "bt 3"],
                          capture_output=True, text=True, timeout=120, check=False)
    check("#0 " in done.stdout, f"gdb {when}: {done.stdout[-500:]} {done.stderr[-500:]}")


def judge_server(sojourn, chance):
    """nginx: its worker, while `ab` loads it and single requests are compared."""
    port = judge_nginx.free_port()
    folder = sojourn.path("nginx")
    judge_nginx.prepare(folder, port)
    path = os.path.join(folder, "nginx.conf")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        # The user of who attaches: see sojourn-attach(1).
        file.write("user root; " + text.replace("worker_processes 2", "worker_processes 1"))
    server = subprocess.Popen(["nginx", "-c", path, "-p", folder], stderr=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + 60
        while not (answers := try_fetch(port)):
            check(time.monotonic() < limit, "nginx does not listen")
            time.sleep(0.05)
        with open(f"/proc/{server.pid}/task/{server.pid}/children", encoding="utf-8") as file:
            worker = int(file.read().split()[0])
        code = code_bytes(worker)
        gdb_attaches(worker, "before")
        load = subprocess.Popen(["ab", "-q", "-n", "10000000", "-c", "8",
                                 f"http://127.0.0.1:{port}/middle.txt"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        calls = 0
        for i in range(60 if IS_LONG else 3):
            time.sleep(chance.uniform(0, 0.1))
            done, summary = attach(sojourn, worker, sojourn.path("nginx.db"),
                                   ["--for", f"{chance.randrange(20, 80)}ms", "--libs"])
            check(done.returncode == 0, f"nginx, round {i}: {done}")
            check_left(code, worker, "nginx")
            calls += summary["calls"]
            check(try_fetch(port) == answers, f"nginx answers otherwise in round {i}")
        check(load.poll() is None, "the load has ended early")
        load.kill()
        load.wait()
        gdb_attaches(worker, "after")
    finally:
        server.send_signal(signal.SIGQUIT)
        status = server.wait(timeout=60)
    check(status == 0 and calls > 1000, f"nginx ended with {status}, {calls} calls")
    print(f"nginx: {calls} calls")


def try_fetch(port):
    try:
        return "".join(judge_nginx.fetch(port, path) for path in
                       ("/small.txt", "/middle.txt", "/", "/none", "/again/middle.txt", "/gone"))
    except OSError:
        return ""


def judge_git(sojourn, chance):
    origin = sojourn.path("origin.git")
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", origin], check=True)
    subprocess.run(["git", "-C", origin, "fast-import", "--quiet"], text=True, check=True,
                   input="".join(history(3000 if IS_LONG else 400)))
    commands = {"log": ["log", "-p", "-C", "--find-copies-harder", "--word-diff", "--stat",
                        "--graph", "main"],
                "fsck": ["fsck", "--full", "--strict", "--no-progress"]}
    for name, words in commands.items() if IS_LONG else [("log", commands["log"])]:
        judge(sojourn, f"git {name}", ["git", "-C", origin, *words], ("git", "libz.so*"), chance)


def judge_redis_server(sojourn, chance):
    @contextlib.contextmanager
    def meanwhile(pid):
        with attach_meanwhile(sojourn, pid, chance, ["--libs"]) as met:
            yield
        check(met.calls > 1000, f"redis-server was never met: {met.rounds} rounds, {met.calls} calls")
        print(f"redis-server: {met.rounds} rounds, {met.calls} calls", flush=True)

    requests = "3000" if IS_LONG else "300"  # each of some twenty kinds
    plain = judge_redis.one_run(sojourn, sojourn.path("redis-plain"), requests, None)
    for run in range(3 if IS_LONG else 1):
        met = judge_redis.one_run(sojourn, sojourn.path(f"redis-{run}"), requests, None, meanwhile)
        compare("redis-server's answers", plain, met)


def judge_cpython(sojourn, name, chance):
    """Only the verdict is compared: the tests print times."""
    command = ["/usr/bin/python3.11", "-m", "test", "-q", name]
    try:
        plain = subprocess.run(command, capture_output=True, check=False, timeout=300)
    except subprocess.TimeoutExpired:
        check(IS_LONG, f"{name} takes too long without anybody attaching")
        print(f"CPython's {name}: left out, it takes too long here", flush=True)
        return
    calls = 0
    for _ in range(1 if IS_LONG else 20):  # it may be too short to be met at once
        _, status, rounds, calls = run_attached(sojourn, command, chance,
                                                ["--module", "python3.11"], forks_threads=True)
        check(status == plain.returncode, f"{name}: {status}, unattached {plain.returncode}")
        if calls > 0:
            break
    check(IS_LONG or calls > 0, f"{name} was never met")
    print(f"CPython's {name}: {rounds} rounds, {calls} calls", flush=True)


def judge_samples(sojourn, chance):
    build = os.path.dirname(os.path.dirname(sojourn.program))
    samples = os.path.join(build, "tests/samples/gcc-O2")
    judge(sojourn, "throws", [os.path.join(samples, "throws"), "20000" if IS_LONG else "2500"],
          ("throws", "libstdc++*", "libgcc_s*"), chance)
    for part in ("threads", "storm") if IS_LONG else ("storm",):
        judge(sojourn, f"life {part}", [os.path.join(samples, "life"), part], ("life",), chance)


def judge_sqlite(sojourn, chance):
    script = sojourn.path("script.sql")
    with open(script, "w", encoding="utf-8") as file:
        file.write(SCRIPT.format(rows=200000 if IS_LONG else 10000))
    judge(sojourn, "sqlite3", ["sqlite3", ":memory:"], ("sqlite3", "libsqlite3*"), chance, script)


def judge_python(sojourn, chance):
    names = LONG.split() if IS_LONG else ["test_generators"]
    chance.shuffle(names)
    until = time.monotonic() + LONG_CPYTHON_SECONDS
    for done, name in enumerate(names):
        if time.monotonic() > until:
            print(f"CPython: {done} of {len(names)} tests in {LONG_CPYTHON_SECONDS} s", flush=True)
            break
        judge_cpython(sojourn, name, chance)


JUDGES = {"samples": judge_samples, "sqlite3": judge_sqlite, "git": judge_git,
          "python": judge_python, "redis": judge_redis_server, "nginx": judge_server}


def test(sojourn, arguments):
    need("nginx", "ab", "git", "sqlite3", "gdb", "python3.11", "redis-server", "redis-benchmark")
    seed = int(os.environ.get("SJ_SEED", "0")) or random.randrange(1 << 30)
    print(f"seed {seed}", flush=True)
    for name in arguments or JUDGES:
        JUDGES[name](sojourn, random.Random(seed))


if __name__ == "__main__":
    main(test)
