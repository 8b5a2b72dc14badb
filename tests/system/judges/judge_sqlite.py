#!/usr/bin/env python3
"""The sqlite3 shell prints the same for a long script with all functions of the shell and of the library hooked.
The script has indexes, triggers, windows, JSON, FTS5, recursion, errors and transactions on disk. judge_sqlite.py
BUILD_FOLDER"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from judging import check_session, need, run_both, sizes
from sojourn_testing import check, main

SCRIPT = """
.bail off
.headers on
PRAGMA journal_mode=WAL; PRAGMA cache_size=50;
CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT, c REAL, j TEXT);
CREATE INDEX t_a ON t(a, b); CREATE UNIQUE INDEX t_b ON t(b);
CREATE TABLE log(n INT, what TEXT);
CREATE TRIGGER t_ins AFTER INSERT ON t WHEN new.id % 100 = 0
  BEGIN INSERT INTO log VALUES(new.id, 'inserted ' || new.b); END;
BEGIN;
WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
INSERT INTO t SELECT i, i * 7919 % 1009, printf('key-%06d-%s', i, hex(i * 31)), i / 7.0,
  json_object('i', i, 'list', json_array(i, i + 1, 'x')) FROM n;
COMMIT;
SELECT count(*), sum(a), min(b), max(b), round(sum(c), 3) FROM t;
SELECT a, count(*), group_concat(id) FROM t WHERE a < 20 GROUP BY a ORDER BY a;
SELECT id, a, sum(a) OVER (ORDER BY id ROWS 5 PRECEDING), rank() OVER (PARTITION BY a % 7 ORDER BY c)
  FROM t ORDER BY id LIMIT 200;
SELECT json_extract(j, '$.list[1]') AS x, count(*) FROM t GROUP BY x % 13 ORDER BY x LIMIT 30;
SELECT x.id, y.id FROM t x JOIN t y ON x.a = y.a AND x.id < y.id WHERE x.a BETWEEN 5 AND 7 ORDER BY 1, 2;
CREATE VIRTUAL TABLE f USING fts5(body);
INSERT INTO f SELECT b || ' word' || (id % 50) || ' other' || (id % 7) FROM t;
SELECT count(*) FROM f WHERE f MATCH 'word13 AND other6';
SELECT snippet(f, 0, '<', '>', '...', 4) FROM f WHERE f MATCH 'word7' ORDER BY rank, rowid LIMIT 5;
INSERT INTO f(f) VALUES('integrity-check');
CREATE VIRTUAL TABLE r USING rtree(id, x0, x1, y0, y1);
INSERT INTO r SELECT id, a, a + 5, id % 500, id % 500 + 3 FROM t;
SELECT count(*) FROM r WHERE x0 > 100 AND x1 < 300 AND y0 > 40 AND y1 < 200;
INSERT INTO t VALUES(1, 1, 'twice', 1, '');
SELECT no_such_column FROM t;
SELECT * FROM missing;
SELECT abs(-9223372036854775808);
SAVEPOINT s; DELETE FROM t WHERE id % 3 = 0; SELECT count(*) FROM t; ROLLBACK TO s; RELEASE s;
UPDATE t SET c = c * 2, b = b || '!' WHERE a % 5 = 0;
DELETE FROM t WHERE a % 11 = 3;
SELECT count(*), sum(length(b)), round(total(c), 2) FROM t;
WITH RECURSIVE m(x, y, v) AS (SELECT -2.0, -1.2, 0 UNION ALL SELECT x + 0.1, y, v + 1 FROM m WHERE v < 30)
  SELECT count(*), round(sum(x), 3) FROM m;
SELECT count(*), max(what) FROM log;
VACUUM; REINDEX; ANALYZE;
PRAGMA integrity_check; PRAGMA foreign_key_check;
EXPLAIN QUERY PLAN SELECT * FROM t WHERE a = 3 AND b > 'key';
.dump log
.schema
.mode json
SELECT id, b, c FROM t WHERE id < 30;
"""


def one_round(sojourn, rows):
    database, data = sojourn.path("judge.db"), sojourn.path("data.db")

    def prepare():
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(data + suffix):
                os.unlink(data + suffix)

    script = sojourn.path("script.sql")
    with open(script, "w", encoding="utf-8") as file:
        file.write(SCRIPT.replace("{rows}", str(rows)))
    plain = run_both(sojourn, "sqlite3", ["sqlite3", data, ".read " + script],
                     ("sqlite3", "libsqlite3*"), database, prepare=prepare)
    check(len(plain[1]) > 10000 and "UNIQUE constraint failed" in plain[2], "the script did not run")
    run_both(sojourn, "sqlite3 again", ["sqlite3", data, "PRAGMA integrity_check", ".dump"],
             ("sqlite3", "libsqlite3*"), database)
    print(f"sqlite3: {check_session(sojourn, database, 2)} calls", flush=True)
    os.unlink(database)


def test(sojourn, _):
    need("sqlite3")
    for rows in sizes(6000, 60000):
        one_round(sojourn, rows)


if __name__ == "__main__":
    main(test)
