#!/usr/bin/env python3
"""A lab forwards its sums to ClickHouse. Every row is stored once, whichever process is killed. Changed rows are
replaced, removed rows are gone. Tables that are missing, old or changed by hand are named, and the lab keeps
working.

forward.py BUILD_FOLDER [SEED]: some kills, 200 with SJ_LONG=1.
"""
import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import free_port
from json_shape import problem
from lab_testing import HOSTILE, Cluster, Lab, answers, check_equal
from sojourn_testing import PATIENCE_S, check, json_rows, main, wait_for

QUERIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "schema", "queries")
KILLS = 200 if os.environ.get("SJ_LONG") else 6


def refusals(sojourn, node, lab):
    """Each refusal is reported by name, and loses nothing."""
    away = f"http://127.0.0.1:{free_port()}"
    lab.forward("send", away, code=1, says="is not reached")
    lab.forward("send", "clickhouse.example", code=1, says="give http://HOST")
    lab.forward("send", node.url, code=1, says="does not let default in")
    lab.forward("--cluster-password", sojourn.path("nowhere"), "send", node.url, code=1, says="cannot read the password")


def sent_once(node, lab, other, words):
    lab.forward(*words, "send", node.url, code=3, says="sojourn forward init")
    lab.forward(*words, "init", node.url)
    lab.forward(*words, "init", node.url)
    lab.forward(*words, "--shards", "labs", "init", node.url, code=1, says="of one node: init them without --shards")
    lab.forward(*words, "send", node.url, says="3 sessions were sent")
    check_equal(node, [lab])
    lab.forward(*words, "send", node.url, says="0 sessions were sent")
    other.forward(*words, "send", node.url)
    check_equal(node, [lab, other])
    check(node.rows("SELECT count() FROM sessions WHERE name LIKE '%DROP TABLE%'") == [["1"]],
          "a name was changed on its way")
    lab.forward(*words, "status", node.url, says="0 owed")
    with open(os.path.join(QUERIES, "..", "commands.schema.json"), encoding="utf-8") as file:
        shape = json.load(file)["$defs"]["forward"]
    for action in ("init", "send", "status"):
        text = lab.forward(*words, "--json", action, node.url)
        said = json_rows(text)[0]
        check(problem(json.loads(text), shape, action) is None and said["action"] == action, f"{text}")
    check(said["owed"] == 0 and said["sessions"] > 0, f"{said}")


def audit(node, labs, words):
    """Forwards commands in their current state, each once. Removed ones are gone. Begins with tables of the second
    version."""
    lab = labs[0]
    lab.command(HOSTILE)
    for statement in ("DROP TABLE sojourn.commands", "DROP TABLE sojourn.raw_commands",
                      "DROP TABLE sojourn.schema_version",
                      "CREATE TABLE sojourn.schema_version (version UInt64, cluster String) ENGINE = TinyLog",
                      "INSERT INTO sojourn.schema_version VALUES (2, '')"):
        node.ask(statement)
    lab.forward(*words, "send", node.url, code=1, says='run "sojourn forward init" with it again')
    lab.forward(*words, "init", node.url)
    with sqlite3.connect(lab.database) as database:
        database.execute("DELETE FROM forwarded_commands")
        database.execute("UPDATE sessions SET name = name || '.'")
    labs[1].command("another")
    for one in (*labs, *labs):
        one.forward(*words, "send", node.url)
    check_equal(node, labs)
    with sqlite3.connect(lab.database) as database:
        database.execute("UPDATE commands SET state = 'done', finished_realtime_ns = 1800000000000000000 WHERE command_id = 1")
        database.execute("DELETE FROM commands WHERE command_id = 2")
    lab.forward(*words, "send", node.url, says="0 sessions were sent")
    check_equal(node, labs)
    rows = node.rows("SELECT command_id, state, finished_realtime_ns FROM commands WHERE state = 'done'")
    check(rows == [["1", "done", "1800000000000000000"]], f"a command that is done: {rows}")
    check(int(node.rows("SELECT count() FROM raw_commands WHERE removed = 1")[0][0]) == 1, "no word of a removed command")
    check([row["requested_by"] for row in answers(lab.sojourn, "--cluster", node.url, *words,
                                                  "SELECT requested_by FROM commands WHERE command_id = 3")] == [HOSTILE],
          "a name was changed on its way")


def changed_and_removed_sessions_are_sent_again(sojourn, node, labs, words):
    lab = labs[0]
    with sqlite3.connect(lab.database) as database:
        database.execute("UPDATE sessions SET tags = '{\"run\":\"7\"}' WHERE session_id = 1")
    lab.forward(*words, "send", node.url, says="1 session was sent")
    check(node.rows("SELECT count() FROM sessions WHERE tags LIKE '%run%'") == [["1"]], "a tag has not come")
    done = sojourn.run(["session", "--database", lab.database, "remove", "2"], capture_output=True, text=True)
    check(done.returncode == 0, f"remove: {done.stderr}")
    lab.forward(*words, "send", node.url, says="1 session was sent")
    check_equal(node, labs)
    why = sojourn.sql(lab.database, "SELECT lower(hex(session_uuid)) AS session, reason FROM removals")
    check(all(row["reason"] for row in why) and sorted(node.rows("SELECT session, cause FROM removals")) ==
          sorted([row["session"], row["reason"]] for row in why), f"reasons of removals: {why}")


def restored_lab(node, labs, words):
    """The lab returns to an older copy of its database. It forwards everything again, and no row is there twice."""
    lab = labs[0]
    copy = lab.database + ".copy"
    with contextlib.closing(sqlite3.connect(lab.database)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
        source.backup(target)
        target.execute("DELETE FROM forwarded_sessions")
        target.commit()
    for end in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(lab.database + end)
    os.replace(copy, lab.database)
    lab.forward(*words, "send", node.url, says="2 sessions were sent")
    check_equal(node, labs)


def far_ahead(node, labs, words):
    """Rows from a clock that was 30 years ahead are replaced by newer rows all the same."""
    uuid, newest = node.rows("SELECT session, version FROM sessions LIMIT 1")[0]
    for (table,) in node.rows("SELECT name FROM system.tables WHERE database = 'sojourn' AND name LIKE 'raw_%'"):
        names = [row[0] for row in node.rows(f"DESCRIBE TABLE {table}")]
        if "session" in names and table != "raw_calls":
            values = ", ".join({"version": "version + 1000000000000000000"}.get(name, name) for name in names)
            node.ask(f"INSERT INTO sojourn.{table} SELECT {values} FROM sojourn.{table} WHERE session = '{uuid}' "
                     f"AND version = {newest}")
    check_equal(node, labs)
    for one in labs:
        with sqlite3.connect(one.database) as database:
            database.execute("UPDATE sessions SET name = 'the clock is right' WHERE lower(hex(uuid)) = ?", (uuid,))
        one.forward(*words, "send", node.url)
    check(node.rows(f"SELECT name FROM sessions WHERE session = '{uuid}'") == [["the clock is right"]], "an older version is seen")
    check_equal(node, labs)


def rebuilt_lab(sojourn, node, labs, words):
    """A block cannot be read, and the sums made without it replace the old sums."""
    lab = labs[0]
    calls = node.rows("SELECT sum(calls) FROM function_stats")
    with sqlite3.connect(lab.database) as database:
        block, data = database.execute("SELECT block_id, data FROM blocks WHERE kind = 1 AND call_count > 0 ORDER BY call_count DESC "
                                       "LIMIT 1").fetchone()
        database.execute("UPDATE blocks SET data = zeroblob(100) WHERE block_id = ?", (block,))
    sojourn.run(["verify", "--rebuild", "all", lab.database], capture_output=True)
    lab.forward(*words, "send", node.url)
    check(node.rows("SELECT sum(calls) FROM function_stats") != calls, "the sums are those from before")
    check_equal(node, labs)
    with sqlite3.connect(lab.database) as database:
        database.execute("UPDATE blocks SET data = ? WHERE block_id = ?", (data, block))
    sojourn.run(["verify", lab.database], capture_output=True)
    sojourn.run(["verify", "--rebuild", "all", lab.database], capture_output=True)
    lab.forward(*words, "send", node.url)
    check(node.rows("SELECT sum(calls) FROM function_stats") == calls, "the sums have not come back")
    check_equal(node, labs)


def from_version_1(node, labs, words):
    """Tables of the first version have no single calls. init adds them."""
    for statement in ("DROP TABLE sojourn.calls", "DROP TABLE sojourn.raw_calls", "DROP TABLE sojourn.schema_version",
                      "CREATE TABLE sojourn.schema_version (version UInt64, cluster String) ENGINE = TinyLog",
                      "INSERT INTO sojourn.schema_version VALUES (1, '')"):
        node.ask(statement)
    labs[0].forward(*words, "send", node.url, code=1, says='run "sojourn forward init" with it again')
    labs[0].forward(*words, "init", node.url)
    labs[0].forward(*words, "--session", "1", "calls", node.url)
    check(node.rows("SELECT count() FROM calls") != [["0"]], "no calls after init")


def from_version_3(node, labs, words):
    """Tables of the third version have no threads. init adds them, and all sessions are forwarded again."""
    for table in ("threads", "open_calls", "unhooked"):
        node.ask(f"DROP TABLE sojourn.{table}")
        node.ask(f"DROP TABLE sojourn.raw_{table}")
    node.ask("DROP TABLE sojourn.removals")
    node.ask("DROP TABLE sojourn.schema_version")
    node.ask("CREATE TABLE sojourn.schema_version (version UInt64, cluster String) ENGINE = TinyLog")
    node.ask("INSERT INTO sojourn.schema_version VALUES (3, '')")
    for lab in labs:
        with sqlite3.connect(lab.database) as database:  # as the previous version noted them
            database.execute("UPDATE forwarded_sessions SET content = substr(content, 3)")
    labs[0].forward(*words, "send", node.url, code=1, says='run "sojourn forward init" with it again')
    labs[0].forward(*words, "init", node.url)
    for lab in labs:
        lab.forward(*words, "send", node.url)
    check_equal(node, labs)


def a_renamed_table_is_reported(node, labs, words):
    node.ask("RENAME TABLE sojourn.raw_slow_calls TO sojourn.elsewhere")
    labs[0].record("return", "--name", "late")
    labs[0].forward(*words, "send", node.url, code=3, says="slow_calls")
    node.ask("RENAME TABLE sojourn.elsewhere TO sojourn.raw_slow_calls")
    node.ask("DROP TABLE sojourn.schema_version")
    node.ask("CREATE TABLE sojourn.schema_version (version UInt64, cluster String) ENGINE = TinyLog")
    node.ask("INSERT INTO sojourn.schema_version VALUES (99, '')")
    labs[0].forward(*words, "send", node.url, code=1, says="version 99")
    labs[0].forward(*words, "init", node.url, code=1, says="version 99")
    node.ask("DROP TABLE sojourn.schema_version")
    labs[0].forward(*words, "init", node.url)
    from_version_1(node, labs, words)
    from_version_3(node, labs, words)
    labs[0].forward(*words, "send", node.url)
    check_equal(node, labs)


def an_unreadable_session_delays_no_other(node, labs, words):
    """A session whose sums cannot be read is named and does not delay the others."""
    lab = labs[0]
    for how in ("return", "throw", "exit"):
        lab.record(how)
    with sqlite3.connect(lab.database) as database:
        session, function, histogram = database.execute(
            "SELECT session_id, function_id, histogram FROM function_stats WHERE histogram IS NOT NULL "
            "ORDER BY session_id DESC LIMIT 1").fetchone()
        change = "UPDATE function_stats SET histogram = ? WHERE session_id = ? AND function_id = ?"
        database.execute(change, (b"\x63", session, function))
        database.execute("UPDATE sessions SET name = 'all are owed'")
    others = lab.sums("sessions")[0] - 1
    done = lab.forward(*words, "send", node.url, code=1, says="a histogram of function_stats cannot be read")
    check(f"{others} sessions were sent" in done, f"not the other {others}: {done}")
    with sqlite3.connect(lab.database) as database:
        database.execute(change, (histogram, session, function))
    lab.forward(*words, "send", node.url, says="1 session was sent")
    check_equal(node, labs)


def killed(node, labs, words, dice):
    """kill -9 of the sender or of the server at any moment of a batch."""
    lab = labs[0]
    for number in range(KILLS):
        if number % 3 == 0:
            lab.record(dice.choice(["return", "throw"]))
        lab.command()
        with sqlite3.connect(lab.database, timeout=PATIENCE_S) as database:
            database.execute("UPDATE sessions SET name = 'round ' || ?", (number,))
        sender = subprocess.Popen([lab.sojourn.program, "forward", "--database", lab.database, *words, "send", node.url],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(0, 0.15))
        if dice.random() < 0.3:
            node.stop(signal.SIGKILL)
            sender.wait(PATIENCE_S)
            node.start()
        else:
            sender.kill()
            sender.wait(PATIENCE_S)
    lab.forward(*words, "send", node.url)
    check_equal(node, labs)
    names = node.rows("SELECT DISTINCT name FROM sessions WHERE name LIKE 'round%'")
    check(names == [[f"round {KILLS - 1}"]], f"an older version is seen: {names}")


def the_collector_forwards_by_itself(sojourn, node, labs, words):
    """sojournd forwards by itself. While the cluster is away, rows stay pending."""
    program = os.path.join(os.path.dirname(sojourn.program), "sojournd")
    port = free_port()
    lab = Lab(sojourn, "server.db", labs[0].ends)
    node.stop()
    collector = subprocess.Popen([program, "--listen", f"tcp://127.0.0.1:{port}", "--database", lab.database, "--forward",
                                  node.url, "--forward-password", words[1]], stderr=subprocess.PIPE, text=True)
    try:
        wait_for("the collector", lambda: os.path.exists(lab.database))
        done = sojourn.run(["record", "--quiet", "--collector", f"tcp://127.0.0.1:{port}", "--wait", "60", "--",
                            lab.ends, "return"], capture_output=True, text=True)
        check("sojourn:" not in done.stderr, f"record: {done.stderr}")
        node.start()
        wait_for("the session in the cluster", lambda: int(node.rows("SELECT count() FROM sessions")[0][0]) ==
                 sum(lab.sums("sessions")[0] for lab in (*labs, lab)))
    finally:
        collector.terminate()
        log = collector.communicate()[1]
    check(collector.returncode == 0 and "is not reached" in log, f"the collector: {log}")
    check_equal(node, [*labs, lab])


def test(sojourn, arguments):
    seed = int(arguments[0]) if arguments else random.randrange(1 << 30)
    print(f"seed {seed}, {KILLS} kills", flush=True)
    cluster = Cluster(sojourn)
    node, lab, other, words = cluster.node, cluster.lab, cluster.other, cluster.words
    labs = [lab, other]
    try:
        node.start()
        refusals(sojourn, node, lab)
        sent_once(node, lab, other, words)
        changed_and_removed_sessions_are_sent_again(sojourn, node, labs, words)
        audit(node, labs, words)
        restored_lab(node, labs, words)
        far_ahead(node, labs, words)
        rebuilt_lab(sojourn, node, labs, words)
        a_renamed_table_is_reported(node, labs, words)
        an_unreadable_session_delays_no_other(node, labs, words)
        killed(node, labs, words, random.Random(seed))
        the_collector_forwards_by_itself(sojourn, node, labs, words)
    finally:
        node.stop()


if __name__ == "__main__":
    main(test)
