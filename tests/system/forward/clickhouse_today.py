#!/usr/bin/env python3
"""A current ClickHouse accepts the statements that labs and readers send: its own parser and engine run them.

The engine is that of the npm package in PACKAGE_FOLDER (todays_clickhouse.py). The test makes the tables of one node
and of a cluster, fills and reads them, and gives them a TTL. docs/clickhouse.md must grant exactly the verbs and tables
that the statements use.

clickhouse_today.py BUILD_FOLDER PACKAGE_FOLDER
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from forward_questions import questions_agree
from lab_testing import Lab, check_equal, ends_of
from sojourn_testing import check, main
from todays_clickhouse import Today

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "clickhouse.md")
LEAST_VERSION = 24
MISTAKES = (
    ("SELEC 1", 62), ("CREATE TABEL x (a UInt8) ENGINE = TinyLog", 62), ("CREATE TABLE x (a UInt8) ENGIN = TinyLog", 62),
    ("ALTER TABLE x MODIFY TTTL a + toIntervalDay(1)", 62), ("GRANT SELEKT, INSERT ON sojourn.* TO somebody", 62),
    ("CREATE TABLE sojourn.x (a UInt9) ENGINE = TinyLog", 50), ("CREATE TABLE sojourn.x (a UInt8) ENGINE = TinyLok", 56),
    ("CREATE TABLE sojourn.x (a UInt8) ENGINE = MergeTree ORDER BY b", 47), ("SELECT arraySumm([1])", 46),
)
# The verbs of a statement, and the right that each needs.
NEEDS = (
    (r"CREATE DATABASE IF NOT EXISTS (\w+)$", "CREATE DATABASE"), (r"CREATE TABLE IF NOT EXISTS (\w+)\.", "CREATE TABLE"),
    (r"CREATE VIEW IF NOT EXISTS (\w+)\.", "CREATE VIEW"), (r"DROP TABLE IF EXISTS (\w+)\.", "DROP TABLE"),
    (r"ALTER TABLE (\w+)\.", "ALTER TABLE"), (r"INSERT INTO (\w+)\.", "INSERT"),
)


def record_lab(sojourn):
    lab = Lab(sojourn, "lab.db", ends_of(sojourn))
    for how in ("return", "threads", "exit"):
        lab.record(how)
    lab.enrich()
    lab.name_methods()
    lab.command()
    return lab


def mistakes_are_refused(node):
    """The engine refuses statements with mistakes. So its acceptance of the other statements means something."""
    node.ask("CREATE DATABASE IF NOT EXISTS sojourn")
    for sql, code in MISTAKES:
        answer, is_error = node.request(sql)
        check(is_error and answer.startswith(f"Code: {code}."), f"{sql}: {answer}")
    answer, is_error = node.request("SELECT 1", settings="async_inserd=0")
    check(is_error and answer.startswith("Code: 115."), f"an unknown setting: {answer}")
    node.ask("DROP DATABASE sojourn")


def sent_and_read(sojourn, node, lab, *layout):
    lab.forward(*layout, "init", node.url)
    lab.forward(*layout, "init", node.url)
    lab.forward("send", node.url, says="3 sessions were sent")
    check_equal(node, [lab])
    lab.forward("send", node.url, says="0 sessions were sent")
    if layout:
        questions_agree(sojourn, node, lab, [])
    lab.forward("--retain", "10000d", *layout, "init", node.url)
    check_equal(node, [lab])


def granted():
    """Returns the rights that docs/clickhouse.md grants to the three users, as pairs of a right and its object."""
    with open(PAGE, encoding="utf-8") as file:
        found = re.findall(r"^(GRANT ([A-Z, ]+) ON (\S+) TO sojourn_(\w+));$", file.read(), re.M)
    check(len(found) >= 4, f"not the rights: {found}")
    rights = {"admin": set(), "lab": set(), "reader": set()}
    for _, verbs, place, user in found:
        rights[user] |= {(verb.strip(), place) for verb in verbs.split(",")}
    return [statement for statement, *_ in found], rights


def needed(sql):
    """Returns the rights that a statement needs. A shipped question begins with comments."""
    sql = re.sub(r"^(--[^\n]*\n)+", "", sql)
    rights = {(right, f"{place[1]}.*") for pattern, right in NEEDS if (place := re.match(pattern, sql))}
    if "DROP TABLE" in sql:
        rights.add(("DROP VIEW", "sojourn.*"))  # one of the dropped tables is a view
    if re.match(r"CREATE VIEW|SELECT", sql) and not re.search(r"FROM system\.", sql):
        rights.add(("SELECT", "sojourn.*"))
    if "ENGINE = Distributed" in sql:
        rights.add(("REMOTE", "*.*"))
    return rights | {("SELECT", f"system.{table}") for table in re.findall(r"FROM system\.(\w+)", sql) if table != "columns"}


def granted_rights_equal_used_rights(node, statements, shards):
    """Checks that the granted rights equal the used ones. `statements` are those of init, send and the questions.
    `shards` is true if the tables are those of a cluster."""
    grants, rights = granted()
    for grant in grants:
        check(node.request(f"SELECT formatQuery('{grant}')") == (grant + "\n", False), f"not as the parser has it: {grant}")
    makes = r"CREATE|DROP|ALTER|SELECT count\(\) FROM system.columns|INSERT INTO sojourn.schema_version|SELECT max\(version\), any\(cluster\)"
    used = {"admin": set(), "lab": set(), "reader": set()}
    for one in statements:
        check(needed(one["sql"]) or "FROM system.columns" in one["sql"], f"no right is known for {one['sql']}")
        user = "admin" if re.match(makes, one["sql"]) else "reader" if "readonly" in one["settings"] and "max(version) FROM sojourn" \
            not in one["sql"] else "lab"
        used[user] |= needed(one["sql"])
        if re.match(r"SELECT max\(version\), any\(cluster\)", one["sql"]):
            used["lab"] |= needed(one["sql"])
            used["reader"] |= needed(one["sql"])
    if shards:
        used["reader"].add(("SELECT", "system.one"))  # the table `shards` reads system.one
    for user, had in rights.items():
        check(used[user] == had, f"{user}: not granted {used[user] - had}, not used {had - used[user]}")


def test(sojourn, arguments):
    library = os.path.join(arguments[0], "node_modules/@chdb/lib-linux-x64-gnu/libchdb.so")
    lab = record_lab(sojourn)
    sent = []
    for layout in ((), ("--shards", "labs", "--replicated")):
        node = Today(sojourn.path("node" + str(len(layout))), library)
        try:
            node.start()
            check(int(node.version.split(".")[0]) >= LEAST_VERSION, f"ClickHouse {node.version} is too old")
            mistakes_are_refused(node)
            sent_and_read(sojourn, node, lab, *layout)
            sent += node.statements()
            refused = [one for one in node.statements() if one["error"] and not one["error"].startswith(("Code: 60.", "Code: 81."))]
            check(refused == [], f"refused: {refused[:3]}")
            if layout:
                granted_rights_equal_used_rights(node, sent, True)
        finally:
            node.stop()


main(test)
