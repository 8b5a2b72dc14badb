#!/usr/bin/env python3
"""plain.py finds each kind of unclear sentence, and accepts the plain form of each."""
import sys

sys.dont_write_bytecode = True
import plain

UNCLEAR = {
    "Of functions that are left out.": "begins without its subject",
    "Those of an exit that has ended no call": "begins without its subject",
    "of the whole thread; 0: unknown": "begins without its subject",
    "What is left there of earlier calls.": "begins without its subject",
    "Makes room for the rest, likewise.": "uses 'likewise'",
    "The thread has no rooms left.": "uses 'rooms'",
    "The block is no gap.": "uses 'is no'",
    "The reader goes on with the next block.": "uses 'goes on'",
    "Somebody else wrote it, nobody knows why.": "uses 'nobody'",
}
CLEAR = [
    "Returns the number of functions that the policy leaves out.",
    "There is no gap.",
    "The lock is no longer held.",
    "What does a slow call cost?",
    "The option `told` and the text \"goes on\" are quoted.",
]
C = '''/* The first comment
 * has two lines. */
int a; // one
// two
int b = '"'; /* three */
const char *c = "/* none */";
'''


MANUAL = """.Sh DESCRIPTION
Prints the functions
.Ar file
Of these, one line.
.Bd -literal
Of an example.
.Ed
Of the rest.
"""


def test_manual_lines():
    assert plain.split_manual(MANUAL)[0] == [(2, "Prints the functions"), (8, "Of the rest.")]


STATUS = "sj_status sj_thing_open(int a);\n"


def test_nameless_errors():
    for head in ("", "/* Opens it. */\n", "/* Fails if closed. */\n\n", "/* Sets `error`. */\n"):
        assert plain.nameless_errors("#pragma once\n\n" + head + STATUS) == ["sj_thing_open"], head
    for head in ("/* Returns SJ_EIO. */\n", "/* Returns an error of the database. */\nvoid sj_thing_close(void);\n"):
        assert not plain.nameless_errors("#pragma once\n\n" + head + STATUS), head
    assert not plain.nameless_errors("/* Things. All functions return SJ_EIO. */\n\n" + STATUS)
    assert not plain.nameless_errors("typedef sj_status sj_run(void);\nstatic inline void sj_f(sj_status s);\n")


def test_wording():
    for text, problem in UNCLEAR.items():
        assert problem in list(plain.wording(text)), (text, list(plain.wording(text)))
    for text in CLEAR:
        assert not list(plain.wording(text)), (text, list(plain.wording(text)))


def test_comments_of_c():
    comments, code = plain.split_c(C)
    assert [(line, " ".join(text.split())) for line, text in comments] == \
        [(1, "The first comment has two lines."), (3, "one two"), (5, "three")], comments
    assert "none" in code and "first" not in code and code.count("\n") == C.count("\n")


def test_docstrings():
    comments, _ = plain.split_hash('"""Says what it does."""\nx = 1  # tail\n# One.\n# Two.\n', "#")
    assert sorted(" ".join(text.split()) for _, text in comments) == ["One. Two.", "Says what it does."], comments


def test_length():
    assert plain.length(" ".join(["word"] * 25) + ". Short.") == 25
    assert plain.length(" ".join(["word"] * 26)) == 26
    assert plain.length("The bytes:\n   u8 a | u8 b | u8 c | u8 d\nEnd.") == 2


def test_stale_names():
    assert list(plain.stale("see nowhere_at_all.h")) and list(plain.stale("sj_" + "never_was is called"))
    assert not list(plain.stale("see lint.py and sj_cursor_init")), list(plain.stale("see lint.py and sj_cursor_init"))


def test_gone_names():
    header = "proto/base/cursor.h"
    assert not list(plain.gone_names(header))
    real = plain.split
    plain.split = lambda name: ([(7, "Sets `remaining` and `was_never_here` of sj_cursor.")], real(name)[1])
    try:
        found = list(plain.gone_names(header))
    finally:
        plain.split = real
    assert (7, "names `was_never_here`, which its component does not have") in found, found


def test_any_file():
    for name in ("migrations/NNNN_what.sql", "FILE.h", "versionN.sql", "cmd_x.c"):
        assert not list(plain.stale("see " + name)), name
    assert list(plain.stale("see nowhere.sql"))


def test_history_is_not_read():
    assert plain.listed(["tests/bench"]) and not any("history" in name for name in plain.listed(["tests/bench"]))


def test_subjects():
    good = ["assembler: drop unmatched values before the fast path", "docs, tests: write one home"]
    assert not plain.subject_problems(good), plain.subject_problems(good)
    for bad in ("Words: reported", "Format", "x: " + "a" * 80, "store:keep"):
        assert plain.subject_problems([bad]), bad


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
