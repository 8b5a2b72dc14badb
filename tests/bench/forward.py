#!/usr/bin/env python3
"""What forwarding to ClickHouse costs, takes and gives: rows and bytes of a session, rows a second, room
on disk, and questions over many sessions on one node.

forward.py BUILD_FOLDER [COPIES]: a lab catches up with 1,000 sessions
(ten of lua, sqlite3 and perl, and copies); then COPIES (10) of those are made on the server, and asked.
"""
import os
import resource
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system", "support"))
from clickhouse_node import Node
from sojourn_testing import check, main

TABLES = ("functions", "function_stats", "call_edges", "call_paths", "slow_calls", "coverage", "sessions")
PROGRAMS = (
    ["sqlite3", ":memory:", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 20000) "
                            "SELECT count(*), sum(i*i), group_concat(i) IS NULL FROM n ORDER BY i % 7"],
    ["lua5.4", "-e", "local t = {} for i = 1, 30000 do t[i] = tostring(i * 7 % 1000) end table.sort(t) "
                     "print(#table.concat(t))"],
    ["perl", "-e", "my %h; for (1..20000) { $h{$_ % 997} .= chr(65 + $_ % 26) } print length(join '', sort values %h), \"\\n\""],
)
NAME = "Perl_sv_setsv_flags"  # called in the sessions of perl
# Prints the seconds of each. By device and build; callers; a function in two builds.
QUESTIONS = {
    "p99_by_build": ["--query", "p99_by_build", "--param", f"function={NAME}"],
    "callers of a function, all sessions": [
        f"SELECT caller_name, sum(calls), sum(total_ns) FROM call_edges WHERE callee_name = '{NAME}' "
        "GROUP BY caller_name ORDER BY sum(total_ns) DESC"],
    "two builds": [
        "SELECT any(name), sumIf(self_ns, build_id < '8') / sumIf(calls, build_id < '8') AS a, "
        "sumIf(self_ns, build_id >= '8') / sumIf(calls, build_id >= '8') AS b FROM function_stats "
        "GROUP BY symbol_key ORDER BY b - a DESC LIMIT 50"],
    "all sessions by lab": ["SELECT lab, count(), sum(stored_calls) FROM sessions GROUP BY lab"],
}


def children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def server_cpu(node):
    with open(f"/proc/{node.process.pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def room(node):
    return {row[0]: (int(row[1]), int(row[2])) for row in node.rows(
        "SELECT table, toString(sum(rows)), toString(sum(bytes)) FROM system.parts WHERE active AND database = 'sojourn' "
        "GROUP BY table")}


def multiply(path, times):
    """Copies of the sessions in the lab, so that there is something to catch up with."""
    with sqlite3.connect(path) as lab:
        sessions = lab.execute("SELECT max(session_id) FROM sessions").fetchone()[0]
        for table in ("sessions", "session_modules", "function_stats", "call_edges", "call_paths", "slow_calls"):
            names = [row[1] for row in lab.execute(f"PRAGMA table_info({table})")]
            for number in range(1, times):
                shift = number * sessions
                values = ", ".join({"session_id": f"session_id + {shift}", "uuid": "randomblob(16)",
                                    "path_id": f"path_id + ({shift} << 32)",
                                    "parent_path_id": f"parent_path_id + ({shift} << 32)"}.get(name, name)
                                   for name in names)
                lab.execute(f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM {table} "
                            f"WHERE session_id <= {sessions}")


def tell_sending(sojourn, node, database):
    before, server, begin = children_cpu(), server_cpu(node), time.monotonic()
    done = sojourn.run(["forward", "--database", database, "send", node.url], capture_output=True, text=True)
    wall = time.monotonic() - begin
    check(done.returncode == 0, done.stderr)
    status = sojourn.run(["forward", "--database", database, "status", node.url], capture_output=True, text=True).stdout
    rows, size = (int(status.split("(")[1].split()[i]) for i in (0, 2))
    sessions = int(status.split()[0])
    print(f"{sessions} sessions, {rows} rows, {size / rows:.0f} bytes a row as sent, {rows / sessions:.0f} rows a session")
    print(f"sent in {wall:.2f} s: {sessions / wall:.0f} sessions/s, {rows / wall:.0f} rows/s; CPU {children_cpu() - before:.2f} s "
          f"of the sender, {server_cpu(node) - server:.2f} s of the server")


def copy(node, copies):
    """Copies on the server: other sessions, devices and builds."""
    columns = {}
    for table in TABLES:
        columns[table] = [row[0] for row in node.rows(f"DESCRIBE TABLE raw_{table}")]
    begin, rows = time.monotonic(), 0
    for table in TABLES:
        values = ", ".join(
            {"session": "lower(hex(MD5(concat(toString(session), toString(n)))))",
             "device": "lower(hex(MD5(concat(toString(device), toString(n % 500)))))",
             "device_name": "concat(device_name, toString(n % 500))",
             "build_id": "concat(substring('0123456789abcdef', 1 + n % 16, 1), toString(n % 20))"}.get(name, name)
            for name in columns[table])
        for first in range(0, copies):  # a join is made in memory
            source = (f"(SELECT * FROM sojourn.{table} CROSS JOIN (SELECT number + {first + 1} AS n FROM system.numbers LIMIT 1))")
            node.ask(f"INSERT INTO sojourn.new_{table} SELECT {values} FROM {source}")
        rows += int(node.rows(f"SELECT count() FROM new_{table}")[0][0])
        node.ask(f"INSERT INTO sojourn.raw_{table} SELECT * FROM sojourn.new_{table}")
        node.ask(f"DROP TABLE sojourn.new_{table}")
    print(f"{rows} rows copied in {time.monotonic() - begin:.1f} s")


def test(sojourn, arguments):
    copies = int(arguments[0]) if arguments else 10
    database = sojourn.path("lab.db")
    for program in (*PROGRAMS, *PROGRAMS, *PROGRAMS, PROGRAMS[0]):
        done = subprocess.run([sojourn.program, "record", "-q", "-o", database, "--", *program], env=sojourn.environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        check(os.path.exists(database), done.stderr)
    multiply(database, 100)
    node = Node(sojourn.path("node"))
    try:
        node.start()
        check(sojourn.run(["forward", "init", node.url], stdout=subprocess.DEVNULL).returncode == 0, "init")
        tell_sending(sojourn, node, database)
        for table in TABLES:
            node.ask(f"CREATE TABLE sojourn.new_{table} AS sojourn.raw_{table}")
        copy(node, copies)
        total = [sum(numbers) for numbers in zip(*room(node).values())]
        print(f"{total[0]} rows, {total[1] / total[0]:.1f} bytes a row on disk")
        for name, words in QUESTIONS.items():
            took = []
            for _ in range(3):
                begin = time.monotonic()
                done = sojourn.run(["sql", "--cluster", node.url, *words], capture_output=True, text=True)
                took.append(time.monotonic() - begin)
                check(done.returncode == 0, done.stderr)
            print(f"{name}: {', '.join(f'{one:.2f}' for one in took)} s, {len(done.stdout.splitlines()) - 1} rows")
    finally:
        node.stop()


if __name__ == "__main__":
    main(test)
