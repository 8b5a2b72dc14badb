#!/usr/bin/env python3
"""The checks of statements find long SQL, and functions that another folder declares; the generator reads statements."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from statements import definition_problems, loop_problems, statement_problems

GENERATOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "schema", "embed_statements.py")
LONG_C = ('static const char sql[] =\n    "SELECT a, b"\n    " FROM t"\n    " WHERE a = 1"\n    " AND b = 2";\n',
          'run("INSERT INTO t "\n /* a remark */ "SELECT " NAME("a")\n " FROM u"\n " WHERE 1");\n',
          '#define MATCHES \\\n  " FROM t" \\\n  " WHERE a" \\\n  " AND b" \\\n  " AND c"\n')
SHORT_C = ('run("SELECT a "\n    "FROM t "\n    "WHERE b");\n', 'say("one "\n "two "\n "three "\n "four");\n',
           'f("SELECT a FROM t",\n  "b",\n\n  "c");\n', "/* \"SELECT\n\n\n\n a\" */\n")
STATEMENTS = """-- Statements.

-- part: mean(total, calls)
{total} / nullif({calls}, 0)

-- name: mean_of
-- bind: name text, after optional
-- row: mean real, name text
SELECT {mean(sum(ns), count(*))}, name -- of all
FROM   t
WHERE name = :name AND ('a  :b -- c' IS NOT name) AND id > :after AND name <> :name
"""


def generate(text):
    """Returns the header that the generator makes of the text, or what it says against it."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "one.sql"), "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([sys.executable, GENERATOR, folder, file.name], capture_output=True, text=True)
        if done.returncode:
            return done.stderr
        with open(os.path.join(folder, "one.h"), encoding="utf-8") as file:
            return file.read()


class Statements(unittest.TestCase):
    def test_long_statements_are_found(self):
        for text in LONG_C:
            self.assertEqual(1, len(statement_problems("a.c", text)), text)
        self.assertEqual(1, len(statement_problems("a.ts", "const sql = `\n  SELECT a\n  FROM t\n  WHERE b`;\n")))
        self.assertEqual(1, len(statement_problems("a.tsx", 'f("SELECT a" +\n "b" +\n "c" +\n "d");\n')))

    def test_short_statements_are_not_found(self):
        for text in SHORT_C:
            self.assertEqual([], statement_problems("a.c", text), text)
        self.assertEqual([], statement_problems("a.ts", "const sql = `SELECT a\nFROM t\nWHERE b`;\n"))

    def test_a_loop_over_rows_is_found(self):
        loops = ["    while (status == SJ_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {\n    }\n",
                 "    while (sqlite3_step(row) == SQLITE_ROW &&\n           count < 2) {\n    }\n",
                 "    for (int i = 0; i < most && sqlite3_step(row) == SQLITE_ROW; i++) {\n    }\n"]
        for loop in loops:
            self.assertEqual(1, len(loop_problems({"store/a.c": loop})), loop)
            self.assertEqual([], loop_problems({"store/a.c": loop}, {"store/a.c"}), loop)
            self.assertEqual(1, len(loop_problems({"store/a.c": loop + loop}, {"store/a.c"})), loop)
        self.assertEqual([], loop_problems({"store/a.c": "    while (i < 2) {\n        i++;\n    }\n"
                                                         "    if (sqlite3_step(row) == SQLITE_ROW) {\n    }\n"}))

    def test_declarations_are_where_definitions_are(self):
        declared = "sj_status sj_open(const char *path);\n"
        texts = {"store/store.h": declared, "query/reader.c": "sj_status sj_open(const char *path)\n{\n}\n"}
        self.assertEqual(1, len(definition_problems(texts)))
        self.assertEqual([], definition_problems({"query/reader.h": declared, **{name: text for name, text in texts.items()
                                                                               if name.endswith(".c")}}))

    def test_the_generator_reads_statements(self):
        header = generate(STATEMENTS)
        self.assertIn("SELECT sum(ns) / nullif(count(*), 0), name FROM t WHERE name = :name AND", " ".join(header.split('"\n    "')))
        self.assertIn("'a  :b -- c' IS NOT name", header.replace('"\n    "', ""))
        self.assertIn("const char *name;\n    const int64_t *after;\n} sj_mean_of_binds;", header)
        self.assertIn("double mean;\n    const char *name;\n} sj_mean_of_row;", header)

    def test_the_generator_refuses_faults(self):
        for fault in ("-- name: a\n-- bind: b text\nSELECT 1\n", "-- name: a\n-- row: b date\nSELECT 1\n",
                      "-- name: a\nSELECT {b}\n", "-- name: a\n-- name: b\nSELECT 1\n", "-- name: A b\nSELECT 1\n",
                      "-- name: a\nSELECT 1\n-- name: a\nSELECT 2\n"):
            self.assertIn("embed_statements.py: ", generate(fault), fault)


if __name__ == "__main__":
    unittest.main()
