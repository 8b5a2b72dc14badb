#!/usr/bin/env python3
"""Values of C++ and Rust by debug data: texts, methods, the targets of parameters and results, and fields of
classes that functions return.

value_types_cxx.py BUILD_FOLDER
"""
import itertools
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, main, sample_text
from value_testing import record
CXX = sample_text("values/types.cpp")


def test_cxx(sojourn):
    source, program = sojourn.path("types.cpp"), sojourn.path("types_cxx")
    with open(source, "w", encoding="utf-8") as file:
        file.write(CXX)
    for compiler, level in itertools.product(("g++", "aarch64-linux-gnu-g++"), ("-O0", "-O2")):
        subprocess.run([compiler, "-std=c++17", "-g", level, source, "-o", program], check=True)
        _, found, database = record(sojourn, program, ["take*", "place*", "made*", "Counter::add*"])
        values = {(row[0].split("(")[0] + (" again" if row[1] == 2 else ""), row[2]): row[3] for row in found}
        for name, value_name, value in (
                ("take", "text", "by reference, and longer than what it holds itself"), ("take", "copy", "copied"),
                ("take", "view", "een"), ("take", "last", "-4"), ("place", "number", "41"), ("place", "last", "77"),
                ("place", "return.a", "41"), ("place", "return.b", "77"), ("place", "return.c", "11"),
                ("made", "number", "20"), ("made", "result", "x" * 20), ("made again", "result", "x" * 9),
                ("Counter::add", "by", "-3"), ("Counter::add", "share", "1.5"), ("Counter::add", "result", "3")):
            words = name.split("::")[-1].split()
            found_value = next((v for (n, vn), v in values.items() if vn == value_name and all(word in n for word in words)), None)
            # qemu-user lacks the system call that reads safely, so texts of the heap are unknown.
            is_unreadable = compiler != "g++" and len(value) > 15 and found_value == "None"
            check(found_value == value or is_unreadable, f"{compiler} {level} {name} {value_name}: {found_value}, all: {values}")
        states = {row["name"]: row["state"] for row in sojourn.sql(database, "SELECT name, state FROM value_types")}
        check(states["owner"] == "unsupported", f"{states}")


BEHIND = sample_text("values/behind.cpp")


def test_behind(sojourn):
    """Records the targets of parameters: fields of structures, with those of their bases, and lengths of vectors.
    Where the memory ends, or is not mapped, the values end, too, and nothing else happens."""
    source, program = sojourn.path("behind.cpp"), sojourn.path("behind")
    with open(source, "w", encoding="utf-8") as file:
        file.write(BEHIND)
    for compiler in ("g++", "clang++"):
        for level in ("-O0", "-O2"):
            subprocess.run([compiler, "-std=c++17", "-w", "-g", level, source, "-o", program], check=True)
            _, found, _ = record(sojourn, program, ["by_pointer", "by_reference", "by_address", "at_end"])
            values = {}
            for name, number, value_name, value in found:
                values.setdefault((name, number), {})[value_name] = value
            for number, a in ((1, "41"), (2, "42")):
                of = values["by_pointer", number]
                expected = {"from->low": "-7", "from->of": "GREEN", "from->both.a": a, "from->both.b": "0.5", "behind": str(number)}
                check({name: of.get(name) for name in expected} == expected, f"{compiler} {level}: {of}")
                check("from->text" in of and "from->last" not in of, f"{compiler} {level}: {of}")
            none = values["by_pointer", 3]
            check(none["behind"] == "3" and none["result"] == "-1" and not [name for name in none if ">" in name],
                  f"{compiler} {level}: null: {none}")
            of = values["by_reference", 1]
            check((of["from.a"], of["from.b"], of["numbers.size()"], of["result"]) == ("6", "-1.25", "3", "9"), f"{compiler} {level}: {of}")
            of = values["by_address", 1]
            check((of["copies.size()"], of["result"]) == ("2", "2"), f"{compiler} {level}: {of}")
            first, second = values["at_end", 1], values["at_end", 2]
            check(first["from->a"] == "9" and "from->b" not in first, f"{compiler} {level}: the end of memory: {first}")
            check(not [name for name in second if ">" in name] and second["result"] == "0", f"{compiler} {level}: {second}")


RETURNED = sample_text("values/returned.cpp")


def test_returned(sojourn):
    """Records the targets of results, and fields of classes that are returned in registers or by the address of an
    object."""
    source, program = sojourn.path("returned.cpp"), sojourn.path("returned")
    with open(source, "w", encoding="utf-8") as file:
        file.write(RETURNED)
    for compiler in ("g++", "clang++", "aarch64-linux-gnu-g++", "clang++ --target=aarch64-linux-gnu"):
        for level in ("-O0", "-O2"):
            subprocess.run([*compiler.split(), "-std=c++17", "-w", "-g", level, source, "-o", program], check=True)
            _, found, _ = record(sojourn, program, ["found", "same", "kept", "mixed", "many", "wrong"])
            values = {}
            for name, number, value_name, value in found:
                values.setdefault((name, number), {})[value_name] = value
            for call, expected in ((("found", 1), {"return->key": "4", "return->share": "0.25", "key": "4"}),
                                   (("found", 2), {"result": "0x0", "key": "5"}), (("same", 1), {"return.key": "4"}),
                                   (("kept", 1), {"return.count": "3"}), (("wrong", 1), {"result": "0x8"}),
                                   (("mixed", 1), {"return.level": "-3", "return.x": "0.5", "return.y": "-2"}),
                                   (("many", 1), {"return.size()": "6"})):
                of = values[call]
                check({name: of.get(name) for name in expected} == expected, f"{compiler} {level} {call}: {of}")
            for call in (("found", 2), ("wrong", 1)):
                check("return->key" not in values[call], f"{compiler} {level}: {values[call]}")


RUST = sample_text("values/types.rs")


def test_rust(sojourn):
    source, program = sojourn.path("types.rs"), sojourn.path("types_rust")
    with open(source, "w", encoding="utf-8") as file:
        file.write(RUST)
    for level in ("0", "2"):
        subprocess.run(["rustc", "-g", "-C", f"opt-level={level}", source, "-o", program], check=True)
        _, found, _ = record(sojourn, program, ["greet", "sum"])
        values = {row[2]: row[3] for row in found if row[0] == "sum"}
        check((values["numbers.length"], values["factor"], values["result"]) == ("2", "2", "10"), f"-O{level}: {values}")
        values = {row[2]: row[3] for row in found if row[0] == "greet"}
        check(values == {"name": "Ferris", "count": "9", "share": "0.25", "result": "0"}, f"-O{level}: {values}")


def test(sojourn, arguments):
    test_cxx(sojourn)
    test_behind(sojourn)
    test_returned(sojourn)
    test_rust(sojourn)


if __name__ == "__main__":
    main(test)
