#!/usr/bin/env python3
"""Coverage: compares the functions that were entered, out of all functions, with lists made by hand from the
sources. The programs are Mono, native and Java programs, over several sessions and between marks.

coverage.py BUILD_FOLDER SAMPLES_FOLDER BUILT_SAMPLES_FOLDER
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, json_rows, main

MAIN = {"Covered:Main(string[])"}
CARROT = {"Covered:Root(Plant.Roots.Root)", "Plant.Roots.Carrot:.ctor()", "Plant.Roots.Carrot:Depth()",
          "Plant.Roots.Carrot:Width()", "Plant.Roots.Root:.ctor()"}
LEAF = {"Plant.Roots.Carrot/Leaf:.ctor()", "Plant.Roots.Carrot/Leaf:Count()"}
BOX = {"Plant.Box`1:.ctor(T)", "Plant.Box`1:get_Held()", "Plant.Box`1:set_Held(T)", "Plant.Box`1:Grow(int)"}
NEVER = {"Covered:.ctor()", "Covered:Unused(int,string)", "Plant.Box`1:Never()", "Plant.Roots.Root:Width()"}
# functions of each class, and how many of them the words "carrot" and "box" enter
CLASSES = {"Covered": (4, 2), "Plant.Roots.Root": (2, 1), "Plant.Roots.Carrot": (3, 3),
           "Plant.Roots.Carrot/Leaf": (2, 0), "Plant.Box`1": (5, 4)}
NAMESPACES = {"": (4, 2), "Plant.Roots": (7, 4), "Plant": (5, 4)}


def report(sojourn, database, *options):
    done = sojourn.run(["report", "--json", *options, database], capture_output=True, text=True)
    check(done.returncode == 0, f"report {options}: {done.stderr}")
    return json_rows(done.stdout)


def entered(rows):
    return {row["name"] for row in rows if row["entered"] == 1}


def counted(rows):
    return {row["name"]: (row["functions"], row["entered"]) for row in rows}


def mono_methods(sojourn, samples):
    program, database = sojourn.path("Covered.exe"), sojourn.path("mono.db")
    subprocess.run(["mcs", os.path.join(samples, "mono", "Covered.cs"), f"-out:{program}"], check=True,
                   timeout=PATIENCE_S)
    for words, wanted in ((["carrot"], MAIN | CARROT), (["carrot", "box"], MAIN | CARROT | BOX),
                          (["leaf"], MAIN | LEAF)):
        sojourn.record(["mono", program, *words], database)
        rows = report(sojourn, database, "--coverage=function")
        there = {row["name"] for row in rows}
        check(there == MAIN | CARROT | LEAF | BOX | NEVER, f"there are {there}")
        check(all(row["functions"] == 1 and row["unwatched"] == 0 for row in rows), f"{rows}")
        check(entered(rows) == wanted, f"{words} entered {entered(rows)}")
    classes = counted(report(sojourn, database, "--coverage=class", "--session", "2"))
    check(classes == CLASSES, f"classes {classes}")
    namespaces = counted(report(sojourn, database, "--coverage=namespace", "--session", "2"))
    check(namespaces == NAMESPACES, f"namespaces {namespaces}")
    every = report(sojourn, database, "--coverage", "--over", "all")
    check(counted(every) == {program: (16, 12)} and abs(every[0]["share"] - 0.75) < 1e-9, f"all: {every}")
    first = report(sojourn, database, "--coverage", "--over", "1,3")
    check(counted(first) == {program: (16, 8)}, f"1 and 3: {first}")
    # Functions that the policy leaves out are listed, but not watched.
    sojourn.record(["mono", program, "leaf"], database, ["--function", "Plant.Roots.*"])
    only = report(sojourn, database, "--coverage=namespace")
    check({row["name"]: (row["functions"], row["unwatched"], row["entered"]) for row in only} ==
          {"": (4, 4, 0), "Plant.Roots": (7, 0, 2),
           "Plant": (5, 5, 0)}, f"filtered: {only}")
    page = sojourn.path("coverage.html")
    done = sojourn.run(["report", "--coverage=class", "--session", "2", "--page", page, database])
    with open(page, encoding="utf-8") as file:
        text = file.read()
    check(done.returncode == 0 and "<td>Plant.Box`1<td>80.0 %" in text, f"the page: {text}")
    rows = sojourn.sql(database, "SELECT entered FROM coverage('2', 'class') WHERE name = 'Covered'")
    check(rows == [{"entered": 2}], f"SQL: {rows}")


def between_marks(sojourn, built):
    database = sojourn.path("marks.db")
    sojourn.record([os.path.join(built, "api_c")], database)
    whole = report(sojourn, database, "--coverage=function")
    own = {row["name"]: row["entered"] for row in whole if row["name"].startswith("api_") or row["name"] == "main"}
    check(own == {"main": 1, "api_work": 1, "api_step": 1, "api_frame": 0, "api_frames": 0, "api_laps": 0},
          f"the whole: {own}")
    warm = entered(report(sojourn, database, "--coverage=function", "--over", "last+mark:warm up"))
    check(warm == {"api_work", "api_step"}, f"in the mark: {warm}")
    marks = report(sojourn, database, "--coverage=mark")
    check([(row["name"], row["entered"]) for row in marks] == [("warm up", 2)] and marks[0]["functions"] >= 6,
          f"marks: {marks}")


def java_and_cxx(sojourn, samples, built):
    database = sojourn.path("java.db")
    sojourn.record(["java", "-cp", os.path.join(built, "java"), "Shapes"], database)
    classes = counted(report(sojourn, database, "--coverage=class"))
    check(classes.get("Shapes$Outer$Inner") == (2, 2), f"Java's classes {classes}")
    check(all(there >= entry for there, entry in classes.values()), f"Java's classes {classes}")
    database = sojourn.path("cxx.db")
    sojourn.record([os.path.join(built, "gcc-O0", "s_throw")], database)
    classes = counted(report(sojourn, database, "--coverage=class"))
    check("" in classes and all(there >= entry for there, entry in classes.values()), f"C++: {classes}")


def refusals(sojourn):
    database = sojourn.path("mono.db")
    for options, words in ((["--coverage=colour"], "not 'colour'"), (["--page", "x"], "belong to --coverage"),
                           (["--coverage", "--over", "999"], "999"),
                           (["--coverage", "--page", sojourn.path("no/where")], "cannot write")):
        done = sojourn.run(["report", *options, database], capture_output=True, text=True)
        check(done.returncode != 0 and words in done.stderr, f"{options}: {done}")


def test(sojourn, arguments):
    samples, built = arguments
    mono_methods(sojourn, samples)
    between_marks(sojourn, built)
    java_and_cxx(sojourn, samples, built)
    refusals(sojourn)


if __name__ == "__main__":
    main(test)
