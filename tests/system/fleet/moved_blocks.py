#!/usr/bin/env python3
"""Blocks are moved to a folder, and every reader of calls reads them there. kill -9 in a move, a return or a
removal loses no block. A file that is missing, cut or changed is named with its session, and does no other harm.

moved_blocks.py BUILD_FOLDER [SEED]: some kills, 100 with SJ_LONG=1.
"""
import contextlib
import glob
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_sums, main

KILLS = 100 if os.environ.get("SJ_LONG") else 8
LUA = ("local n = 0 for i = 1, 6000 do n = n + #tostring(i) end local t = {} for i = 1, 2000 do t[i] = i * 7 % 1000 end "
       "table.sort(t) print(n)")


def run(sojourn, *words, code=0, says=""):
    done = sojourn.run(list(words), capture_output=True, text=True)
    check(done.returncode == code and says in done.stdout + done.stderr,
          f"{words}: {done.returncode} {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


SUMS = ("SELECT count(*) AS calls, sum(call_id), sum(parent_id), sum(function_id), sum(depth), sum(start_ns), "
        "sum(duration_ns), sum(self_ns) FROM calls WHERE session_id = {}")


def calls(sojourn, database, session=1, says=""):
    """Returns sums over all calls. The first one is their number."""
    done = run(sojourn, "sql", "--csv", SUMS.format(session), database, says=says)
    check(bool(done.stderr) == bool(says), f"warnings: {done.stderr}")
    return [int(number or 0) for number in done.stdout.splitlines()[1].split(",")]


def answers(sojourn, database):
    """Returns the answers of everything that reads blocks."""
    return [calls(sojourn, database)] + [
        run(sojourn, *words, database).stdout for words in (
            ("sql", "--csv", "SELECT call_id, duration_ns FROM calls WHERE session_id = 1 ORDER BY duration_ns DESC LIMIT 50"),
            ("sql", "--csv", "SELECT function_id, count(*), sum(self_ns) FROM calls WHERE session_id = 1 AND start_ns BETWEEN "
             "1000000 AND 90000000 GROUP BY 1 ORDER BY 1"),
            ("report", "--session", "1", "--json", "--all"),
            ("export", "--session", "1", "--format", "folded"))]


def ask(database, sql):
    with contextlib.closing(sqlite3.connect(database, timeout=PATIENCE_S)) as connection:
        return connection.execute(sql).fetchall()


def inline(database, session=1):
    return ask(database, "SELECT count(*) FROM streams JOIN blocks USING (stream_id) "
                         f"WHERE session_id = {session} AND storage = 'inline'")[0][0]


def files(folder):
    return glob.glob(os.path.join(folder, "*.blocks"))


def check_tidy(database, folder):
    """The folder has exactly the files that the database needs, and the database refers to each."""
    named = {name for name, in ask(database, "SELECT name FROM block_files WHERE is_needed")}
    check({os.path.basename(path) for path in files(folder)} == named, f"files {files(folder)}, needed {named}")
    check(ask(database, "SELECT 1 FROM block_files WHERE NOT is_needed") == [], "a file is left")
    check(ask(database, "SELECT f.name FROM block_files AS f WHERE NOT EXISTS (SELECT 1 FROM blocks "
                        "WHERE storage LIKE 'file:' || f.file_id || ':%')") == [], "a file without blocks")


def killed(sojourn, database, folder, before, dice):
    """kill -9 at any moment of a move or a return. The blocks are in one place or the other."""
    act = [sojourn.program, "session", "--database", database]
    begin = time.monotonic()
    run(sojourn, *act[1:], "move", "1", folder, says="are in files now")
    whole = time.monotonic() - begin
    cut = 0
    number = 0
    while number < KILLS or cut == 0:
        words = ["return", "1"] if number % 2 == 0 else ["move", "1", folder]
        worker = subprocess.Popen([*act, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(0, whole))
        worker.kill()
        cut += worker.wait(PATIENCE_S) != 0
        check(calls(sojourn, database) == before[0], f"after kill {number} of {words}")
        number += 1
        if number >= KILLS:
            whole *= 0.9  # the first move can take longer than all later ones
    run(sojourn, "verify", database, says="sound")
    run(sojourn, *act[1:], "move", "1", folder)
    check(inline(database) == 0, "blocks are left in the database")
    check_tidy(database, folder)
    check(answers(sojourn, database) == before, "other answers after kills")


def damaged(sojourn, database, folder, before):
    """A file that cannot be read is named, and the rest is there. Everything is there again when the file is restored."""
    uuid = ask(database, "SELECT lower(hex(uuid)) FROM sessions WHERE session_id = 1")[0][0]
    away = folder + ".away"
    storage, name = ask(database, "SELECT storage, name FROM blocks JOIN block_files ON storage LIKE 'file:' || file_id || ':%' "
                                  "ORDER BY call_count DESC LIMIT 1")[0]
    victim, offset = os.path.join(folder, name), int(storage.split(":")[2])
    for how, says in (("gone", "No such file"), ("cut", "ends too early"), ("changed", "does not have the bytes"),
                      ("folder", "No such file")):
        shutil.copy(victim, victim + ".kept")
        if how == "gone":
            os.remove(victim)
        elif how == "cut":
            os.truncate(victim, offset + 100)
        elif how == "changed":
            with open(victim, "r+b") as file:
                file.seek(offset + 20)
                byte = file.read(1)[0]
                file.seek(offset + 20)
                file.write(bytes([byte ^ 4]))
        else:
            os.rename(folder, away)
        done = run(sojourn, "sql", "--csv", SUMS.format(1), database)
        check(says in done.stderr and os.path.basename(victim)[:40] in done.stderr and uuid in done.stderr and
              "are missing here" in done.stderr, f"{how}: {done.stderr}")
        check(int(done.stdout.splitlines()[1].split(",")[0]) < before[0][0], f"{how}: all calls are there")
        run(sojourn, "report", "--session", "1", database)
        if how in ("gone", "folder"):
            done = sojourn.run(["verify", database], capture_output=True, text=True)
            check(done.returncode != 0 and victim in done.stdout + done.stderr, f"verify, {how}: {done.stdout}{done.stderr}")
            check(ask(database, "SELECT 1 FROM blocks WHERE quarantined IS NOT NULL") == [], "an absent file marks blocks")
            sums = ask(database, "SELECT * FROM function_stats ORDER BY 1, 2")
            done = sojourn.run(["verify", "--rebuild", "all", database], capture_output=True, text=True)
            check(ask(database, "SELECT * FROM function_stats ORDER BY 1, 2") == sums, "a rebuild took the sums")
            run(sojourn, "session", "--database", database, "export", "1", sojourn.path("never.db"), code=1, says=uuid)
            run(sojourn, "session", "--database", database, "return", "1", code=1, says=uuid)
            check(not os.path.exists(sojourn.path("never.db")), "half of an export is left")
        if how == "folder":
            os.rename(away, folder)
        os.replace(victim + ".kept", victim)
    check(answers(sojourn, database) == before, "other answers with the file back")


def refused(sojourn, database, folder):
    act = ["session", "--database", database]
    run(sojourn, *act, "move", "1", os.path.join(folder, "nowhere"), code=1, says="is not a folder")
    run(sojourn, *act, "move", "99", folder, code=3)
    for address, name in (("/etc", "passwd"), ("/etc", "passwd.blocks"), (folder, "../x.blocks"), ("/proc/self", "environ")):
        copy = sojourn.path("elsewhere.db")
        shutil.copy(database, copy)
        with contextlib.closing(sqlite3.connect(copy)) as connection:
            connection.execute("UPDATE block_places SET address = ?", (address,))
            connection.execute("UPDATE block_files SET name = ? WHERE file_id = (SELECT file_id FROM block_files JOIN blocks "
                               "ON storage LIKE 'file:' || file_id || ':%' LIMIT 1)", (name,))
            connection.commit()
        done = run(sojourn, "sql", "--csv", SUMS.format(1), copy)
        check(f"{address}/{name} is not a file of blocks" in done.stderr or f"{address}/{name}: No such file" in done.stderr,
              f"a file that is none of blocks: {done.stderr}")
    for storage in ("file:", "file:1:0:0:00000000", "file:1:0:99999999:00000000", "file:1:0:10:zz", "file:99:0:10:00000000",
                    "file:-1:0:10:00000000", "s3://x", "file:1:0:10:00000000:", "file:18446744073709551616:0:1:0"):
        copy = sojourn.path("hostile.db")
        shutil.copy(database, copy)
        with contextlib.closing(sqlite3.connect(copy)) as connection:
            connection.execute("UPDATE blocks SET storage = ?, data = NULL WHERE block_id = 1", (storage,))
            connection.commit()
        calls(sojourn, copy, says="cannot be read")


def test(sojourn, arguments):
    seed = int(arguments[0]) if arguments else random.randrange(1 << 30)
    print(f"seed {seed}, {KILLS} kills", flush=True)
    database, folder = sojourn.path("lab.db"), sojourn.path("blocks")
    os.mkdir(folder)
    sojourn.record(["lua5.4", "-e", LUA], database)
    sojourn.record(["lua5.4", "-e", "for i = 1, 1000 do tostring(i) end"], database)
    before = answers(sojourn, database)
    other = calls(sojourn, database, 2)
    size = os.path.getsize(database)
    killed(sojourn, database, folder, before, random.Random(seed))
    ask(database, "PRAGMA wal_checkpoint(TRUNCATE)")
    check(os.path.getsize(database) < size, f"the database takes {os.path.getsize(database)} bytes, {size} before")
    print(f"{size} bytes, {os.path.getsize(database)} with the blocks of one session in files")
    run(sojourn, "verify", database, says="sound")
    run(sojourn, "verify", "--rebuild", "all", database)
    check(answers(sojourn, database) == before, "other answers after a rebuild from files")
    check_sums(sojourn, database)
    damaged(sojourn, database, folder, before)
    refused(sojourn, database, folder)
    act = ["session", "--database", database]
    one = sojourn.path("one.db")
    run(sojourn, *act, "export", "1", one)
    check(answers(sojourn, one) == before and ask(one, "SELECT count(*) FROM block_files") == [(0,)], "the export differs")
    run(sojourn, *act, "--move-to", folder, "retain", "all=1k", says="session 2")
    check(inline(database, 2) == 0 and calls(sojourn, database, 2) == other, "not moved by a rule")
    check_tidy(database, folder)
    os.rename(folder, folder + ".away")
    run(sojourn, *act, "remove", "1")
    check(len(ask(database, "SELECT 1 FROM block_files WHERE NOT is_needed")) > 0, "a file that is away is forgotten")
    os.rename(folder + ".away", folder)
    run(sojourn, *act, "return", "2", says="are in the database again")
    check(files(folder) == [] and ask(database, "SELECT 1 FROM block_files") == [], f"left: {files(folder)}")
    check(calls(sojourn, database, 2) == other, "other calls after they came back")
    run(sojourn, "verify", database, says="sound")
    check_sums(sojourn, database)


if __name__ == "__main__":
    main(test, checks_sums=False)  # the test damages copies
