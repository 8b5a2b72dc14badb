#!/usr/bin/env python3
"""Finds planted mistakes with heap memory: their kind, their block, and the program's own functions on all stacks.
The programs are of gcc and clang at -O0 and -O2, stripped or not. Programs without mistakes behave the same.

heap_mistakes.py BUILD_FOLDER SAMPLES; SJ_LONG=1: at every level of optimisation, mistakes of C++ and the program with
handlers and forks of its own by each compiler.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import IS_LONG, check, json_rows, main

USE, WRITE, DROP, MAKE = "read_block", "write_block", "drop_block", "make_block"
# mistake: (kind, the program's functions that used, freed and allocated the block, bytes of the block, offset)
HEAP = {
    1: ("use_after_free", USE, DROP, MAKE, 40, 8),
    2: ("use_after_free", WRITE, DROP, MAKE, 100, 99),
    3: ("use_after_free", USE, DROP, MAKE, 10000, 9000),
    4: ("double_free", DROP, DROP, MAKE, 64, 0),
    5: ("invalid_free", DROP, "", MAKE, 64, 16),
    6: ("overflow", WRITE, "", MAKE, 4096, 4096),
    7: ("underflow", WRITE, "", MAKE, 4096, -1),
    8: ("overflow_at_free", DROP, "", MAKE, 41, 41),
    9: ("use_after_free", USE, "read_after_realloc", MAKE, 48, 1),
    10: ("double_free", "realloc_after_free", DROP, MAKE, 48, 0),
    11: ("use_after_free", USE, DROP, "read_zeroed_after_free", 120, 119),
    12: ("use_after_free", USE, DROP, "read_string_after_free", 43, 5),
    13: ("use_after_free", USE, DROP, MAKE, 80, 79),
    14: ("use_after_free", "read_after_free_in_library", DROP, MAKE, 32, None),
    15: ("use_after_free", USE, DROP, MAKE, 56, 55),
    16: ("use_after_free", "write_file", DROP, MAKE, 6000, 3),
    17: ("use_after_free", "receive", DROP, MAKE, 24, 0),
    18: ("use_after_free", USE, DROP, "read_aligned_after_free", 300, 299),
    19: ("use_after_free", "read_masked", DROP, MAKE, 34, 33),
}
# Mistakes that cause others of the table.
MORE = {("use_after_free", USE, DROP, "read_aligned_after_free", size) for size in (128, 77)}
MORE.add(("use_after_free", "read_masked", DROP, MAKE, 21))
# For C++ only kind and use are compared, because compilers inline different functions of the library.
OBJECTS = {
    0: ("use_after_free", "count_sides"),
    1: ("use_after_free", "read_filler"),
    2: ("double_free", "delete_twice"),
    3: ("use_after_free", "read_number"),
    4: ("use_after_free", "read_number"),
    5: ("use_after_free", "read_letter"),
    6: ("use_after_free", "read_filler"),
}
FOUND = ("SELECT z.kind, z.used_in, z.freed_in, z.allocated_in, r.size, r.offset FROM zombie_reports r"
         " JOIN zombies z USING (zombie_id) ORDER BY r.report_id")
ACCOUNT = ("SELECT count(*) AS processes, sum(guarded) AS guarded, sum(uses) AS uses,"
           " sum(suppressed) AS suppressed, group_concat(DISTINCT not_watched) AS not_watched"
           " FROM zombie_accounts")
REPORTS = "SELECT count(*) AS reports FROM zombie_reports"


def record(sojourn, command, name, *options):
    database = sojourn.path(f"{name}.db")
    done, _ = sojourn.record(command, database, ["--zombies", "heap", *options])
    return done, database


def check_account(sojourn, database, command):
    """Checks that each finding was reported or counted."""
    account = sojourn.sql(database, ACCOUNT)[0]
    reports = sojourn.sql(database, REPORTS)[0]["reports"]
    check(account["not_watched"] == "", f"{command}: not watched: {account['not_watched']}")
    check(account["uses"] == reports + account["suppressed"], f"{command}: {account}, {reports} reports")
    return account


def strip_place(name):
    return name.split("(")[0]


def test_heap(sojourn, folder, label):
    program = os.path.join(folder, "heap")
    numbers = [str(number) for number in sorted(HEAP)]
    done, database = record(sojourn, [program, "0", *numbers], f"heap-{label}")
    check(done.returncode == 0, f"{program} ended with {done.returncode}: {done.stderr.decode()}")
    check(done.stdout.decode().split() == ["0", *numbers], f"{program} printed {done.stdout}")
    check_account(sojourn, database, program)
    found = {tuple(row.values()) for row in sojourn.sql(database, FOUND)}
    for number, wanted in HEAP.items():
        hits = [row for row in found if row[:5] == wanted[:5] and wanted[5] in (None, row[5])]
        check(hits, f"{program}: mistake {number}, {wanted}, is not among {sorted(found)}")
    known = {wanted[:5] for wanted in HEAP.values()} | MORE
    check({row[:5] for row in found} <= known, f"{program}: more than was planted: {sorted(found)}")


def test_objects(sojourn, folder, label):
    program = os.path.join(folder, "objects")
    for number, wanted in OBJECTS.items():
        done, database = record(sojourn, [program, str(number)], f"objects-{label}-{number}")
        check(done.returncode == 0, f"{program} {number} ended with {done.returncode}")
        check_account(sojourn, database, program)
        found = {(row["kind"], strip_place(row["used_in"])) for row in sojourn.sql(database, FOUND)}
        check(found == {wanted}, f"{program} {number}: {found}, not {wanted}")


def test_stripped(sojourn, folder):
    """Without symbols, frames are offsets, and mistakes are distinguished only by them."""
    program = sojourn.path("stripped")
    subprocess.run(["strip", "-o", program, os.path.join(folder, "heap")], check=True)
    done, database = record(sojourn, [program, "1", "4"], "stripped")
    check(done.returncode == 0, f"{program} ended with {done.returncode}")
    kinds = [row["kind"] for row in sojourn.sql(database, FOUND)]
    check(kinds == ["use_after_free", "double_free"], f"{program}: {kinds}")
    frames = sojourn.sql(database, "SELECT count(*) AS own FROM zombie_frames WHERE is_own AND offset > 0")
    check(frames[0]["own"] >= 12, f"{program}: {frames} frames")


def test_same(sojourn, folder, label):
    """A program with its own faults, handlers, forks and threads behaves the same."""
    for arguments in ([], ["die"]):
        command = [os.path.join(folder, "faults"), *arguments]
        plain = subprocess.run(command, capture_output=True, check=False)
        done, database = record(sojourn, command, f"faults-{label}-{len(arguments)}")
        code = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode
        check(done.returncode == code, f"{command} ended with {done.returncode}, not {code}")
        check(done.stdout == plain.stdout, f"{command} printed {done.stdout}, not {plain.stdout}")
        account = check_account(sojourn, database, command)
        check(account["uses"] == 0, f"{command}: {account}")
        # 20,000 in each thread and each child, so slots are reused
        check(account["guarded"] > 100000 and account["processes"] == 12, f"{command}: {account}")


def test_programs(sojourn):
    """Common programs behave the same."""
    for number, command in enumerate((
            ["python3", "-c", "import json,re; print(len(json.dumps([re.sub('a','b',str(i)) for i in range(500)])))"],
            ["sqlite3", ":memory:", "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM t WHERE x<9999) "
             "SELECT sum(x), group_concat(x % 7) FROM t"],
            ["perl", "-e", "my %h; $h{$_} = $_ x 3 for 1..20000; print scalar(keys %h), \"\\n\""],
            ["sh", "-c", "ls / | sort | grep e"])):
        plain = subprocess.run(command, capture_output=True, check=False)
        done, database = record(sojourn, command, f"program-{number}", "--profile")
        check((done.returncode, done.stdout) == (plain.returncode, plain.stdout), f"{command}: {done}")
        account = check_account(sojourn, database, command)
        check(account["uses"] == 0 and account["guarded"] > 0, f"{command}: {account}")


def test_stop(sojourn, folder):
    """The policy may end the program by the signal of its fault. The report is not lost then."""
    policy = sojourn.path("stop.json")
    with open(policy, "w", encoding="utf-8") as file:
        file.write('{"policy": 1, "zombies": {"heap": {"on_use": "stop"}}}')
    database = sojourn.path("stop.db")
    done, _ = sojourn.record([os.path.join(folder, "heap"), "1", "2"], database, ["--policy", policy])
    check(done.returncode == 128 + 11 and done.stdout == b"", f"{done}")
    kinds = [row["kind"] for row in sojourn.sql(database, FOUND)]
    check(kinds == ["use_after_free"], f"{kinds}")


def test_sampled(sojourn, folder):
    """With "one in 100", one in 100 blocks of each size is guarded, from the first allocation on."""
    policy = sojourn.path("sampled.json")
    with open(policy, "w", encoding="utf-8") as file:
        file.write('{"policy": 1, "mode": "profile", "zombies": {"heap": {"one_in": 100, "blocks": 64}}}')
    database = sojourn.path("sampled.db")
    done, _ = sojourn.record([os.path.join(folder, "sampled"), "400000"], database, ["--policy", policy])
    check(done.returncode == 0, f"{done}")
    guarded = check_account(sojourn, database, "sampled")["guarded"]
    # 4,000 are expected, with a standard deviation of 63. Six deviations are exceeded once in 10^9 runs.
    check(3620 <= guarded <= 4380, f"{guarded} of 400,000 were guarded")


def test_wrapped(sojourn, samples):
    """A finding names the caller of xmalloc and xfree, and is one for all depths of a recursion. Functions with the
    same code have one name, in stacks and among calls."""
    for name, done in (("wrapped", [("audio_done", 1), ("image_done", 1)]), ("wrapped_folded", [("audio_done", 2)])):
        ended, database = record(sojourn, [os.path.join(samples, name)], name)
        check(ended.returncode == 0, f"{name}: {ended}")
        found = sorted(tuple(row.values()) for row in sojourn.sql(
            database, "SELECT kind, used_in, freed_in, allocated_in, reports FROM zombies"))
        wanted = [("double_free", "close_socket", "close_socket", "close_socket", 1), ("double_free", "descend", "descend", "main", 2),
                  ("double_free", "parse_header", "parse_header", "parse_header", 1),
                  *(("use_after_free", "ref_put", "ref_put", function, reports) for function, reports in done)]
        check(found == wanted, f"{name}: {found}")
        called = {row["name"] for row in sojourn.sql(database, "SELECT f.name FROM function_stats JOIN functions f USING (function_id)"
                                                     " WHERE calls > 0")}
        named = {row["function"] for row in sojourn.sql(database, "SELECT function FROM zombie_frames WHERE is_own")}
        alike = {"audio_done", "image_done"}
        check(named & alike == called & alike, f"{name}: {named} in stacks, {called} among the calls")


def test_life(sojourn, folder):
    """A finding is one row for all sessions. A report after it was resolved reopens it."""
    database = sojourn.path("life.db")
    program = os.path.join(folder, "heap")
    for _ in range(2):
        check(sojourn.record([program, "1"], database, ["--zombies", "heap"])[0].returncode == 0, program)
    row = "SELECT zombie_id, reports, state FROM zombies"
    check([tuple(r.values()) for r in sojourn.sql(database, row)] == [(1, 2, "open")], f"{sojourn.sql(database, row)}")
    check(sojourn.run(["check", "--zombies", database]).returncode == 4, "an open finding is no failure")
    check(sojourn.run(["zombies", "resolve", "1", "--database", database]).returncode == 0, "resolve")
    check(sojourn.run(["check", "--zombies", database]).returncode == 0, "a resolved finding is a failure")
    shown = sojourn.run(["zombies", "show", "1", "--database", database], capture_output=True)
    check(shown.returncode == 0 and b"read at byte 8 of a block of 40" in shown.stdout, f"{shown}")
    for options in ([], ["--json"]):
        missing = sojourn.run(["zombies", *options, "show", "9", "--database", database], capture_output=True)
        check(missing.returncode != 0 and not missing.stdout, f"finding 9: {missing}")
    finding, = json_rows(sojourn.run(["zombies", "--json", "show", "1", "--database", database], capture_output=True, text=True).stdout)
    check((finding["kind"], finding["access"], finding["offset"], finding["size"]) == ("use_after_free", "read", 8, 40), f"{finding}")
    stacks = [[frame["function"] for frame in finding[stack]][0] for stack in ("use", "free", "allocation")]
    check(stacks == [USE, DROP, MAKE] and finding["calls"], f"{finding}")
    sojourn.record([program, "1"], database, ["--zombies", "heap"])
    check([tuple(r.values()) for r in sojourn.sql(database, row)] == [(1, 3, "reopened")], "not reopened")


def calls_around(sojourn, database, finding):
    done = sojourn.run(["sql", "--query", "zombie_calls", "--param", f"zombie={finding}", "--json", database],
                       capture_output=True, text=True)
    check(done.returncode == 0, f"{done}")
    return [(row["moment"], row["relation"], row["function"]) for row in json_rows(done.stdout)]


def test_calls(sojourn, folder):
    """If calls are recorded, a finding names the calls that were open when the block was allocated, freed and used,
    and earlier calls of the thread. If the block was freed before a fork, the finding names the parent's calls."""
    program = os.path.join(folder, "heap")
    done, database = record(sojourn, [program, "15", "1"], "calls")
    check(done.returncode == 0, f"{done}")
    for finding in sojourn.sql(database, "SELECT zombie_id, used_in, freed_in, allocated_in FROM zombies"):
        around = calls_around(sojourn, database, finding["zombie_id"])
        for moment, function in (("allocation", finding["allocated_in"]), ("free", finding["freed_in"]),
                                 ("use", finding["used_in"])):
            check((moment, "open", function) in around, f"{moment} in {function}: {around}")
        before = [function for moment, relation, function in around if (moment, relation) == ("free", "before")]
        check(0 < len(before) <= 5 and finding["allocated_in"] in before, f"{before}")
        shown = sojourn.run(["zombies", "show", str(finding["zombie_id"]), "--database", database],
                            capture_output=True, text=True)
        check("calls at the free, " in shown.stdout and "did not end" not in shown.stdout, f"{shown.stdout}")


def test(sojourn, arguments):
    samples = arguments[0]
    for compiler in ("gcc", "clang"):
        for level in range(4) if IS_LONG else (0, 2):
            folder = os.path.join(samples, f"{compiler}-O{level}")
            test_heap(sojourn, folder, f"{compiler}{level}")
            if IS_LONG or (compiler, level) in (("gcc", 0), ("clang", 2)):
                test_objects(sojourn, folder, f"{compiler}{level}")
    folder = os.path.join(samples, "gcc-O2")
    test_stripped(sojourn, folder)
    test_same(sojourn, folder, "gcc")
    if IS_LONG:
        test_same(sojourn, os.path.join(samples, "clang-O0"), "clang")
    test_programs(sojourn)
    test_stop(sojourn, folder)
    test_sampled(sojourn, folder)
    test_wrapped(sojourn, samples)
    test_life(sojourn, folder)
    test_calls(sojourn, os.path.join(samples, "gcc-O0"))


if __name__ == "__main__":
    main(test)
