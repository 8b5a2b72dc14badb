#!/usr/bin/env python3
"""Sessions are tagged, noted, removed, retained, exported and imported. Names and lines are added to stored
sessions, and the flame graph says what it leaves out. kill -9 in the middle of a removal or an import leaves a
sound database that keeps working.

upkeep.py BUILD_FOLDER SAMPLE NEXT_PROGRAM: NEXT_PROGRAM is `sojourn` with a made-up migration after the newest one;
with SJ_LONG=1 there are 200 kills
"""
import copy
import json
import os
import re
import random
import signal
import sqlite3
import subprocess
import sys
import time
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, build_sample, check, json_rows, main, sample_text, wait_for

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden_databases")
IS_LONG = os.environ.get("SJ_LONG") == "1"
SOURCE = sample_text("record/hidden_name.c")


def run(sojourn, arguments, expected=0):
    done = sojourn.run(arguments, capture_output=True, text=True)
    check(done.returncode == expected, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def rows(sojourn, database, query):
    return json_rows(run(sojourn, ["sql", "--json", query, database]).stdout)


def sound(database, what):
    connection = sqlite3.connect(database)
    check(connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], f"{what}: damaged")
    check(connection.execute("PRAGMA foreign_key_check").fetchall() == [], f"{what}: dangling rows")
    wrong = "SELECT count(*) FROM call_paths WHERE path_id >> 32 <> session_id"
    check(connection.execute(wrong).fetchone() == (0,), f"{what}: paths of other sessions")
    connection.close()


CONTENTS = (
    ("n, d, x, f", "SELECT count(*) AS n, sum(duration_ns) AS d, sum(depth) AS x, group_concat(DISTINCT f.name) "
     "AS f FROM calls AS c JOIN functions AS f USING (function_id) WHERE c.session_id = {}"),
    ("name, depth, calls, total_ns, self_ns", "SELECT name, depth, calls, total_ns, self_ns FROM call_tree({})"),
    ("name, calls, total_ns, h", "SELECT f.name, s.calls, s.total_ns, hex(s.histogram) AS h FROM function_stats AS s JOIN "
     "functions AS f USING (function_id) WHERE session_id = {} ORDER BY 1"),
    ("a, b, calls", "SELECT c.name AS a, d.name AS b, e.calls FROM call_edges AS e LEFT JOIN functions AS c ON "
     "c.function_id = e.caller_function_id JOIN functions AS d ON d.function_id = "
     "e.callee_function_id WHERE session_id = {} ORDER BY 1, 2"),
    ("u, command, tags, pinned, state, stored_calls", "SELECT hex(uuid) AS u, command, tags, pinned, state, stored_calls "
     "FROM sessions WHERE session_id = {}"),
    ("note, start_ns, end_ns, c", "SELECT note, start_ns, end_ns, call_id & 274877906943 AS c FROM annotations WHERE "
     "session_id = {}"),
    ("name, reason, size_bytes", "SELECT name, reason, size_bytes FROM unhooked_functions WHERE session_id = {} ORDER BY 1"))


def all_rows(sojourn, database, asked):
    """Returns the rows of several queries, each with the names of its columns, from one process."""
    def as_array(columns, query):
        pairs = ", ".join(f"'{name}', {name}" for name in columns.split(", "))
        return f"(SELECT json_group_array(json_object({pairs})) FROM ({query}))"
    texts = ", ".join(f"{as_array(columns, query)} AS q{number}" for number, (columns, query) in enumerate(asked))
    return [json.loads(text) for text in rows(sojourn, database, f"SELECT {texts}")[0].values()]


def contents(sojourn, database, session):
    """Returns the content of a session, without ids that may differ."""
    return all_rows(sojourn, database, [(columns, query.format(session)) for columns, query in CONTENTS])


def an_exported_session_is_imported_unchanged(sojourn, collector, other):
    act = ["session", "--database", other]
    run(sojourn, [*act, "tag", "last", "build=42", "branch=main"])
    run(sojourn, [*act, "untag", "last", "branch"])
    run(sojourn, [*act, "--at", "10..20", "--call", "5", "--author", "me", "note", "last", "look"])
    run(sojourn, [*act, "pin", "last"])
    one = sojourn.path("one.db")
    run(sojourn, [*act, "export", "1", one])
    run(sojourn, [*act, "export", "1", one], expected=1)
    before = contents(sojourn, other, 1)
    check(json.loads(before[4][0]["tags"])["build"] == "42" and before[5][0]["start_ns"] == 10,
          f"tags or notes: {before[4:6]}")
    check(contents(sojourn, one, 1) == before, "export differs")
    run(sojourn, ["session", "--database", collector, "import", one])
    told = run(sojourn, ["session", "--database", collector, "import", one])
    check("already" in told.stderr, "imported twice")
    check(contents(sojourn, collector, 3) == before, "import differs")
    sound(collector, "import")
    sound(one, "export")


def removal(sojourn, collector):
    act = ["session", "--database", collector]
    kept = contents(sojourn, collector, 1)
    run(sojourn, [*act, "remove", "3"], expected=1)  # it is pinned
    run(sojourn, [*act, "retain", "all=1k"])
    check([row["session_id"] for row in rows(sojourn, collector, "SELECT session_id FROM sessions")] ==
          [3], "retention keeps only the pinned session here")
    run(sojourn, [*act, "unpin", "3"])
    run(sojourn, [*act, "retain", "all=1s"])  # the annotated session stays
    run(sojourn, [*act, "remove", "3"])
    check(rows(sojourn, collector, "SELECT (SELECT count(*) FROM blocks) + (SELECT count(*) FROM functions)"
               " + (SELECT count(*) FROM call_paths) AS n")[0]["n"] == 0, "something is left")
    told = rows(sojourn, collector, "SELECT reason FROM removals ORDER BY removal_id")
    check([row["reason"] for row in told] ==
          ["retention: size of all"] * 2 + ["sojourn session remove"], f"reasons: {told}")
    check(sqlite3.connect(collector).execute("PRAGMA freelist_count").fetchone() == (0,), "space is kept")
    sound(collector, "removal")
    check(kept[0][0]["n"] > 0, "nothing was there to be removed")


def killed(sojourn, collector, sources, rounds):
    """kill -9 while sessions are removed and imported, repeatedly."""
    generator = random.Random(5)
    for number in range(rounds):
        for action in (["import", sources], ["retain", "all=1k"]):
            process = subprocess.Popen([sojourn.program, "session", "--database", collector, *action],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env=sojourn.environment)
            time.sleep(generator.uniform(0, 0.06))
            process.send_signal(signal.SIGKILL)
            process.wait()
            sound(collector, f"round {number}: {action[0]} killed")
        for row in rows(sojourn, collector, "SELECT session_id, stored_calls, state FROM sessions"):
            counted = rows(sojourn, collector, "SELECT count(*) AS n FROM calls WHERE session_id = "
                           f"{row['session_id']}")[0]["n"]
            check(counted == row["stored_calls"] or row["state"] == "removing", f"half a session: "
                  f"{row}, {counted} calls")
    run(sojourn, ["session", "--database", collector, "retain", "all=1k"])
    check(rows(sojourn, collector, "SELECT count(*) AS n FROM sessions WHERE state = 'removing'")[0]["n"]
          == 0, "a removal is not finished")
    run(sojourn, ["session", "--database", collector, "import", sources])
    sound(collector, "at the end")


def symbols(sojourn):
    source, program, full = (sojourn.path(name) for name in ("named.c", "named", "named.full"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(SOURCE)
    subprocess.run(["gcc", "-O1", "-g", "-Wl,--build-id", "-o", full, source], check=True)
    subprocess.run(["strip", "-o", program, full], check=True)
    database = sojourn.path("named.db")
    done, _summary = sojourn.record([program], database)
    check(done.returncode == 0, done.stderr)
    query = ("SELECT f.name, l.file, l.line FROM function_stats AS s JOIN functions AS f USING "
             "(function_id) LEFT JOIN function_lines AS l USING (function_id) WHERE s.calls = 500")
    check("hidden_name" not in str(rows(sojourn, database, query)), "it was named before")
    run(sojourn, ["symbols", "--database", database, "add", "/bin/true"], expected=3)
    run(sojourn, ["symbols", "--database", database, "add", source], expected=1)
    run(sojourn, ["symbols", "--database", database, "add", os.path.dirname(full)])
    named = rows(sojourn, database, query)
    check(len(named) == 1 and named[0]["name"] == "hidden_name" and named[0]["line"] == 6 and
          named[0]["file"].endswith("named.c"), f"symbols: {named}")
    inlined = rows(sojourn, database, "SELECT i.name, i.depth, i.call_line FROM inlined_functions AS "
                   "i JOIN functions AS f USING (function_id) WHERE f.name = 'hidden_name'")
    check(inlined == [{"name": "folded_in", "depth": 1, "call_line": 8}], f"inlined: {inlined}")
    again = run(sojourn, ["symbols", "--database", database, "refresh"]).stdout
    check("0 functions named" in again, again)
    sound(database, "symbols")


def golden_database(sojourn, name):
    """Makes the database of a released version from its dump."""
    database = sojourn.path(name + ".db")
    connection = sqlite3.connect(database)
    with open(os.path.join(GOLDEN, name + ".sql"), encoding="utf-8") as file:
        connection.executescript(file.read())
    connection.executescript(f"PRAGMA application_id=0x534a4c42; PRAGMA user_version={name[len('version'):]}")
    connection.close()
    return database


def version_of(database):
    connection = sqlite3.connect(database)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return version


def killed_migration(sojourn, later):
    """A migration that is killed at any moment has changed everything or nothing, and completes later."""
    for number in range(6):
        database = golden_database(sojourn, "version1")
        command = [later.program, "session", "--database", database, "tag", "1", "old=1"]
        if number > 0:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env=sojourn.environment)
            time.sleep(number * 0.004)
            process.send_signal(signal.SIGKILL)
            process.wait()
        run(later, command[1:])
        sound(database, "migration")
        check(rows(later, database, "SELECT room FROM devices")[0]["room"] == "room of vm", "data lost")
        os.unlink(database)


def schema_of(database):
    """Returns the schema of a database, without the comments and spaces that a new database lacks."""
    rows = sqlite3.connect(database).execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY 1, 2")
    return [(kind, name, re.sub(r"\s*([(),])\s*", r"\1",
                                " ".join(re.sub("--[^\n]*", "", sql).split())))
            for kind, name, sql in rows]


def recomputed_sums_equal_the_stored_ones(sojourn, database, now):
    """Compares the sums after `verify --rebuild` with those before, and long calls with those of decoded blocks."""
    run(sojourn, ["verify", "--rebuild", "all", database])
    check(contents(sojourn, database, 1) == now, "sums made anew differ")
    # Outlines have no physical durations, so blocks are decoded for these.
    asked = [("call_id, duration_ns", f"SELECT call_id, duration_ns FROM calls WHERE duration_ns > {least}{more} ORDER BY call_id")
             for least in (0, 1000, 10_000, 100_000, 1_000_000) for more in ("", " AND physical_duration_ns IS NOT NULL")]
    found = all_rows(sojourn, database, asked)
    for (_, query), outlines, blocks in zip(asked[::2], found[::2], found[1::2]):
        check(outlines == blocks, f"{query}: {len(outlines)} from outlines, {len(blocks)} from blocks")


OUTLINES = "SELECT block_id, stream_id, floor_ticks, hex(calls) AS calls FROM block_outlines ORDER BY 1"


def missing_outlines_are_made_again(sojourn):
    """`verify --rebuild` makes missing outlines. They equal the outlines of a new recording."""
    program, fresh = build_sample(sojourn, "questions/many_calls.c", "-O1"), sojourn.path("many.db")
    longest = "SELECT call_id FROM calls ORDER BY duration_ns DESC, call_id LIMIT 20"
    sojourn.record([program], fresh)
    new, outlines, longest_calls = contents(sojourn, fresh, 1), rows(sojourn, fresh, OUTLINES), rows(sojourn, fresh, longest)
    check(new[0][0]["n"] > 30000 and outlines, f"outlines of a new recording: {outlines}")
    connection = sqlite3.connect(fresh)
    connection.execute("DELETE FROM block_outlines")
    connection.commit()
    connection.close()
    check(contents(sojourn, fresh, 1) == new and rows(sojourn, fresh, longest) == longest_calls,
          "without outlines there are other contents")
    recomputed_sums_equal_the_stored_ones(sojourn, fresh, new)
    check(rows(sojourn, fresh, OUTLINES) == outlines, "other outlines than a new recording has")
    check(rows(sojourn, fresh, longest) == longest_calls, "other calls are the longest")


def golden_databases(sojourn, later):
    """This version and a later one read a recording of every released version as before, also through a copy until
    something changes the file. Recomputed sums are the same. The upgraded database has the schema of a new one."""
    fresh = sojourn.path("fresh.db")
    sojourn.record(["/bin/true"], fresh)
    for name in sorted(file[:-len(".sql")] for file in os.listdir(GOLDEN)):
        database = golden_database(sojourn, name)
        told = contents(sojourn, database, 1)
        check(told[0][0]["n"] == 4263, f"{name}: {told[0]}")
        run(sojourn, ["session", "--database", database, "unpin", "1"])
        check(schema_of(database) == schema_of(fresh), f"the schema of {name} is not that of a new database")
        check(contents(sojourn, database, 1) == told, f"{name} has other contents than its copy")
        recomputed_sums_equal_the_stored_ones(sojourn, database, told)
        version = version_of(database)
        check(contents(later, database, 1) == told and version_of(database) == version, f"a later version changes {name}")
        run(later, ["session", "--database", database, "unpin", "1"])
        check(version_of(database) == version + 1, f"{name} is not migrated")
        sound(database, f"migration of {name}")
        recomputed_sums_equal_the_stored_ones(later, database, told)
        refused = sojourn.run(["sql", "SELECT 1", database], capture_output=True, text=True)
        check(refused.returncode == 1 and "written by a newer Sojourn" in refused.stderr, f"a newer one is read: {refused}")
        os.unlink(database)


def while_sending(sojourn, sample):
    """The server removes old sessions while devices send. Everything new arrives completely."""
    collector, url = sojourn.path("server.db"), f"ipc://{sojourn.path('server.ipc')}"
    for _ in range(3):
        sojourn.record([sample], collector)
    old = [row["session_id"] for row in rows(sojourn, collector, "SELECT session_id FROM sessions")]
    run(sojourn, ["session", "--database", collector, "tag", str(old[0]), "old=1"])
    run(sojourn, ["session", "--database", collector, "tag", str(old[1]), "old=1"])
    server = subprocess.Popen(
        [sojourn.program + "d", "--database", collector, "--listen", url, "--retain", "tag:old=1s",
         "--retain-every", "1"], stderr=subprocess.PIPE, text=True, env=sojourn.environment)
    try:
        for _ in range(6):
            done = sojourn.run(["record", "--quiet", "--collector", url, "--", sample],
                               capture_output=True)
            check(done.returncode == 0, f"sending: {done.stderr}")
        wait_for("retention", lambda: len(rows(sojourn, collector, "SELECT 1 FROM sessions")) == 7)
    finally:
        server.send_signal(signal.SIGTERM)
        told = server.communicate(timeout=PATIENCE_S)[1]
    check(told.count('event=retention message="removes') == 2, told)
    left = rows(sojourn, collector, "SELECT session_id, stored_calls = sent_calls AS whole FROM sessions")
    check(len(left) == 7 and all(row["whole"] for row in left), f"sessions: {left}\n{told}")
    sound(collector, "retention of a server")


def flame(sojourn, collector):
    path = sojourn.path("flame.svg")
    run(sojourn, ["flame", "--session", "1", "-o", path, collector])
    tree = xml.etree.ElementTree.parse(path)
    drawn = [g for g in tree.iter("{http://www.w3.org/2000/svg}g") if g.get("class") == "p"]
    foot = [t.text for t in tree.iter("{http://www.w3.org/2000/svg}text") if "paths shown" in
            (t.text or "")][0]
    paths = rows(sojourn, collector, "SELECT count(*) AS n FROM flame(1)")[0]["n"]
    hidden = int(foot.split(", ")[1].split()[0]) if "left out" in foot else 0
    check(len(drawn) + hidden == paths and drawn, f"{len(drawn)} drawn, {foot}, {paths} paths")
    shares = sum(float(g.get("data-w")) for g in drawn if g.get("data-d") == "0")
    check(abs(shares - 1200) < 1200 * 0.02, f"outermost calls take {shares} of 1200 pixels")
    html = sojourn.path("flame.html")
    run(sojourn, ["flame", "-o", html, collector])
    with open(html, encoding="utf-8") as file:
        text = file.read()
    check(text.startswith("<!doctype html>") and "src=" not in text, "not one file")


def rotten(sojourn, sample):
    """A damaged block is named and quarantined, and the rest is read. Sums are either recomputed or, if that is
    killed, unchanged."""
    database = sojourn.path("rotten.db")
    sojourn.record([sample], database)
    run(sojourn, ["verify", database])
    whole = contents(sojourn, database, 1)
    connection = sqlite3.connect(database)
    block, calls, data = connection.execute(
        "SELECT block_id, call_count, data FROM blocks WHERE kind = 1 ORDER BY call_count DESC "
        "LIMIT 1").fetchone()
    connection.execute("UPDATE blocks SET data = zeroblob(length(data)) WHERE block_id = ?", (block,))
    connection.commit()
    asked = ["sql", "--json", "SELECT count(*) AS n FROM calls", database]

    def look(options, expected):
        told = run(sojourn, ["verify", *options, database], expected=expected).stdout
        check((f"block {block} of session 1" in told) == (expected == 1), f"verify says: {told}")
        return told

    for options in (["--check-only"], []):
        look(options, 1)
        done = run(sojourn, asked)
        check(json_rows(done.stdout)[0]["n"] == whole[0][0]["n"] - calls, "the rest is not read")
        check(f"block {block} cannot be read" in done.stderr, f"not named: {done.stderr}")
    marked = json_rows(run(sojourn, ["sql", "--json", "--query", "quarantined", database]).stdout)
    check([(row["block_id"], row["calls"]) for row in marked] == [(block, calls)], f"{marked}")
    connection.execute("UPDATE blocks SET data = ? WHERE block_id = ?", (data, block))
    connection.commit()
    check("can be read again" in look([], 0), "it stays marked")
    look(["--rebuild", "last"], 0)
    check(contents(sojourn, database, 1) == whole, "sums made anew differ")
    for number in range(6):
        process = subprocess.Popen([sojourn.program, "verify", "--rebuild", "all", database],
                                   stdout=subprocess.DEVNULL, env=sojourn.environment)
        time.sleep(number * 0.005)
        process.kill()
        process.wait()
        look([], 0)
        sound(database, "rebuild killed")
    check(contents(sojourn, database, 1) == whole, "a killed rebuild has left something")
    run(sojourn, ["verify", sojourn.path("none.db")], expected=3)


def test(sojourn, arguments):
    collector, other = sojourn.path("lab.db"), sojourn.path("other.db")
    for database in (collector, collector, other):
        done, _summary = sojourn.record(arguments[:1], database)
        check(done.returncode == 0, done.stderr)
    sources = sojourn.path("sources.db")
    for _ in range(3):
        sojourn.record(arguments[:1], sources)
    flame(sojourn, collector)
    an_exported_session_is_imported_unchanged(sojourn, collector, other)
    removal(sojourn, collector)
    killed(sojourn, collector, sources, 200 if IS_LONG else 8)
    symbols(sojourn)
    rotten(sojourn, arguments[0])
    later = copy.copy(sojourn)
    later.program = arguments[1]
    killed_migration(sojourn, later)
    golden_databases(sojourn, later)
    missing_outlines_are_made_again(sojourn)
    while_sending(sojourn, arguments[0])


if __name__ == "__main__":
    main(test)
