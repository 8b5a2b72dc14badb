#!/usr/bin/env python3
"""Two shards of two replicas, with ZooKeeper, receive the rows of several labs. The test kills all of them and cuts
their connections at random. At the end every row of every lab is stored once, and queries over all shards answer as
the labs do. While a shard is away, answers are partial and say so.

cluster.py BUILD_FOLDER [SEED]: SJ_ROUNDS rounds, else 200; a few without SJ_LONG=1.
"""
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from clickhouse_node import SERVER_PATIENCE_S, Keeper, Node, lasting_port
from cut_network import Network
from forward_questions import ASKED, parameters_of, questions_of, same_rows
from lab_testing import EXACT, SUMS, Lab, answers, ends_of, json_of, rounded
from forward_estimates import ESTIMATES, NEWEST, estimate
from sojourn_testing import check, main, wait_for

ROUNDS = int(os.environ.get("SJ_ROUNDS") or (200 if os.environ.get("SJ_LONG") else 5))
LABS = 3
OF_ALL_LABS = ("commands", "deviating_devices", "only_in", "p99_by_build")  # questions about more than one session


def configure(ports, keeper, shard, replica):
    """Returns the XML of one node: the other nodes, its own place, and the address of ZooKeeper."""
    shards = "".join(
        "<shard><internal_replication>true</internal_replication>" + "".join(
            f"<replica><host>127.0.0.1</host><port>{port}</port></replica>" for port in pair) + "</shard>"
        for pair in ports)
    return (f"<remote_servers><labs>{shards}</labs></remote_servers>"
            f"<zookeeper><node><host>127.0.0.1</host><port>{keeper.port}</port></node>"
            "<session_timeout_ms>4000</session_timeout_ms></zookeeper>"
            f"<macros><shard>{shard}</shard><replica>{replica}</replica></macros>")


def sums_there(node):
    return {table: [int(number) if number != "\\N" else 0 for number in
                    node.rows(f"SELECT {what.replace('count(*)', 'count()')} FROM {table}")[0]]
            for table, (what, _) in SUMS.items()}


def sums_here(labs):
    return {table: [sum(numbers) for numbers in zip(*(lab.sums(table) for lab in labs))] for table in SUMS}


def send(lab, url):
    return subprocess.Popen([lab.sojourn.program, "forward", "--database", lab.database, "send", url],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def one_round(number, nodes, networks, keeper, labs, dice):
    lab = dice.choice(labs)
    if number % 8 == 0:
        lab.record(dice.choice(["return", "throw"]))
    if number % 3 == 0:
        lab.command(f"in round {number}")
    with sqlite3.connect(lab.database, timeout=SERVER_PATIENCE_S) as database:
        database.execute("UPDATE sessions SET name = 'round ' || ? WHERE random() % 2", (number,))
    network = dice.choice(networks)
    sender = send(lab, f"http://127.0.0.1:{network.port}")
    time.sleep(dice.uniform(0, 0.4))
    victim = dice.choice([*nodes, keeper, sender, sender, network, network])
    if victim is sender:
        sender.kill()
        sender.wait(SERVER_PATIENCE_S)
    elif victim is network:
        network.cut()
        sender.wait(SERVER_PATIENCE_S)
    else:
        victim.stop(signal.SIGKILL)
        sender.wait(SERVER_PATIENCE_S)
        victim.start()


def settle(nodes, labs):
    """Waits until the cluster has accepted all pending rows and every node has them."""
    for lab in labs:
        wait_for("the cluster takes what is owed",
                 lambda one=lab: send(one, nodes[0].url).wait(SERVER_PATIENCE_S) == 0, SERVER_PATIENCE_S)
    here = sums_here(labs)
    for node in nodes:
        wait_for(lambda one=node: f"{one.folder}: {sums_there(one)}, not {here}",
                 lambda one=node: sums_there(one) == here, SERVER_PATIENCE_S)


def a_missing_shard_is_reported(sojourn, nodes, labs):
    whole = answers(sojourn, "--cluster", nodes[0].url, "SELECT count() AS n FROM sessions")[0]["n"]
    for node in nodes[2:]:
        node.stop(signal.SIGKILL)
    rows = answers(sojourn, "--cluster", nodes[0].url, "SELECT count() AS n FROM sessions",
                   says="INCOMPLETE: no answer from 1 of 2 shards")
    check(0 < rows[0]["n"] < whole, f"{rows[0]['n']} sessions of one shard, {whole} of both")
    done = sojourn.run(["report", "--cluster", nodes[0].url], capture_output=True, text=True)
    check(done.returncode == 0 and "INCOMPLETE: 1 of 2" in done.stderr, f"report: {done.stderr}")
    with sqlite3.connect(labs[0].database) as database:
        database.execute("UPDATE sessions SET name = 'while a shard is away'")
    check(send(labs[0], nodes[0].url).wait(SERVER_PATIENCE_S) == 1, "a batch was taken in part")
    for node in nodes[2:]:
        node.start()


def give_calls(lab, nodes, uuid):
    """Forwards all calls of one session. Waits until both replicas of its shard have them, because either may be
    asked."""
    lab.forward("--session", "1", "calls", nodes[3].url)
    count = lab.sojourn.sql(lab.database, "SELECT count(*) AS n FROM calls WHERE session_id = 1")[0]["n"]

    def counts():
        return [int(node.rows(f"SELECT count() FROM part_calls WHERE session = '{uuid}'")[0][0]) for node in nodes]
    wait_for(lambda: f"{count} calls on both replicas, not {counts()}", lambda: counts() in ([count, count, 0, 0], [0, 0, count, count]),
             SERVER_PATIENCE_S)


def questions_agree(sojourn, nodes, labs):
    node = nodes[3]
    for lab in labs:
        uuid = sojourn.sql(lab.database, "SELECT lower(hex(uuid)) AS uuid FROM sessions WHERE session_id = 1")[0]["uuid"]
        give_calls(lab, nodes, uuid)
        for name, line in sorted(questions_of(sojourn, "--cluster", node.url).items()):
            if "(not for a cluster)" in line:
                continue
            parameters = parameters_of(name, ASKED.get(name, ["function=*"]))
            there = answers(sojourn, "--cluster", node.url, "--query", name, "--session", uuid, *parameters)
            if name not in OF_ALL_LABS:
                here = answers(sojourn, "--query", name, "--session", "1", *parameters, lab.database)
                check(same_rows(name, here, there), f"{name}: {here}, {there}")
        here = json_of(sojourn, "report", "--session", uuid, "--all", lab.database)
        there = json_of(sojourn, "report", "--session", uuid, "--all", "--cluster", node.url)
        rows = [rounded([{name: row[name] for name in EXACT} for row in rows]) for rows in (here, there)]
        check(rows[0] == rows[1], f"report: {rows}")
    calls = sum(row["calls"] for row in answers(sojourn, "--cluster", node.url, "--query", "p99_by_build", "--param",
                                                "function=*"))
    check(calls == sum(lab.sums("function_stats")[1] for lab in labs), "calls by build and device")


def to_version_5(nodes):
    """Makes the tables as init of version 5 made them: without estimates."""
    for node in nodes[::2]:
        node.ask("ALTER TABLE sojourn.raw_function_stats " + ", ".join(f"DROP COLUMN {name}" for name in ESTIMATES))
    for node in nodes:
        def names(one=node):
            return [row[0] for row in one.rows("DESCRIBE TABLE raw_function_stats")]
        wait_for("the replica has followed", lambda read=names: not set(read()) & set(ESTIMATES), SERVER_PATIENCE_S)
        for table in ("function_stats", "part_function_stats", "put_function_stats", "schema_version"):
            node.ask(f"DROP TABLE sojourn.{table}")
        node.ask(f"CREATE VIEW sojourn.part_function_stats AS SELECT {', '.join(names())} FROM sojourn.raw_function_stats WHERE {NEWEST}")
        for name, of in (("function_stats", "part_function_stats"), ("put_function_stats", "raw_function_stats")):
            node.ask(f"CREATE TABLE sojourn.{name} AS sojourn.{of} "
                     f"ENGINE = Distributed(labs, sojourn, {of}, cityHash64(session))")
        node.ask("CREATE TABLE sojourn.schema_version (version UInt64, cluster String) ENGINE = TinyLog")
        node.ask("INSERT INTO sojourn.schema_version VALUES (5, 'labs')")


def test(sojourn, arguments):
    seed = int(arguments[0]) if arguments else random.randrange(1 << 30)
    print(f"seed {seed}, {ROUNDS} rounds", flush=True)
    dice = random.Random(seed)
    ends = ends_of(sojourn)
    keeper = Keeper(sojourn.path("keeper"))
    ports = [[lasting_port(), lasting_port()] for _ in range(2)]
    nodes = [Node(sojourn.path(f"node{shard}{replica}"), more=configure(ports, keeper, shard, replica), tcp=port)
             for shard, pair in enumerate(ports) for replica, port in enumerate(pair)]
    networks = [Network(node.http) for node in nodes]
    labs = [Lab(sojourn, f"lab{number}.db", ends) for number in range(LABS)]
    try:
        keeper.start()
        for node in nodes:
            node.start()
        for lab in labs:
            for how in ("return", "throw", "exit", "return"):
                lab.record(how)
        labs[0].forward("--shards", "labs", "--replicated", "init", *(node.url for node in nodes))
        labs[0].forward("init", nodes[1].url, code=1, says="init them with --shards labs")
        labs[0].forward("--shards", "others", "--replicated", "init", nodes[1].url, code=1, says="init them with --shards labs")
        labs[0].forward("--shards", "labs", "--replicated", "init", *(node.url for node in nodes))
        to_version_5(nodes)
        estimate(labs[0], 1)
        labs[0].forward("send", nodes[1].url, code=1, says='run "sojourn forward init" with it again')
        labs[0].forward("--shards", "labs", "--replicated", "init", *(node.url for node in nodes))
        settle(nodes, labs)
        for number in range(ROUNDS):
            one_round(number, nodes, networks, keeper, labs, dice)
        settle(nodes, labs)
        questions_agree(sojourn, nodes, labs)
        a_missing_shard_is_reported(sojourn, nodes, labs)
        settle(nodes, labs)
        print(f"{sums_there(nodes[1])['sessions'][0]} sessions of {LABS} labs on 2 x 2 nodes")
    finally:
        for party in (*nodes, keeper):
            party.stop(signal.SIGKILL)
        for network in networks:
            network.close()


if __name__ == "__main__":
    main(test)
