#!/usr/bin/env python3
"""Programs that clang compiled for libobjc2 (-fobjc-runtime=gnustep-2.0), stripped. Every message is recorded once
under its method's name, with the receiver's class if that is wanted.

objc_clang.py BUILD_FOLDER
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main

BY_OWNER = {
    "+[ClangShape itself]": 3,
    "+[ClangShape countOf:]": 7,
    "+[ClangShape(Drawing) paletteOf:]": 7,
    "-[ClangShape area:]": 35,
    "-[ClangShape big:]": 6,
    "-[ClangShape setSides:]": 2,
    "-[ClangShape sides]": 4,
    "-[ClangShape(Drawing) draw:]": 3,
    "-[ClangSquare area:]": 13,
}
# Objects of ClangMade, a class created at run time, send area 8 times.
BY_RECEIVER = {
    **BY_OWNER,
    "+[ClangShape itself]": 1,
    "+[ClangSquare:ClangShape itself]": 2,
    "-[ClangShape area:]": 22,
    "-[ClangSquare:ClangShape area:]": 5,
    "-[ClangMade:ClangShape area:]": 8,
    "-[ClangShape setSides:]": 1,
    "-[ClangSquare:ClangShape setSides:]": 1,
    "-[ClangSquare area:]": 5,
    "-[ClangMade:ClangSquare area:]": 8,
}
WAYS = {
    "methods": (["--objc", "methods"], BY_OWNER),
    "receivers": (["--objc", "methods", "--receivers"], BY_RECEIVER),
    "dispatch": (["--objc", "dispatch"], BY_RECEIVER),
}


def messages(sojourn, database):
    rows = sojourn.sql(database, "SELECT name, sum(calls) AS n FROM function_stats JOIN functions "
                       "USING (function_id) WHERE name GLOB '[-+][[]*' GROUP BY name")
    return {row["name"]: row["n"] for row in rows}


def strip_made_class(expected):
    """Removes the class ClangMade from the expected names, and adds up the counts. If the program ended before the
    recorder asked for its classes, the recorder does not know that name."""
    told = {}
    for name, count in expected.items():
        name = name.replace("ClangMade:", "")
        told[name] = told.get(name, 0) + count
    return told


def one_way(sojourn, program, way):
    options, expected = WAYS[way]
    database = sojourn.path(f"{way}.db")
    done, _ = sojourn.record([program], database, ["--libs", "--block-ms", "10000", *options])
    check(done.returncode == 0, f"{way}: {done}")
    check_accounts(sojourn, database)
    found = messages(sojourn, database)
    allowed = [expected, strip_made_class(expected)] if way == "receivers" else [expected]
    check(found in allowed, f"{way}: {found}, not {expected}")
    print(f"{way}: {sum(found.values())} messages")


def by_ancestor(sojourn, program):
    """Selects a class by an ancestor that is in another module."""
    database = sojourn.path("ancestor.db")
    done, _ = sojourn.record([program], database, ["--libs", "--block-ms", "10000",
                                                  "--subclasses-of", "ClangShape"])
    check(done.returncode == 0, f"by ancestor: {done}")
    found = messages(sojourn, database)
    check(found == BY_OWNER, f"by ancestor: {found}")


def not_watched(sojourn, program):
    """Freed objects of this runtime are not kept, and the summary says why."""
    database = sojourn.path("zombies.db")
    done, _ = sojourn.record([program], database, ["--profile", "--zombies", "objc"])
    check(done.returncode == 0, f"zombies: {done}")
    found = sojourn.sql(database, "SELECT not_watched FROM zombie_accounts")
    check([row["not_watched"] for row in found] == ["the Objective-C runtime is not GCC's, or has another layout"],
          f"zombies: {found}")


def test(sojourn, arguments):
    build = os.path.dirname(os.path.dirname(sojourn.program))
    program = os.path.join(build, "tests/samples/objc/clang/clang_messages")
    for way in WAYS:
        one_way(sojourn, program, way)
    by_ancestor(sojourn, program)
    not_watched(sojourn, program)


if __name__ == "__main__":
    main(test)
