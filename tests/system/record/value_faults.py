#!/usr/bin/env python3
"""Values that are hard to read: pointers to pages that another thread unmaps, beyond the end of a file, to a
device's memory, and to guarded or impossible addresses. Other threads change texts, and some texts have no end.
Signal handlers run on small stacks, and coroutines on their own. The program behaves as without Sojourn. Each
recorded text was there at some moment, or none is recorded.

value_faults.py BUILD_FOLDER
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main, sample_text

SOURCE = sample_text("values/faults.c")


def test(sojourn, arguments):
    program, file = sojourn.path("faults"), sojourn.path("short.txt")
    with open(file, "w", encoding="utf-8") as text:
        text.write("of a file")
    subprocess.run(["gcc", "-O1", "-w", "-D_GNU_SOURCE", "-x", "c", "-", "-pthread", "-o", program], input=SOURCE, text=True,
                   check=True)
    database = sojourn.path("faults.db")
    rules = ["vanishing(text:str[4096])", "changing(text:str[256])", "nowhere(text:str[4096], number:int)",
             "in_handler(text:str[4096])", "on_coroutine(text:str[4096])"]
    done, _ = sojourn.record([program, file], database, [part for rule in rules for part in ("--value", rule)], text=True)
    check(done.returncode == 0 and done.stdout == "survived\n", f"{done}")
    check_accounts(sojourn, database)
    rows = {}
    for row in sojourn.sql(database, """
            SELECT name, call_id, position, value, coalesce(note, '') AS note FROM arguments
            JOIN calls USING (session_id, call_id) JOIN functions USING (function_id) ORDER BY call_id, position"""):
        rows.setdefault(row["name"], []).append((row["value"], row["note"]))
    texts = rows["vanishing"]
    # The page is filled with these letters from its beginning. It may be new, filled in part, or unmapped.
    check(len(texts) == 20000, f"{len(texts)} values")
    wrong = [text for text in texts if text[1] not in ("", "unreadable") or (text[1] == "" and text[0] != "p" * len(text[0]))]
    check(not wrong, f"of a page that vanishes: {wrong[:3]}")
    check({note for _, note in texts} == {"", "unreadable"}, "the page was always there, or never")
    check(all(note == "cut" and len(value) == 256 and value.isalpha() for value, note in rows["changing"]), "a text that changes")
    found = list(zip(rows["nowhere"][::2], rows["nowhere"][1::2]))
    gone = [number for (_, note), (number, _) in found if note == "unreadable"]
    check([text for text, (number, _) in found if number in (1, 3)] == [("of a file", ""), ("", "")], f"{found}")
    with open("/proc/self/maps", encoding="utf-8") as maps:
        has_device = "[vvar]" in maps.read()
    check(gone == [2, 4, 5, 6, 7, 8] + [9] * has_device, f"unreadable: {gone} of {found}")
    for name, letter in (("in_handler", "h"), ("on_coroutine", "c")):
        check(len(rows[name]) == 3, f"{name}: {rows[name]}")
        # The recorder does not know how much of a stack is free if the stack is not the thread's own.
        check(all(value == letter * len(value) and (len(value), note) in ((64, "cut"), (1000, "")) for value, note in rows[name]),
              f"{name}: {rows[name]}")
    calls = {row["name"]: row["n"] for row in sojourn.sql(
        database, "SELECT name, count(*) AS n FROM calls JOIN functions USING (function_id) WHERE ending = 'returned' GROUP BY 1")}
    check(calls["on_coroutine"] == 3 and calls["in_handler"] == 3, f"{calls}")
    print("what cannot be read is not, and nothing else happens")


if __name__ == "__main__":
    main(test)
