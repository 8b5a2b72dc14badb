"""Helpers for the tests of `sojourn forward`: labs that forward their sums to a cluster, their sessions, and
comparisons with the rows of the cluster."""
import json
import os
import sqlite3

from clickhouse_node import Node
from sojourn_testing import PATIENCE_S, check, json_rows

HOSTILE = "'); DROP TABLE sessions; --\\ \t\n\\N \u2603"
# The sums of each table. Both engines must agree on them in every row.
SUMS = {
    "sessions": ("count(*), sum(stored_calls), sum(stored_events), sum(stored_bytes)", "sessions"),
    "function_stats": ("count(*), sum(calls), sum(total_ns), sum(self_ns), sum(max_ns), sum(untimed_calls), sum(error_ns)", "function_stats"),
    "functions": ("count(*)", "function_stats"),
    "call_edges": ("count(*), sum(calls), sum(total_ns), sum(self_ns)", "call_edges"),
    "call_paths": ("count(*), sum(calls), sum(total_ns), sum(self_ns), sum(depth)", "call_paths"),
    "slow_calls": ("count(*), sum(duration_ns), sum(place)", "slow_calls"),
    "marks": ("count(*), sum(at_ns), sum(is_end)", "marks"),
    "coverage": ("count(*), sum(functions), sum(hooked)",
                 "(SELECT function_count AS functions, hooked_count AS hooked FROM session_modules)"),
    "zombie_reports": ("count(*), sum(at_ns), sum(length(kind))", "(SELECT r.at_ns, z.kind FROM zombie_reports r "
                       "JOIN zombies z USING (zombie_id))"),
    "gaps": ("count(*), sum(calls)", "gaps"),
    "threads": ("count(*), sum(calls), sum(max_depth), sum(tid), sum(is_main), sum(run_time_ns)", "thread_stats"),
    "open_calls": ("count(*), sum(depth), sum(start_ns)", "open_calls"),
    "unhooked": ("sum(functions), sum(bytes)", "(SELECT 1 AS functions, size_bytes AS bytes FROM unhooked_functions)"),
    "commands": ("count(*), sum(command_id), sum(timeout_ms), sum(length(state))", "commands"),
}
EXACT = ("function", "calls", "total_ns", "self_ns", "min_ns", "max_ns", "untrusted")
COMPARED = ("name", "verdict", "self_ns_a", "self_ns_b", "total_ns_a", "total_ns_b", "calls_a", "calls_b",
            "sessions_a", "sessions_b", "symbol_key")
SHOWN = ("name", "module", "calls", "total_ns", "self_ns", "min_ns", "max_ns", "untrusted", "untimed_calls", "error_ns", "is_estimate")


class Lab:
    """A database with sessions of its own."""

    def __init__(self, sojourn, name, ends):
        self.sojourn, self.database, self.ends = sojourn, sojourn.path(name), ends

    def record(self, how="return", *options):
        done, _ = self.sojourn.record([self.ends, how], self.database, options)
        check(os.path.exists(self.database), f"record: {done.stderr}")

    def enrich(self):
        """Adds marks, a gap and a finding to session 2, and a device of its own to session 3, so that every question
        has an answer."""
        with sqlite3.connect(self.database) as database:
            stream, thread, first, last = database.execute(
                "SELECT s.stream_id, t.number, s.first_enter_ns, s.last_leave_ns FROM streams s JOIN threads t USING (thread_id) "
                "WHERE s.session_id = 2 ORDER BY s.calls DESC LIMIT 1").fetchone()
            step = (last - first) // 4
            for number, (name, is_end, at) in enumerate((("phase", 0, first + 1), ("phase", 1, first + 2 * step),
                                                         ("phase", 0, first + 3 * step), ("it's open", 0, first + step))):
                database.execute("INSERT INTO marks(session_id, number, name, is_end, at_ns, source) VALUES (2, ?, ?, ?, ?, 'cli')",
                                 (900 + number, name, is_end, at))
            database.execute("INSERT INTO gaps(session_id, stream_id, thread_number, reason, calls, events, start_ns, end_ns) "
                             "VALUES (2, ?, ?, 'torn', 3, 6, ?, ?)", (stream, thread, first + step, first + step + 10))
            report = database.execute("INSERT INTO reports(session_id, monitor, number, at_ns, kind, payload) "
                                      "VALUES (2, 'heap', 900, 7, 'overflow', '{}')").lastrowid
            zombie = database.execute("INSERT INTO zombies(fingerprint, kind, used_in, freed_in, allocated_in, reports, "
                                      "first_seen_realtime_ns, last_seen_realtime_ns, state) VALUES (?, 'overflow', ?, '', '', 1, "
                                      "1, 1, 'open')", ("planted", HOSTILE)).lastrowid
            database.execute("INSERT INTO zombie_reports(report_id, zombie_id, session_id, at_ns, thread_name, tid, size, offset) "
                             "VALUES (?, ?, 2, 7, 'main', 1, 8, 8)", (report, zombie))
            database.execute("INSERT INTO devices(uuid, name, first_seen_realtime_ns, last_seen_realtime_ns) "
                             "VALUES (randomblob(16), 'another', 1, 2)")
            database.execute("UPDATE sessions SET device_id = (SELECT max(device_id) FROM devices) WHERE session_id = 3")

    def mark_changed(self):
        """Renames a session, so that the lab must forward it again."""
        with sqlite3.connect(self.database, timeout=PATIENCE_S) as database:
            database.execute("UPDATE sessions SET name = 'changed' WHERE session_id = 1")

    def name_methods(self):
        with sqlite3.connect(self.database) as database:
            database.execute("UPDATE functions SET name = '-[Ends(More) step:with:]' WHERE name = 'ends_step'")
            database.execute("UPDATE functions SET name = '+[Sub:Ends work:]' WHERE name = 'ends_work'")

    def command(self, who="somebody"):
        """Adds one more audit entry, as a user who commands devices does."""
        with sqlite3.connect(self.database, timeout=PATIENCE_S) as database:
            database.execute(
                "INSERT INTO commands(device_id, kind, arguments, state, requested_by, timeout_ms, created_realtime_ns, result) "
                "SELECT min(device_id), 'ping', ?, 'queued', ?, 1000 + coalesce((SELECT max(command_id) FROM commands), 0), "
                "1700000000000000000, ? FROM devices", ("{}", who, HOSTILE))

    def forward(self, *words, code=0, says=""):
        done = self.sojourn.run(["forward", "--database", self.database, *words], capture_output=True, text=True)
        check(done.returncode == code and says in done.stdout + done.stderr,
              f"forward {words}: {done.returncode} {done.stdout} {done.stderr}")
        return done.stdout

    def sums(self, table):
        what, local = SUMS[table]
        with sqlite3.connect(self.database) as database:
            return [number or 0 for number in database.execute(f"SELECT {what} FROM {local}").fetchone()]


def check_equal(node, labs):
    for table, (what, _) in SUMS.items():
        there = [int(number) if number != "\\N" else 0 for number in
                 node.rows(f"SELECT {what.replace('count(*)', 'count()')} FROM {table}")[0]]
        here = [sum(numbers) for numbers in zip(*(lab.sums(table) for lab in labs))]
        check(there == here, f"{table}: {there} in the cluster, {here} in the labs")
    for lab in labs:
        with sqlite3.connect(lab.database) as database:
            known = {row[0] for row in database.execute("SELECT lower(hex(uuid)) FROM sessions")}
        uuid = sqlite3.connect(lab.database).execute("SELECT lower(hex(uuid)) FROM lab").fetchone()[0]
        check({row[0] for row in node.rows(f"SELECT session FROM sessions WHERE lab = '{uuid}'")} == known,
              "not the sessions of the lab")


def answers(sojourn, *words, code=0, says=""):
    done = sojourn.run(["sql", "--json", *words], capture_output=True, text=True)
    check(done.returncode == code and says in done.stderr, f"sql {words}: {done.returncode} {done.stderr}")
    return json_rows(done.stdout) if code == 0 else None


def rounded(rows):
    """Returns the rows, sorted. Floating-point numbers may differ in their last digits, so they are rounded."""
    return sorted(json.dumps({name: f"{value:.9g}" if isinstance(value, float) else value
                              for name, value in row.items()}, sort_keys=True) for row in rows)


def json_of(sojourn, *words):
    done = sojourn.run([*words, "--json"], capture_output=True, text=True)
    check(done.returncode == 0, f"{words}: {done.stderr}")
    return json_rows(done.stdout)


def sums_agree(pages, server):
    """Compares the functions and trees of each session of a lab with the cluster. Returns the session ids in the
    cluster."""
    ids = {}
    for uuid, row in server.listed().items():
        there = pages.listed()[uuid]
        ids[row["id"]] = there["id"]
        for path in ("functions?limit=500", "call-tree"):
            shown = [rounded([{name: one.get(name) for name in SHOWN} for one in asked.get(f"sessions/{number}/{path}")["items"]])
                     for asked, number in ((server, row["id"]), (pages, there["id"]))]
            check(shown[0] == shown[1] and shown[0], f"{path} of {uuid}: {shown}")
    return ids


def ends_of(sojourn):
    """Returns the path of the program that the labs record."""
    return os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests/samples/ends")


class Cluster:
    """A node with its own password, and two labs with sessions. `words` are the options that name the password."""

    def __init__(self, sojourn, tls=False):
        secret = sojourn.path("password")
        with open(secret, "w", encoding="utf-8") as file:
            file.write("cluster's own\n")
        self.words = ["--cluster-password", secret]
        sojourn.environment["TMPDIR"] = sojourn.path("copies")
        os.mkdir(sojourn.environment["TMPDIR"])
        self.node = Node(sojourn.path("node"), "cluster's own", tls=tls)
        self.lab, self.other = (Lab(sojourn, name, ends_of(sojourn)) for name in ("lab.db", "other.db"))
        for how in ("return", "threads", "exit"):
            self.lab.record(how)
        self.other.record("return", "--name", HOSTILE)
        self.lab.enrich()
        for one in (self.lab, self.other):
            one.name_methods()
        self.lab.command()
        self.lab.command("somebody else")
