#!/usr/bin/env python3
"""redis-server under redis-benchmark, saving and rewriting its log in forked children, gives the same answers with
all its functions hooked. A server that loads the written files has the same data. judge_redis.py BUILD_FOLDER;
SJ_LONG=1: many requests, 20 times"""
import contextlib
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from judging import check_session, compare, need, options_of, sizes
from sojourn_testing import PATIENCE_S, check, main, wait_for

# Debian's redis-server is a link to redis-check-rdb.
MODULES = ("redis-check-rdb", "libjemalloc*")


def commands():
    """Returns commands for every data type, scripts and streams. Their answers are deterministic."""
    for i in range(200):
        yield f"SET key:{i} value-{i * 7919}"
        yield f"SET long:{i} {f'compressible {i} ' * 40!r}"
        yield f"HSET hash:{i % 10} field{i} {i * i}"
        yield f"ZADD board {i * 37 % 1000} member{i}"
        yield f"RPUSH list:{i % 5} {i}"
        yield f"SADD set:{i % 3} {i * 11 % 97}"
        yield f"XADD stream {i + 1}-1 n {i}"
        yield f"PFADD log {i % 50}"
        yield f"SETBIT bits {i * 3} 1"
        yield f"GEOADD places {i / 2} {i / 4} place{i}"
    yield "EVAL \"local s = 0 for i = 0, 199 do s = s + #redis.call('GET', 'key:' .. i) end return s\" 0"
    yield "EVAL \"return redis.call('NOSUCH')\" 0"
    yield "EVAL \"return pcall(error, 'caught') and 1 or 2\" 0"
    yield "ZRANGE board 0 20 WITHSCORES"
    yield "SORT set:1"
    yield "XRANGE stream - + COUNT 5"
    yield "PFCOUNT log"
    yield "BITCOUNT bits"
    yield "GEOSEARCH places FROMMEMBER place3 BYRADIUS 200 km ASC"
    yield "OBJECT ENCODING hash:1"
    yield "DBSIZE"


class Server:
    def __init__(self, sojourn, folder, database):
        os.makedirs(folder, exist_ok=True)
        self.socket = os.path.join(folder, "s")
        wrapper = []
        if database is not None:
            wrapper = [sojourn.program, "record", "--quiet", "-o", database, *options_of(MODULES),
                       "--"]
        self.process = subprocess.Popen(
            [*wrapper, "redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", folder,
             "--appendonly", "yes", "--io-threads", "2", "--enable-debug-command", "local",
             "--save", "3600 1"],
            stdout=open(os.path.join(folder, "log"), "ab"), stderr=subprocess.STDOUT,
            env=sojourn.environment,
        )
        wait_for("redis-server answers", lambda: self.answers(folder))

    def answers(self, folder):
        check(self.process.poll() is None, f"redis-server ended: {self.log(folder)}")
        return self.ask("PING").strip() == "PONG"

    @staticmethod
    def log(folder):
        with open(os.path.join(folder, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()[-3000:]

    def ask(self, *words, text=None):
        return subprocess.run(["redis-cli", "-s", self.socket, *words], input=text, text=True,
                              capture_output=True, timeout=PATIENCE_S, check=False).stdout

    def benchmark(self, requests):
        done = subprocess.run(
            ["redis-benchmark", "-s", self.socket, "-n", requests, "-c", "20", "-q", "--csv", "-r", "1000"],
            capture_output=True, text=True, timeout=1200, check=False)
        check(done.returncode == 0, f"redis-benchmark: {done.stderr}")
        return "\n".join(line.split(",")[0] for line in done.stdout.split("\n"))

    def wait_children(self):
        wait_for("the children of redis-server end",
                 lambda: "_in_progress:1" not in self.ask("INFO", "persistence"))

    def stop(self):
        self.ask("SHUTDOWN", "SAVE")
        return self.process.wait(timeout=PATIENCE_S)


def work(server, requests):
    """Returns the server's answers to commands, under load, and after it has saved and rewritten."""
    answers = server.ask(text="\n".join(commands()) + "\n")
    answers += server.ask("DEBUG", "DIGEST")
    answers += server.benchmark(requests)
    answers += server.ask("BGSAVE")
    server.wait_children()
    answers += server.ask("BGREWRITEAOF")
    server.wait_children()
    info = server.ask("INFO", "persistence")
    answers += "".join(line for line in info.split("\n") if "last_bgsave_status" in line or "last_bgrewrite_status" in line)
    return answers + server.ask("FLUSHALL") + server.ask(text="\n".join(commands()) + "\n")


def one_run(sojourn, folder, requests, database, meanwhile=contextlib.nullcontext):
    """Returns the server's answers and the digest of its data, which a second server loads. The first server works
    inside meanwhile(its process id)."""
    server = Server(sojourn, folder, database)
    with meanwhile(server.process.pid):
        answers = work(server, requests)
    digest = server.ask("DEBUG", "DIGEST")
    check(server.stop() == 0, f"redis-server failed: {server.log(folder)}")
    check("BUG REPORT" not in server.log(folder), server.log(folder))
    server = Server(sojourn, folder, None)
    check(server.ask("DEBUG", "DIGEST") == digest, "the data changed on the way through the disk")
    server.stop()
    return answers + digest


def one_round(sojourn, requests):
    database = sojourn.path("redis.db")
    plain = one_run(sojourn, sojourn.path("plain"), requests, None)
    hooked = one_run(sojourn, sojourn.path("hooked"), requests, database)
    compare("redis-server's answers", plain, hooked)
    check(len(plain) > 10000, "too few answers")
    calls = check_session(sojourn, database, 2)
    processes = sojourn.sql(database, "SELECT count(*) AS n FROM processes")[0]["n"]
    check(processes >= 3, f"{processes} processes: the saving children are missing")
    print(f"redis-server: same answers, {processes} processes, {calls} calls", flush=True)
    for name in ("plain", "hooked"):
        shutil.rmtree(sojourn.path(name))
    os.unlink(database)


def test(sojourn, _):
    need("redis-server", "redis-benchmark", "redis-cli")
    for requests in sizes("200", "100000"):
        one_round(sojourn, requests)


if __name__ == "__main__":
    main(test)
