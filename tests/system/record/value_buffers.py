#!/usr/bin/env python3
"""Buffers that functions fill: their content at the return, as long as the result says, equals what the program
prints. The functions have 32 and 64 bits of result, fail, call themselves, and run in threads and handlers. Calls
into the C library are recorded, too. If the result exceeds the buffer, nothing behind the buffer is recorded.

value_buffers.py BUILD_FOLDER
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main, sample_text

SOURCE = sample_text("values/buffers.c")
FILL = "buf_fill(key:int, buffer:bytes[result,1024], size:ulong) -> long"
SHORT = "buf_short(buffer:bytes[result], key:int) -> int"


def recorded(sojourn, database, name, key, buffer):
    rows = sojourn.sql(database, f"""SELECT c.call_id, max(iif(a.position = {key}, a.value, NULL)) AS number,
        max(iif(a.position = {buffer}, a.value, NULL)) AS text, max(iif(a.position = 0, a.value, NULL)) AS result
        FROM calls AS c JOIN functions AS f USING (function_id) JOIN arguments AS a USING (session_id, call_id)
        WHERE f.name = '{name}' GROUP BY c.call_id""")
    return sorted((row["number"], row["result"], row["text"]) for row in rows)


def test_program(sojourn, compiler, level):
    program, database = sojourn.path("buffers"), sojourn.path(f"{compiler}{level}.db")
    subprocess.run([compiler, f"-O{level}", "-w", "-D_GNU_SOURCE", "-x", "c", "-", "-pthread", "-o", program], input=SOURCE,
                   text=True, check=True)
    done, _ = sojourn.record([program], database, ["--library-calls", "--prototypes", "libc", "--value", FILL, "--value", SHORT, "--value", "!read", "--value", "!recv"],
                             text=True)
    check(done.returncode == 0, f"it ended with {done.returncode}: {done.stderr}")
    check_accounts(sojourn, database)
    said = {}
    for line in done.stdout.splitlines():
        name, key, result, *text = line.split(" ", 3)
        said.setdefault(name, []).append((int(key), int(result), text[0] if text else ""))
    fills = recorded(sojourn, database, "buf_fill", 1, 2)
    below = [row for row in fills if row[0] > 900000]
    check([row for row in fills if row not in below] == sorted(said["buf_fill"]), f"{compiler} -O{level}: {fills}, {said['buf_fill']}")
    check(below and all(len(row[2]) == max(row[1], 0) for row in below), f"calls below: {below}")
    shorts = recorded(sojourn, database, "buf_short", 2, 1)
    check(shorts == sorted(said["buf_short"]), f"{compiler} -O{level}: {shorts}, {said['buf_short']}")
    names = [row["name"] for row in sojourn.sql(database, "SELECT DISTINCT name FROM functions WHERE name GLOB '*!read'")]
    check(len(names) == 1, f"calls of read: {names}")
    reads = recorded(sojourn, database, names[0], 1, 2)
    check(reads == sorted(said["read"]), f"{reads}, {said['read']}")
    behind = sojourn.sql(database, """SELECT a.value FROM arguments AS a JOIN calls AS c USING (session_id, call_id)
        JOIN functions AS f USING (function_id) WHERE f.name GLOB '*!recv' AND a.position = 2""")
    check(len(behind) == 1 and "!" not in str(behind[0]["value"]), f"behind the buffer of a packet that was cut: {behind}")
    return len(fills) + len(reads)


def test_refused(sojourn):
    for signature, why in (("f(a:bytes[result])", "is a length where the result is"),
                           ("f(a:bytes[result]) -> double", "is a length where the result is"),
                           ("f(a:bytes[result], b:bytes[result]) -> int", "one buffer of a function")):
        done = sojourn.run(["record", "--value", signature, "--", "/bin/true"], capture_output=True, text=True)
        check(done.returncode != 0 and why in done.stderr, f"{signature}: {done}")


def test(sojourn, arguments):
    checked = sum(test_program(sojourn, compiler, level) for compiler in ("gcc", "clang") for level in (0, 2))
    test_refused(sojourn)
    print(f"{checked} buffers, each what the program had there")


if __name__ == "__main__":
    main(test)
