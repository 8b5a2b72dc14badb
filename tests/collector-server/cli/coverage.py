#!/usr/bin/env python3
"""`sojourn coverage` of sessions whose functions are known: two imported files with the functions that each of them
has and enters.

coverage.py BUILD_FOLDER
"""
import csv
import io
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system", "support"))
from sojourn_testing import check, json_rows, main


def import_session(sojourn, database, name, functions, entered):
    """Imports a session that has all functions, and enters some of them once, one after the other."""
    events = []
    for place, function in enumerate(entered):
        frame = functions.index(function)
        events += [{"type": kind, "frame": frame, "at": 10 * place + at} for kind, at in (("O", 0), ("C", 5))]
    document = {"$schema": "https://www.speedscope.app/file-format-schema.json",
                "shared": {"frames": [{"name": function, "file": "app"} for function in functions]},
                "profiles": [{"type": "evented", "name": "t", "unit": "nanoseconds", "startValue": 0, "endValue": 100,
                              "events": events}]}
    path = sojourn.path(name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)
    done = sojourn.run(["import", "-d", database, path], capture_output=True, text=True)
    check(done.returncode == 0, f"import: {done.stderr}")


def asked(sojourn, database, *options):
    done = sojourn.run(["coverage", "--json", *options, database], capture_output=True, text=True)
    check(done.returncode == 0, f"coverage {options}: {done.stderr}")
    return json_rows(done.stdout)


def test(sojourn, _):
    database = sojourn.path("covered.db")
    import_session(sojourn, database, "first", ["a", "b", "d"], ["a", "b", "a"])
    import_session(sojourn, database, "second", ["c", "d", "a", "e[1]", "b"], ["a", "c"])
    row, = asked(sojourn, database)
    check((row["name"], row["functions"], row["entered"], row["calls"]) == ("app", 5, 3, 5), f"{row}")
    row, = asked(sojourn, database, "--over", "1")
    check((row["functions"], row["entered"]) == (3, 2), f"{row}")
    rows = asked(sojourn, database, "--by", "function", "--over", "last")
    check({row["name"]: row["entered"] for row in rows} == {"a": 1, "b": 0, "c": 1, "d": 0, "e[1]": 0}, f"{rows}")
    for options, names in ((("--over", "2", "--beyond", "1"), ["c"]), (("--over", "1", "--beyond", "2"), ["b"]),
                           (("--over", "1", "--beyond", "all"), []), (("--never",), ["d", "e[1]"]),
                           (("--never", "--over", "1"), ["d"])):
        rows = asked(sojourn, database, *options)
        check([row["name"] for row in rows] == names, f"{options}: {rows}")
    for glob, reached in (("a", [(1, "a", 2), (2, "a", 1)]), ("[bc]", [(1, "b", 1), (2, "c", 1)]), ("d", [])):
        rows = asked(sojourn, database, "--reaching", glob)
        check([(row["session"], row["name"], int(row["calls"])) for row in rows] == reached, f"{glob}: {rows}")
    done = sojourn.run(["coverage", "--never", "--csv", database], capture_output=True, text=True)
    check(list(csv.reader(io.StringIO(done.stdout))) == [["module", "name"], ["app", "d"], ["app", "e[1]"]], done.stdout)
    for options, code, words in ((("--never", "--by", "class"), 2, "exclude each other"),
                                 (("--over", "99"), 1, "99"), (("--by", "colour"), 2, "not 'colour'")):
        done = sojourn.run(["coverage", *options, database], capture_output=True, text=True)
        check(done.returncode == code and words in done.stderr, f"{options}: {done.returncode} {done.stderr}")


if __name__ == "__main__":
    main(test)
