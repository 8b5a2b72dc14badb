#!/usr/bin/env python3
"""Tests the audit of the command line: each change of a collector has one row with its user, object and outcome, also
if it is refused before it begins.

audit_rows.py BUILD_FOLDER MIGRATIONS_FOLDER
"""
import glob
import os
import pwd
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system", "support"))
from sojourn_testing import check, json_rows, main


def make_database(path, migrations):
    """Makes a collector's database with one device, which is enrolled, and one session."""
    database = sqlite3.connect(path)
    for number, name in enumerate(sorted(glob.glob(os.path.join(migrations, "*.sql"))), 1):
        with open(name, encoding="utf-8") as file:
            database.executescript(file.read())
        database.execute(f"PRAGMA user_version = {number}")
    database.execute("PRAGMA application_id = 0x534a4c42")
    database.execute("INSERT INTO devices(uuid, name, first_seen_realtime_ns, last_seen_realtime_ns) "
                     "VALUES (x'00112233445566778899aabbccddeeff', 'phone7', 1, 1)")
    database.execute("INSERT INTO device_tokens(device_id, token_hash, enrolled_realtime_ns) VALUES (1, randomblob(32), 1)")
    database.commit()
    database.close()


class Audited:
    """Runs commands on a database, and checks the row of each."""

    def __init__(self, sojourn, database):
        self.sojourn, self.database, self.rows = sojourn, database, 0

    def run(self, *words, action, says, outcome="done"):
        done = self.sojourn.run([*words], capture_output=True, text=True)
        check((done.returncode == 0) == (outcome == "done"), f"{words}: {done.returncode} {done.stderr}")
        rows = json_rows(self.sojourn.run(["audit", "--json", self.database], capture_output=True, text=True).stdout)
        check(len(rows) == self.rows + 1, f"{words}: {len(rows) - self.rows} rows")
        self.rows = len(rows)
        row = rows[0]
        user = pwd.getpwuid(os.geteuid()).pw_name
        check(row["who"] == f"user:{user}" and row["peer"] == "" and row["action"] == action and says in row["object"]
              and outcome in row["outcome"], f"{words}: {row}")

    def device(self, *words, **row):
        self.run("device", "--database", self.database, *words, **row)


def test(sojourn, arguments):
    database = sojourn.path("lab.db")
    make_database(database, arguments[0])
    audited = Audited(sojourn, database)
    invitation, no_wait = sojourn.path("invitation"), "--no-wait"
    audited.run("token", "add", "ci", "--role", "reader", "--database", database, action="token", says="add ci")
    audited.run("token", "add", "ci", "--role", "reader", "--database", database, action="token", says="add ci", outcome="ci")
    audited.run("token", "revoke", "ci", "--database", database, action="token", says="revoke ci")
    audited.run("token", "revoke", "none", "--database", database, action="token", says="revoke none", outcome="none")

    audited.device("--collector", "tcp://127.0.0.1:1", "invite", invitation, action="device", says="a new device invite")
    audited.device("--collector", "tcp://127.0.0.1:1", "invite", invitation, action="device", says="invite", outcome="exists")
    audited.device("--collector", "tcp://127.0.0.1:1", "invite", sojourn.path("another"), "absent", action="device",
                   says="absent invite", outcome="no device matches")
    audited.device("--collector", "tls+tcp://127.0.0.1:1", "invite", sojourn.path("third"), action="device", says="invite",
                   outcome="certificate")

    audited.device("phone7", "tag", "rack=7", action="command", says="phone7 tags")
    audited.device("phone7", "quota", "bytes=2G", action="command", says="phone7 quota")
    audited.device(no_wait, "phone7", "attach", "12", action="command", says='phone7 attach {"pid":12}')
    audited.device(no_wait, "phone7", "attach", "many", action="command", says="phone7 attach", outcome="number")
    audited.device(no_wait, "phone7", "stauts", action="command", says="phone7 stauts", outcome="unknown command")
    audited.device(no_wait, "absent", "status", action="command", says="absent status", outcome="no device matches")
    audited.device(no_wait, "tag:rack=9", "status", action="command", says="tag:rack=9 status", outcome="no enrolled device")
    audited.device("absent", "revoke", action="device", says="absent revoke", outcome="no device matches")
    audited.device("phone7", "revoke", action="device", says="phone7 revoke")
    audited.device("phone7", "revoke", action="device", says="phone7 revoke", outcome="token")


main(test)
