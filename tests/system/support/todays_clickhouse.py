#!/usr/bin/env python3
"""Serves the engine of a current ClickHouse over HTTP, like a server of one node.

Debian's ClickHouse is of 2018. The npm package @chdb/lib-linux-x64-gnu has engine and parser of a current release as a
library, without a server. This program accepts statements, settings and rows as a server's HTTP interface does. After
the parser has read a statement, it logs the statement as a line of JSON.

The library has no cluster of several nodes. The parser reads each statement of a cluster as it was sent. The engine
then gets the same tables on one node.

todays_clickhouse.py LIBRARY FOLDER PORT
"""
import ctypes
import http.server
import json
import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request

from clickhouse_node import lasting_port
from sojourn_testing import PATIENCE_S, check, wait_for

OWN = ("query", "database", "wait_end_of_query")
NOT_FOUND = ("60", "81")
ONE_NODE = (
    (r"Replicated(\w*)MergeTree\('[^']*', '\{replica\}'(?:, (version))?\)", r"\1MergeTree(\2)"),
    (r"Distributed\(\w+, (\w+), (\w+)(?:, cityHash64\(\w+\))?\)", r"Merge(\1, '^\2$')"),
    (r"^(INSERT INTO \w+\.)put_", r"\1raw_"),
)


class Engine:
    """The library, with one connection."""

    def __init__(self, library, folder):
        self.chdb = ctypes.CDLL(library)
        self.chdb.chdb_connect.restype = ctypes.POINTER(ctypes.c_void_p)
        self.chdb.chdb_query_n.restype = self.chdb.chdb_result_buffer.restype = ctypes.c_void_p
        self.chdb.chdb_result_length.restype = ctypes.c_size_t
        self.chdb.chdb_result_error.restype = ctypes.c_char_p
        self.rows = os.path.join(folder, "rows.native")
        words = (ctypes.c_char_p * 3)(b"clickhouse", b"--path", os.path.join(folder, "data").encode())
        self.connection = ctypes.c_void_p(self.chdb.chdb_connect(3, words)[0])

    def run(self, sql):
        """Returns the bytes of the answer or of the error, and true if it is an error."""
        text = sql.encode()
        tsv = b"TabSeparated"
        result = ctypes.c_void_p(self.chdb.chdb_query_n(self.connection, text, ctypes.c_size_t(len(text)), tsv,
                                                        ctypes.c_size_t(len(tsv))))
        error = self.chdb.chdb_result_error(result)
        length = self.chdb.chdb_result_length(result)
        answer = error or (ctypes.string_at(self.chdb.chdb_result_buffer(result), length) if length else b"")
        self.chdb.chdb_destroy_query_result(result)
        return answer, error is not None

    def parse(self, sql):
        """Returns the parser's error, or an empty text."""
        quoted = sql.replace("\\", "\\\\").replace("'", "\\'")
        answer, is_error = self.run(f"SELECT formatQuery('{quoted}')")
        return answer if is_error else b""

    def answer(self, sql, rows, database, settings):
        """Runs the statement of a request, with its rows and settings."""
        listed = ", ".join(f"{name} = '{value}'" for name, value in settings)
        problem = self.parse(sql)
        if problem:
            return problem, True
        for pattern, one_node in ONE_NODE:
            sql = re.sub(pattern, one_node, sql)
        if rows:  # the library cuts off rows that follow a statement
            with open(self.rows, "wb") as file:
                file.write(rows)
            sql = re.sub(r" FORMAT Native$", f" FROM INFILE '{self.rows}' FORMAT Native", sql)
        if listed:
            sql = re.sub(r"( FORMAT \w+\s*)?$", rf" SETTINGS {listed}\1", sql, count=1)
        answer, is_error = self.run(f"USE {database}")
        return (answer, True) if is_error else self.run(sql)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query, keep_blank_values=True))
        size = self.headers.get("Content-Length")
        body = self.rfile.read(int(size or 0))
        sql = asked.get("query") or body.decode()
        settings = [(name, value) for name, value in asked.items() if name not in OWN]
        answer, is_error = self.server.engine.answer(sql, body if "query" in asked else b"",
                                                     asked.get("database", "default"), settings)
        with open(self.server.log, "a", encoding="utf-8") as log:
            log.write(json.dumps({"sql": sql, "settings": dict(settings), "user": self.headers["X-ClickHouse-User"],
                                  "error": answer.decode() if is_error else ""}) + "\n")
        code = re.match(r"Code: (\d+)", answer.decode(errors="replace")) if is_error else None
        self.send_response(200 if not is_error else 404 if code and code[1] in NOT_FOUND else 500)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Today:
    """This server in a process of its own. It has the members of clickhouse_node.Node that tests of labs use."""

    def __init__(self, folder, library):
        self.folder, self.library, self.http = folder, library, lasting_port()
        self.url, self.log, self.process = f"http://127.0.0.1:{self.http}", os.path.join(folder, "log"), None
        os.makedirs(folder)

    def start(self):
        with open(os.path.join(self.folder, "out"), "ab") as out:
            self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), self.library, self.folder,
                                             str(self.http)], stdout=out, stderr=out)
        wait_for("the engine", self.is_up)
        self.version = self.ask("SELECT version()").strip()

    def is_up(self):
        check(self.process.poll() is None, f"the engine ended with {self.process.returncode}, see {self.folder}/out")
        try:
            return self.ask("SELECT 1") == "1\n"
        except OSError:
            return False

    def request(self, sql, database="default", settings=""):
        """Returns the answer, and true if it is an error."""
        query = urllib.parse.urlencode({"database": database}) + (f"&{settings}" if settings else "")
        try:
            asked = urllib.request.Request(f"{self.url}/?{query}", data=sql.encode(), headers={"X-ClickHouse-User": "test"})
            with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
                return answer.read().decode(), False
        except urllib.error.HTTPError as refused:
            return refused.read().decode(), True

    def ask(self, sql, database="default", settings=""):
        answer, is_error = self.request(sql, database, settings)
        check(not is_error, f"{sql}: {answer}")
        return answer

    def rows(self, sql, database="sojourn"):
        return [line.split("\t") for line in self.ask(sql, database).splitlines()]

    def statements(self):
        """Returns the statements that the product has sent so far."""
        with open(self.log, encoding="utf-8") as log:
            return [one for one in map(json.loads, log) if one["user"] != "test"]

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE_S)


def serve(library, folder, port):
    server = http.server.HTTPServer(("127.0.0.1", int(port)), Handler)
    server.engine, server.log = Engine(library, folder), os.path.join(folder, "log")
    server.serve_forever()


if __name__ == "__main__":
    serve(*sys.argv[1:])
