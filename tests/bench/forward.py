#!/usr/bin/env python3
"""Measures what forwarding to ClickHouse costs, takes and gives: the collector's CPU for it, rows and bytes of a
session, rows a second, disk space, and questions over many sessions on two shards.

forward.py BUILD_FOLDER collector: what of the collector's CPU forwarding takes, of sessions that come one by one.
forward.py BUILD_FOLDER fleet [SECONDS] [ROUNDS]: what it takes of it when 1,000 devices send 10 blocks a second each, whose
sessions end after so many seconds (30): with and without forwarding by turns (3 rounds).
forward.py BUILD_FOLDER sending: a lab catches up with 1,000 sessions (ten of lua, sqlite3 and perl, and copies), with
`forward send` and with sojournd.
forward.py BUILD_FOLDER simulation [DEVICES]: 50 labs send the sums of a session of each of 100,000 devices to two shards,
as labs do (the rows of a batch, `sessions` last); totals are compared with what was generated, and questions asked.
forward.py BUILD_FOLDER questions [COPIES]: two shards; COPIES (9) of those sessions are made on them, and asked.
"""
import contextlib
import os
import resource
import socket
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system", "support"))
from clickhouse_node import Node, lasting_port
from fleet_testing import free_port
from sojourn_testing import PATIENCE_S, check, main, wait_for

TABLES = ("functions", "function_stats", "call_edges", "call_paths", "slow_calls", "coverage", "sessions")
PROGRAMS = (
    ["sqlite3", ":memory:", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 20000) "
                            "SELECT count(*), sum(i*i), group_concat(i) IS NULL FROM n ORDER BY i % 7"],
    ["lua5.4", "-e", "local t = {} for i = 1, 30000 do t[i] = tostring(i * 7 % 1000) end table.sort(t) "
                     "print(#table.concat(t))"],
    ["perl", "-e", "my %h; for (1..20000) { $h{$_ % 997} .= chr(65 + $_ % 26) } print length(join '', sort values %h), \"\\n\""],
)
NAME = "Perl_sv_setsv_flags"  # called in the sessions of perl
# Queries by device and build, of callers, and of a function in two builds.
QUESTIONS = {
    "p99 by device and build": ["--query", "p99_by_build", "--param", f"function={NAME}"],
    "callers of a function": [
        f"SELECT caller_name, sum(calls), sum(total_ns) FROM call_edges WHERE callee_name = '{NAME}' "
        "GROUP BY caller_name ORDER BY sum(total_ns) DESC"],
    "difference of two builds": [
        "SELECT any(name), sumIf(self_ns, build_id = 'b103') / sumIf(calls, build_id = 'b103') AS a, "
        "sumIf(self_ns, build_id = 'b107') / sumIf(calls, build_id = 'b107') AS b FROM function_stats "
        "WHERE build_id IN ('b103', 'b107') GROUP BY symbol_key ORDER BY b - a DESC LIMIT 50"],
    "sessions of each lab": ["SELECT lab, count(), sum(stored_calls) FROM sessions GROUP BY lab"],
}
ASKED = 5
DEVICES, FLEET_PATIENCE_S = 1000, 1200


def children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def server_cpu(node):
    with open(f"/proc/{node.process.pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_time(path):
    with open(f"/proc/{path}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9


def threads_cpu(pid):
    """Returns the CPU time of the collector's thread that forwards, and of all its threads."""
    own = total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        used = run_time(f"{pid}/task/{thread}")
        with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8") as file:
            own += used if file.read().strip() == "forward" else 0
        total += used
    return own, total


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


def report_sending(sojourn, node, database):
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
    """Copies on the server: other sessions, 500 devices and 20 builds."""
    columns = {}
    for table in TABLES:
        columns[table] = [row[0] for row in node.rows(f"DESCRIBE TABLE raw_{table}")]
        node.ask(f"CREATE TABLE sojourn.new_{table} AS sojourn.raw_{table}")
    begin, rows = time.monotonic(), 0
    one = "cityHash64(concat(toString(session), toString(n)))"
    for table in TABLES:
        values = ", ".join(
            {"session": "lower(hex(MD5(concat(toString(session), toString(n)))))",
             "device": f"lower(hex(MD5(toString({one} % 500))))",
             "device_name": f"concat('device ', toString({one} % 500))",
             "build_id": f"concat('b', toString(100 + {one} % 20))"}.get(name, name)
            for name in columns[table])
        for first in range(0, copies):  # a join is made in memory
            source = (f"(SELECT * FROM sojourn.raw_{table} CROSS JOIN (SELECT number + {first + 1} AS n FROM system.numbers LIMIT 1))")
            node.ask(f"INSERT INTO sojourn.new_{table} SELECT {values} FROM {source}")
        rows += int(node.rows(f"SELECT count() FROM new_{table}")[0][0])
        node.ask(f"INSERT INTO sojourn.raw_{table} SELECT * FROM sojourn.new_{table}")
        node.ask(f"DROP TABLE sojourn.new_{table}")
    print(f"{rows} rows copied in {time.monotonic() - begin:.1f} s", flush=True)


def make_lab(sojourn):
    database = sojourn.path("lab.db")
    for program in (*PROGRAMS, *PROGRAMS, *PROGRAMS, PROGRAMS[0]):
        done = subprocess.run([sojourn.program, "record", "-q", "-o", database, "--", *program], env=sojourn.environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        check(os.path.exists(database), done.stderr)
    multiply(database, 100)
    return database


def start_collector(sojourn, database, node):
    port = free_port()
    forward = ["--forward", node.url] if node is not None else []
    return port, subprocess.Popen([os.path.join(os.path.dirname(sojourn.program), "sojournd"), "--listen",
                                   f"tcp://127.0.0.1:{port}", "--database", database, *forward], stderr=subprocess.DEVNULL)


def given(node):
    return int(node.rows("SELECT count() FROM sessions")[0][0])


def collector_cost(sojourn, node):
    """Sessions of the three programs, recorded to a collector that forwards them."""
    port, collector = start_collector(sojourn, sojourn.path("collector.db"), node)
    try:
        count = 20 * len(PROGRAMS)
        for _ in range(20):
            for program in PROGRAMS:
                sojourn.run(["record", "--quiet", "--collector", f"tcp://127.0.0.1:{port}", "--wait", "60", "--", *program],
                            stdout=subprocess.DEVNULL)
        wait_for("all sessions in the cluster", lambda: given(node) == count)
        own, all_cpu = threads_cpu(collector.pid)
        calls = node.rows("SELECT sum(stored_calls) FROM sessions")[0][0]
        print(f"{count} sessions of {calls} calls: {all_cpu:.2f} s of the collector's CPU, of which forwarding {own:.3f} s "
              f"({100 * own / all_cpu:.1f} %)")
    finally:
        collector.terminate()
        collector.wait(PATIENCE_S)


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), PATIENCE_S):
        return True
    return False


def one_fleet(sojourn, number, recording, seconds, node):
    """Returns the CPU time of the collector's thread that forwards, and of all its threads.
    Waits until all sessions have their sums or, with `node`, are in the cluster."""
    database = sojourn.path(f"fleet{number}.db")
    port, collector = start_collector(sojourn, database, node)
    load = os.path.join(os.path.dirname(sojourn.program), "..", "bench", "fleet_load")
    try:
        wait_for("the collector", lambda: listens(port))
        done = subprocess.run([load, str(DEVICES), "10", "100", str(seconds), recording, str(port)], cwd=sojourn.path("."),
                              capture_output=True, text=True, check=False)
        check(done.returncode == 0, done.stdout + done.stderr)
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as lab:
            wait_for("all sums", lambda: lab.execute(
                "SELECT count(*) FROM sessions WHERE state <> 'recording' AND aggregates_valid_before_block IS NULL"
            ).fetchone()[0] == DEVICES, FLEET_PATIENCE_S)
        if node is not None:
            wait_for("all sessions in the cluster", lambda: given(node) == DEVICES, FLEET_PATIENCE_S)
        return *threads_cpu(collector.pid), done.stdout.strip()
    finally:
        collector.terminate()
        collector.wait(PATIENCE_S)


def fleet(sojourn, seconds, rounds):
    recording = sojourn.path("recording.db")
    sojourn.run(["record", "-q", "-o", recording, "--", *PROGRAMS[1]], stdout=subprocess.DEVNULL)
    shares, alone = [], []
    for number in range(rounds):
        node = Node(sojourn.path(f"node{number}"))
        try:
            node.start()
            check(sojourn.run(["forward", "init", node.url], stdout=subprocess.DEVNULL).returncode == 0, "init")
            _, without, _ = one_fleet(sojourn, f"{number}a", recording, seconds, None)
            own, total, said = one_fleet(sojourn, f"{number}b", recording, seconds, node)
            rows = sum(count for count, _ in room(node).values())
        finally:
            node.stop()
        shares.append(own / total)
        alone.append((total - without) / without)
        print(f"{said}\n{without:.2f} s of the collector's CPU without forwarding, {total:.2f} s with it, of which the thread that "
              f"forwards {own:.3f} s ({100 * own / total:.2f} %); {rows} rows", flush=True)
    print(f"share, median of {rounds} rounds: {100 * sorted(shares)[rounds // 2]:.2f} % ({100 * min(shares):.2f} to "
          f"{100 * max(shares):.2f}); with against without: {', '.join(f'{100 * one:+.1f} %' for one in sorted(alone))}")


def report_catching_up(sojourn, node, database):
    """Measures how fast the collector's own thread sends all owed sessions after an outage."""
    with sqlite3.connect(database) as lab:
        lab.execute("DELETE FROM forwarded_sessions")
        lab.execute("UPDATE sessions SET uuid = randomblob(16)")
        owed = lab.execute("SELECT count(*) FROM sessions").fetchone()[0]
    before, begin = given(node), time.monotonic()
    _, collector = start_collector(sojourn, database, node)
    try:
        wait_for("all sessions in the cluster", lambda: given(node) == before + owed)
        wall = time.monotonic() - begin
        own, _ = threads_cpu(collector.pid)
        print(f"caught up by sojournd in {wall:.2f} s: {owed / wall:.0f} sessions/s; CPU {own:.2f} s ({1000 * own / owed:.2f} ms a "
              "session)")
    finally:
        collector.terminate()
        collector.wait(PATIENCE_S)


def ask_all(sojourn, node, function):
    for name, words in QUESTIONS.items():
        words = [word.replace(NAME, function) for word in words]
        took = []
        for _ in range(ASKED):
            begin = time.monotonic()
            done = sojourn.run(["sql", "--cluster", node.url, *words], capture_output=True, text=True)
            took.append(time.monotonic() - begin)
            check(done.returncode == 0, done.stderr)
        print(f"{name}: {', '.join(f'{one:.2f}' for one in took)} s, {len(done.stdout.splitlines()) - 1} rows", flush=True)


@contextlib.contextmanager
def two_shards(sojourn):
    ports = [lasting_port() for _ in range(2)]
    shards = "".join(f"<shard><replica><host>127.0.0.1</host><port>{port}</port></replica></shard>" for port in ports)
    more = f"<remote_servers><labs>{shards}</labs></remote_servers>"
    nodes = [Node(sojourn.path(f"node{number}"), more=more, tcp=port) for number, port in enumerate(ports)]
    try:
        for node in nodes:
            node.start()
        done = sojourn.run(["forward", "--shards", "labs", "init", *(node.url for node in nodes)], stdout=subprocess.DEVNULL)
        check(done.returncode == 0, "init")
        yield nodes
    finally:
        for node in nodes:
            node.stop()


def questions(sojourn, copies):
    with two_shards(sojourn) as nodes:
        report_sending(sojourn, nodes[0], make_lab(sojourn))
        for node in nodes:
            copy(node, copies)
        total = [sum(rows for rows, _ in room(node).values()) for node in nodes]
        print(f"{total} rows on the shards; {given(nodes[0])} sessions, "
              f"{nodes[0].rows('SELECT uniqExact(build_id) FROM function_stats')[0][0]} builds")
        ask_all(sojourn, nodes[0], NAME)


LABS, BATCH, FUNCTIONS, EDGES, PATHS = 50, 2000, 40, 60, 100  # a batch of a lab: about 64 MiB of rows


def numbers_of(lab, first, count, per_session):
    """Returns a query with one row for each of `per_session` things of each session of a lab, from session `first` on.
    Each lab has its own devices. Values of the session are computed before they are repeated."""
    return ("(SELECT session, one, thing, machine, device, device_name, build FROM ("
            f"SELECT lower(hex(MD5(concat('{lab} ', toString(one))))) AS session, one, one * {LABS} + {lab} AS machine, "
            "lower(hex(MD5(toString(machine)))) AS device, concat('device ', toString(machine)) AS device_name, "
            "concat('b', toString(100 + machine % 20)) AS build "
            f"FROM (SELECT number + {first} AS one FROM system.numbers LIMIT {count})) "
            f"ARRAY JOIN range({per_session}) AS thing)")


def send_batch(node, lab, first, count, version):
    """Sums of `count` sessions, computed from their numbers, so that totals are known."""
    base = f"session, toUInt64({version}) AS version, toDate('2026-11-24') AS day"
    symbol = "intHash64(thing + 1)"
    build = "build"
    bins = "[toUInt16(100 + thing % 50), toUInt16(160)] AS bins, [toUInt64(9), toUInt64(1)] AS counts"
    rows = {
        "functions": (FUNCTIONS, f"intHash64(thing + machine % 20 * 1000) AS function, {symbol} AS symbol_key, "
                                 f"concat('f', toString(thing)) AS name, {build} AS build_id, thing AS offset, '/bin/x' AS module"),
        "function_stats": (FUNCTIONS, f"intHash64(thing + machine % 20 * 1000) AS function, {symbol} AS symbol_key, "
                                      f"concat('f', toString(thing)) AS name, {build} AS build_id, "
                                      "device AS device, device_name AS device_name, toUInt64(10) AS calls, "
                                      "toInt64(1000 + machine % 1000) AS total_ns, "
                                      "toInt64(machine % 1000) AS self_ns, "
                                      f"NULL AS min_ns, NULL AS max_ns, toUInt64(0) AS unwound, toUInt64(0) AS untrusted, {bins}"),
        "call_edges": (EDGES, f"intHash64(thing + 7) AS caller, intHash64(thing + 8) AS caller_symbol_key, concat('f', "
                              f"toString(thing % {FUNCTIONS})) AS caller_name, intHash64(thing + 9) AS callee, {symbol} AS "
                              f"callee_symbol_key, concat('f', toString((thing + 1) % {FUNCTIONS})) AS callee_name, toUInt64(5) "
                              "AS calls, toInt64(100) AS total_ns, toInt64(10) AS self_ns"),
        "call_paths": (PATHS, f"intHash64(thing + 3) AS path, intHash64(intDiv(thing, 2)) AS parent_path, "
                              f"intHash64(thing % {FUNCTIONS} + machine % 20 * 1000) AS function, {symbol} AS symbol_key, toUInt64(thing % 12) AS depth, toUInt8(0) AS recursive, "
                              "toUInt8(0) AS rare, toUInt64(4) AS calls, toInt64(400) AS total_ns, toInt64(40) AS self_ns, NULL "
                              f"AS min_ns, NULL AS max_ns, toUInt64(0) AS unwound, toUInt64(0) AS untrusted, {bins}"),
        "sessions": (1, f"toUInt8(0) AS removed, lower(hex(MD5('{lab}'))) AS lab, device AS device, "
                        f"device_name AS device_name, 'completed' AS state, {build} AS build_id, "
                        f"toUInt64({10 * FUNCTIONS}) AS stored_calls"),
    }
    for table, (per_session, values) in rows.items():
        names = [part.split(" AS ")[1] if " AS " in part else part for part in
                 f"{base}, {values}".replace("], [", "] [").split(", ") if " AS " in part or part == "session"]
        node.ask(f"INSERT INTO sojourn.put_{table} ({', '.join(names)}) SELECT {base}, {values} FROM "
                 f"{numbers_of(lab, first, count, per_session)}", settings="insert_distributed_sync=1")


def simulation(sojourn, devices):
    with two_shards(sojourn) as nodes:
        each = devices // LABS
        begin = time.monotonic()
        batches = [(lab, first) for first in range(0, each, BATCH) for lab in range(LABS)]
        for number, (lab, first) in enumerate(batches):
            send_batch(nodes[number % 2], lab, first, min(BATCH, each - first), 1_700_000_000_000_000_000 + number)
        wall = time.monotonic() - begin
        rows = sum(count for node in nodes for count, _ in room(node).values())
        size = sum(size for node in nodes for _, size in room(node).values())
        print(f"{devices} devices of {LABS} labs: {rows} rows in {wall:.0f} s ({rows / wall:.0f} rows/s, made by the server "
              f"itself), {size / rows:.1f} bytes a row; {sum(server_cpu(node) for node in nodes):.0f} s of the servers' CPU",
              flush=True)
        sessions = each * LABS
        machines = range(sessions)
        for question, want in (
                ("SELECT count(), uniqExact(lab), uniqExact(device), sum(stored_calls) FROM sessions",
                 [sessions, LABS, sessions, 10 * FUNCTIONS * sessions]),
                ("SELECT count(), sum(calls), sum(self_ns), uniqExact(symbol_key) FROM function_stats",
                 [FUNCTIONS * sessions, 10 * FUNCTIONS * sessions, FUNCTIONS * sum(one % 1000 for one in machines), FUNCTIONS]),
                ("SELECT count(), sum(calls) FROM call_edges", [EDGES * sessions, 5 * EDGES * sessions]),
                ("SELECT count(), sum(calls) FROM call_paths", [PATHS * sessions, 4 * PATHS * sessions])):
            got = [int(number) for number in nodes[0].rows(question)[0]]
            check(got == want, f"{question}: {got}, not {want}")
        print("totals are those that were sent", flush=True)
        ask_all(sojourn, nodes[0], "f7")
        begin = time.monotonic()
        done = sojourn.run(["report", "--cluster", nodes[0].url], capture_output=True, text=True)
        check(done.returncode == 0, done.stderr)
        print(f"report --cluster, the list of all sessions included: {time.monotonic() - begin:.2f} s", flush=True)
        for megabytes in (8, 16, 32, 64, 128, 256, 512, 1024):
            if nodes[0].can("SELECT count() FROM function_stats", f"max_memory_usage={megabytes}000000"):
                print(f"the set of newest versions: less than {megabytes} MB of memory for "
                      f"{int(nodes[0].rows('SELECT count() FROM part_sessions')[0][0])} sessions of a shard")
                break


def sending(sojourn):
    node = Node(sojourn.path("node"))
    database = make_lab(sojourn)
    try:
        node.start()
        check(sojourn.run(["forward", "init", node.url], stdout=subprocess.DEVNULL).returncode == 0, "init")
        report_sending(sojourn, node, database)
        total = [sum(numbers) for numbers in zip(*room(node).values())]
        print(f"{total[0]} rows, {total[1] / total[0]:.1f} bytes a row on disk")
        report_catching_up(sojourn, node, database)
    finally:
        node.stop()


def collecting(sojourn):
    node = Node(sojourn.path("node"))
    try:
        node.start()
        check(sojourn.run(["forward", "init", node.url], stdout=subprocess.DEVNULL).returncode == 0, "init")
        collector_cost(sojourn, node)
    finally:
        node.stop()


def test(sojourn, arguments):
    what = arguments[0] if arguments else "sending"
    if what == "collector":
        collecting(sojourn)
    elif what == "fleet":
        fleet(sojourn, *(int(number) for number in (arguments[1:3] + ["30", "3"][len(arguments[1:3]):])))
    elif what == "questions":
        questions(sojourn, int(arguments[1]) if len(arguments) > 1 else 9)
    elif what == "simulation":
        simulation(sojourn, int(arguments[1]) if len(arguments) > 1 else 100_000)
    else:
        sending(sojourn)


if __name__ == "__main__":
    main(test)
