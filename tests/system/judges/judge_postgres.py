#!/usr/bin/env python3
"""PostgreSQL under pgbench with a fixed seed gives the same answers with all functions of the server hooked in all
its processes. Sums over the tables, exit status and accounts equal those of an unhooked server. SJ_LONG=1: many
more transactions. judge_postgres.py BUILD_FOLDER"""
import contextlib
import glob
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from judging import check_session, compare, options_of, sizes
from sojourn_testing import PATIENCE_S, check, main, wait_for

# The server refuses to run as root, so root starts it in a user namespace.
AS_USER = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []
QUESTIONS = """SELECT count(*), sum(abalance), min(abalance), max(abalance) FROM pgbench_accounts;
SELECT tid, tbalance FROM pgbench_tellers ORDER BY 1;
SELECT count(*), sum(delta) FROM pgbench_history;
SELECT aid % 7 AS part, sum(abalance) FROM pgbench_accounts GROUP BY 1 ORDER BY 1;
SELECT round(avg(length(md5(aid::text || filler))), 3) FROM pgbench_accounts WHERE aid % 13 = 5;
CREATE INDEX by_balance ON pgbench_accounts (abalance, aid);
SELECT aid FROM pgbench_accounts WHERE abalance > 3000 ORDER BY abalance DESC, aid LIMIT 20;
SELECT 1 / 0;
DO $$ BEGIN FOR i IN 1..50 LOOP BEGIN INSERT INTO pgbench_branches VALUES (1, i, '');
EXCEPTION WHEN unique_violation THEN NULL; END; END LOOP; END $$;
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT sum(i * i) FROM n;
VACUUM ANALYZE; CHECKPOINT;"""


def programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    check(found, "PostgreSQL is missing: run .ci/packages test")
    return found[-1]


class Server:
    def __init__(self, sojourn, folder, database):
        self.binaries, self.folder = programs(), folder
        self.environment = dict(sojourn.environment, PGHOST=folder, PGUSER="judge", LC_ALL="C")
        os.makedirs(folder)
        data = os.path.join(folder, "data")
        self.run([*AS_USER, self.path("initdb"), "-D", data, "-A", "trust", "-U", "judge", "--no-sync"])
        wrapper = [] if database is None else [
            sojourn.program, "record", "--quiet", "-o", database, *options_of(["postgres"]), "--"]
        self.process = subprocess.Popen(
            [*wrapper, *AS_USER, self.path("postgres"), "-D", data, "-k", folder, "-h", "", "-c", "fsync=off",
             "-c", "autovacuum_naptime=1"],
            stdout=subprocess.DEVNULL, stderr=open(os.path.join(folder, "log"), "wb"), env=self.environment)
        wait_for("the server answers", lambda: subprocess.run(
            [self.path("pg_isready"), "-q"], env=self.environment, check=False).returncode == 0)
        with open(os.path.join(data, "postmaster.pid"), encoding="ascii") as file:
            self.pid = int(file.readline())

    def path(self, name):
        return os.path.join(self.binaries, name)

    def run(self, command, **options):
        return subprocess.run(command, env=self.environment, check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=4 * PATIENCE_S, **options).stdout

    def stop(self):
        os.kill(self.pid, signal.SIGINT)
        return self.process.wait(4 * PATIENCE_S)


def answers(sojourn, folder, database, transactions):
    server = Server(sojourn, folder, database)
    with contextlib.ExitStack() as at_end:
        at_end.callback(server.process.kill)
        server.run([server.path("createdb"), "bench"])
        server.run([server.path("pgbench"), "-i", "-q", "bench"])
        # With one client the order of its transactions, and so every sum, follows from the seed. Several clients at
        # once then only read.
        server.run([server.path("pgbench"), "-n", "--random-seed=7919", "-t", str(transactions), "bench"])
        server.run([server.path("pgbench"), "-n", "-S", "-c", "4", "-j", "2", "-t", str(transactions), "bench"])
        text = subprocess.run([server.path("psql"), "-X", "bench"], input=QUESTIONS, env=server.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
                              timeout=4 * PATIENCE_S).stdout
        status = server.stop()
        at_end.pop_all()
    return f"{text}\nended with {status}"


def test(sojourn, _):
    for number, transactions in enumerate(sizes(20, 3000)):
        database = sojourn.path("postgres.db")
        plain = answers(sojourn, sojourn.path(f"plain{number}"), None, transactions)
        hooked = answers(sojourn, sojourn.path(f"hooked{number}"), database, transactions)
        check("division by zero" in plain, f"the questions were not answered: {plain}")
        compare("PostgreSQL", plain, hooked)
        calls = check_session(sojourn, database, 1)
        processes = sojourn.sql(database, "SELECT count(*) AS n FROM processes WHERE executable LIKE "
                                          "'%/postgres'")[0]["n"]
        check(processes > 8, f"only {processes} processes were recorded")
        print(f"PostgreSQL: {calls} calls of {processes} processes", flush=True)
        os.unlink(database)


if __name__ == "__main__":
    main(test)
