#!/usr/bin/env python3
"""Attaches to the judges of the engine (judge_*.py) and detaches at random moments while they work: nginx under
load; redis-server under redis-benchmark and while it saves in forked children; git; the sqlite3 shell over its long
script; CPython's own tests; exceptions, threads, signals and coroutines. They print and return the same as
unattached, every byte of their code is restored, and gdb attaches before and after. The size of a workload doubles
if the workload ends before an attach. attach_judges.py BUILD_FOLDER [JUDGE...]; SJ_SEED=N repeats a run. With
SJ_LONG=1 the workloads are larger, and each is repeated for two minutes, CPython's tests, in any order, for
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
from attaching import (attach, attach_meanwhile, check_left, code_bytes, run_attached, run_plain,
                       until_met)
from judge_git import history
from judge_python import LONG
from judge_sqlite import SCRIPT
from judging import compare, need
from sojourn_testing import PATIENCE_S, check, children, main, wait_for

IS_LONG = bool(os.environ.get("SJ_LONG"))
LONG_SECONDS = 120
LONG_CPYTHON_SECONDS = 900


def judge(sojourn, name, workload, modules, chance):
    """Attaches to a workload repeatedly. workload(size) returns a command and the file that it reads, or None."""
    words = [word for module in modules for word in ("--module", module)]
    until = time.monotonic() + LONG_SECONDS

    def judge_once(size):
        command, stdin = workload(size)
        expected, plain = run_plain(command, stdin)
        rounds = calls = 0
        for _ in range(40 if IS_LONG else 1):
            digest, status, met, made = run_attached(sojourn, command, chance, words, stdin)
            check((digest, status) == expected,
                  f"{name} ends with {status}, unattached with {expected[1]}, or says something else")
            rounds, calls = rounds + met, calls + made
            if time.monotonic() > until:
                break
        print(f"{name}, size {size}: {plain:.1f} s plain, {rounds} rounds, {calls} calls", flush=True)
        return rounds, calls

    until_met(judge_once)


def gdb_attaches(pid, when):
    done = subprocess.run(["gdb", "-q", "-nx", "-batch", "-p", str(pid), "-ex", "bt 3"],
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    check("#0 " in done.stdout, f"gdb {when}: {done.stdout[-500:]} {done.stderr[-500:]}")


def judge_server(sojourn, chance):
    """Attaches to nginx's worker while `ab` loads it and single requests are compared."""
    port = judge_nginx.free_port()
    folder = sojourn.path("nginx")
    judge_nginx.prepare(folder, port)
    path = os.path.join(folder, "nginx.conf")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        # The worker runs as the user that attaches: see sojourn-attach(1).
        file.write("user root; " + text.replace("worker_processes 2", "worker_processes 1"))
    server = subprocess.Popen(["nginx", "-c", path, "-p", folder], stderr=subprocess.DEVNULL)
    try:
        answers = wait_for("nginx answers", lambda: try_fetch(port))
        worker = children(server.pid)[0]
        code = code_bytes(worker)
        gdb_attaches(worker, "before")
        load = subprocess.Popen(["ab", "-q", "-n", "10000000", "-c", "8",
                                 f"http://127.0.0.1:{port}/middle.txt"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        calls = rounds = 0
        while rounds < (60 if IS_LONG else 2) or (calls <= 1000 and rounds < 600):
            time.sleep(chance.uniform(0, 0.1))
            done, summary = attach(sojourn, worker, sojourn.path("nginx.db"),
                                   ["--for", f"{chance.randrange(20, 80)}ms", "--libs"])
            check(done.returncode == 0, f"nginx, round {rounds}: {done}")
            check_left(code, worker, "nginx")
            calls += summary["calls"]
            check(try_fetch(port) == answers, f"nginx answers otherwise in round {rounds}")
            rounds += 1
        check(load.poll() is None, "the load has ended early")
        load.kill()
        load.wait()
        gdb_attaches(worker, "after")
    finally:
        server.send_signal(signal.SIGQUIT)
        status = server.wait(timeout=PATIENCE_S)
    check(status == 0 and calls > 1000, f"nginx ended with {status}, {calls} calls")
    print(f"nginx: {calls} calls")


def try_fetch(port):
    try:
        return "".join(judge_nginx.fetch(port, path) for path in
                       ("/small.txt", "/middle.txt", "/", "/none", "/again/middle.txt", "/gone"))
    except OSError:
        return ""


def judge_git(sojourn, chance):
    commands = {"log": ["log", "-p", "-C", "--find-copies-harder", "--word-diff", "--stat",
                        "--graph", "main"],
                "fsck": ["fsck", "--full", "--strict", "--no-progress"]}
    for name, words in commands.items() if IS_LONG else [("log", commands["log"])]:
        def workload(size, words=words):
            commits = (3000 if IS_LONG else 60) * size
            origin = sojourn.path(f"origin-{commits}.git")
            if not os.path.exists(origin):
                subprocess.run(["git", "init", "-q", "--bare", "-b", "main", origin], check=True)
                subprocess.run(["git", "-C", origin, "fast-import", "--quiet"], text=True, check=True,
                               input="".join(history(commits)))
            return ["git", "-C", origin, *words], None

        judge(sojourn, f"git {name}", workload, ("git", "libz.so*"), chance)


def judge_redis_server(sojourn, chance):
    def judge_once(size):
        rounds = []

        @contextlib.contextmanager
        def meanwhile(pid):
            with attach_meanwhile(sojourn, pid, chance, ["--libs"]) as met:
                rounds.append(met)
                yield

        requests = str((3000 if IS_LONG else 100) * size)  # requests of each of about twenty kinds
        plain = judge_redis.one_run(sojourn, sojourn.path(f"redis-plain-{size}"), requests, None)
        for run in range(3 if IS_LONG else 1):
            met = judge_redis.one_run(sojourn, sojourn.path(f"redis-{size}-{run}"), requests, None,
                                      meanwhile)
            compare("redis-server's answers", plain, met)
        sums = sum(met.rounds for met in rounds), sum(met.calls for met in rounds)
        print(f"redis-server, size {size}: {sums[0]} rounds, {sums[1]} calls", flush=True)
        return sums

    until_met(judge_once, least_calls=1000)


def judge_cpython(sojourn, name, chance):
    """Compares only the verdict, because the tests print times."""
    def judge_once(size):
        command = ["/usr/bin/python3.11", "-m", "test", "-q", *[name] * size]
        try:
            plain = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            check(IS_LONG, f"{name} takes too long without anybody attaching")
            print(f"CPython's {name}: left out, it takes too long here", flush=True)
            return 0, 0
        _, status, rounds, calls = run_attached(sojourn, command, chance,
                                                ["--module", "python3.11"], forks_threads=True)
        check(status == plain.returncode, f"{name}: {status}, unattached {plain.returncode}")
        print(f"CPython's {name}, {size} times: {rounds} rounds, {calls} calls", flush=True)
        return rounds, calls

    # In the long form some of the many tests are too short, or take too long under attaches.
    until_met(judge_once, *(0, 0) if IS_LONG else ())


def judge_samples(sojourn, chance):
    build = os.path.dirname(os.path.dirname(sojourn.program))
    samples = os.path.join(build, "tests/samples/gcc-O2")
    counts = {"throws": (1000, 20000), "life threads": (60, 60), "life storm": (500, 500)}
    modules = {"throws": ("throws", "libstdc++*", "libgcc_s*")}
    for name in counts if IS_LONG else ("throws", "life storm"):
        program, *part = name.split()
        judge(sojourn, name,
              lambda size: ([os.path.join(samples, program), *part, str(counts[name][IS_LONG] * size)],
                            None),
              modules.get(name, (program,)), chance)


def judge_sqlite(sojourn, chance):
    def workload(size):
        script = sojourn.path("script.sql")
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT.format(rows=(200000 if IS_LONG else 3000) * size))
        return ["sqlite3", ":memory:"], script

    judge(sojourn, "sqlite3", workload, ("sqlite3", "libsqlite3*"), chance)


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
