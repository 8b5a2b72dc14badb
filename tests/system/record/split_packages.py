#!/usr/bin/env python3
"""Packages of split debug data (.dwp) in place of the .dwo files: binutils' dwp and llvm-dwp pack gcc's and clang's
DWARF 4 and 5, with and without type units. Compressed or not, beside the program or beside its debug file, a
package gives the types of all units. A package of another build is not used, a damaged package does no harm, and
the report says so.

split_packages.py BUILD_FOLDER (SJ_LONG=1: each form compressed, too, more damaged packages, and of both compilers
each)
"""
import glob
import os
import random
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import IS_LONG, check, main, sample_text
from value_types import record

DAMAGED = 15 if IS_LONG else 1
HEAD = sample_text("values/split_head.h")
# The second unit has a base address of its own and locations that change. Both units use `place`.
FIRST = HEAD + sample_text("values/split_first.c")
SECOND = HEAD + sample_text("values/split_second.c")
# This source makes another build.
EXCHANGED = FIRST.replace("int flags, double share", "double share, int flags")
CHANGED = SECOND.replace("long number", "int number")
EXPECTED = sorted([
    ("open_file", 1, "result", "8"), ("open_file", 1, "path", "/etc/passwd"), ("open_file", 1, "flags", "7"),
    ("open_file", 1, "share", "0.5"), ("open_file", 1, "at->x", "4"), ("open_file", 1, "at->y", "0.25"),
    ("open_file", 1, "at->of", "GREEN"), ("close_file", 1, "result", "1"), ("close_file", 1, "number", "-3"),
    ("close_file", 1, "at->x", "4"), ("close_file", 1, "at->y", "0.25"), ("close_file", 1, "at->of", "GREEN")])
SECTIONS = {".debug_info.dwo": 1, ".debug_abbrev.dwo": 3, ".debug_loclists.dwo": 5, ".debug_str_offsets.dwo": 6,
            ".debug_rnglists.dwo": 8}


def read_sections(path):
    """Returns the sections of an ELF64 file."""
    with open(path, "rb") as file:
        data = file.read()
    table, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<3H", data, 58)
    headers = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
    names_at = headers[names][4]
    return {data[names_at + header[0]:data.index(0, names_at + header[0])].decode(): data[header[4]:header[4] + header[5]]
            for header in headers if header[1] != 8}


def package_five(files, package, folder):
    """Makes a package of DWARF 5, also from gcc's units, which neither tool of Debian 12 can."""
    whole, rows, strings = {name: b"" for name in SECTIONS}, [], b""
    for path in files:
        sections = read_sections(path)
        offsets = bytearray(sections[".debug_str_offsets.dwo"])
        for at in range(8, len(offsets), 4):
            struct.pack_into("<I", offsets, at, struct.unpack_from("<I", offsets, at)[0] + len(strings))
        strings += sections[".debug_str.dwo"]
        sections[".debug_str_offsets.dwo"] = bytes(offsets)
        unit, = struct.unpack_from("<Q", sections[".debug_info.dwo"], 12)
        rows.append((unit, [(len(whole[name]), len(sections.get(name, b""))) for name in SECTIONS]))
        for name in SECTIONS:
            whole[name] += sections.get(name, b"")
    slots = [(0, 0)] * 8
    for row, (unit, _) in enumerate(rows, 1):
        slot, step = unit & 7, unit >> 32 & 7 | 1
        while slots[slot] != (0, 0):
            slot = slot + step & 7
        slots[slot] = (unit, row)
    index = struct.pack("<HHIII", 5, 0, len(SECTIONS), len(rows), len(slots))
    index += b"".join(struct.pack("<Q", unit) for unit, _ in slots) + b"".join(struct.pack("<I", row) for _, row in slots)
    index += struct.pack(f"<{len(SECTIONS)}I", *SECTIONS.values())
    for part in (0, 1):
        index += b"".join(struct.pack("<I", parts[part]) for _, row in rows for parts in row)
    options = []
    for number, (name, data) in enumerate([*whole.items(), (".debug_str.dwo", strings), (".debug_cu_index", index)]):
        if data:
            path = os.path.join(folder, f"section{number}")
            with open(path, "wb") as file:
                file.write(data)
            options += ["--add-section", f"{name}={path}"]
    subprocess.run(["objcopy", *[f"--remove-section={name}" for name in read_sections(files[0]) if name.startswith(".debug")],
                    *options, files[0], package], check=True)


def build(folder, compiler, options, first=FIRST, second=SECOND):
    """Builds the program of two units. Returns it and its .dwo files."""
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    for name, text in (("first", first), ("second", second)):
        with open(os.path.join(folder, name + ".cpp"), "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run([compiler, "-w", "-std=c++17", "-O1", "-gsplit-dwarf", *options, "-c", name + ".cpp"],
                       check=True, cwd=folder)
    subprocess.run([compiler, "first.o", "second.o", "-o", "program"], check=True, cwd=folder)
    return os.path.join(folder, "program"), sorted(glob.glob(os.path.join(folder, "*.dwo")))


def test_type_units(sojourn, compilers):
    """Tests types in units of their own, in debug data that are not split."""
    program, sources = sojourn.path("whole"), []
    for name, text in (("first", FIRST), ("second", SECOND)):
        sources.append(sojourn.path(name + ".cpp"))
        with open(sources[-1], "w", encoding="utf-8") as file:
            file.write(text)
    for compiler in compilers:
        for version in ("-gdwarf-4", "-gdwarf-5"):
            subprocess.run([compiler, "-w", "-std=c++17", "-O1", version, "-fdebug-types-section", *sources, "-o", program], check=True)
            said, found = typed(sojourn, program)
            check(found == EXPECTED, f"{compiler} {version}: {found}, {said}")


def make_package(tool, files, folder):
    package = os.path.join(folder, "program.dwp")
    if tool == "own":
        package_five(files, package, folder)
    else:
        subprocess.run([tool, "-o", package, *files], check=True, cwd=folder, timeout=60)
    for path in files:
        os.unlink(path)
    return package


def typed(sojourn, program):
    done, found, _ = record(sojourn, program, ["open_file", "close_file"])
    return done.stderr, sorted(row for row in found if row[2] != "at")


def test_forms(sojourn, compilers):
    """Tests packages of all kinds that the tools can make."""
    folder = sojourn.path("package")
    for compiler in compilers:
        is_gnu = "clang" not in compiler
        forms = [("dwp", ["-gdwarf-4"]), ("llvm-dwp-14", ["-gdwarf-4"]), ("own", ["-gdwarf-5"]),
                 ("dwp", ["-gdwarf-4", "-fdebug-types-section"]), ("llvm-dwp-14", ["-gdwarf-4", "-fdebug-types-section"]),
                 ("dwp", ["-gdwarf-4", "-ffunction-sections", "-gz=zlib"])]
        if not is_gnu:  # llvm-dwp 14 never ends for gcc's DWARF 5
            forms += [("llvm-dwp-14", ["-gdwarf-5"]), ("llvm-dwp-14", ["-gdwarf-5", "-fdebug-types-section"])]
        for number, (tool, options) in enumerate(forms):
            program, files = build(folder, compiler, options)
            check(len(files) == 2, f"{compiler} {options}: {files}")
            package = make_package(tool, files, folder)
            said, found = typed(sojourn, program)
            check(found == EXPECTED and "no debug data" not in said, f"{compiler} {tool} {options}: {found}, {said}")
            if number > 2 and not IS_LONG: # one of each tool
                continue
            subprocess.run(["objcopy", "--compress-debug-sections=zlib", package], check=True)
            said, found = typed(sojourn, program)
            check(found == EXPECTED, f"{compiler} {tool} {options}, compressed: {found}, {said}")


def test_debug_file(sojourn):
    """The package is beside the separate debug file, which has the skeleton units. The .dwo file of one unit still
    exists."""
    folder = sojourn.path("package")
    program, files = build(folder, "g++", ["-gdwarf-4"])
    shutil.copy(files[0], files[0] + ".kept")
    package = make_package("dwp", files, folder)
    debug = program + ".debug"
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", "--strip-debug", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)
    os.rename(package, debug + ".dwp")
    said, found = typed(sojourn, program)
    check(found == EXPECTED, f"beside the debug file: {found}, {said}")
    # A package beside the program that is damaged, or of another build, does not hide this package.
    _, others = build(sojourn.path("other"), "g++", ["-gdwarf-4"], EXCHANGED, CHANGED)
    other, _ = index_of(make_package("dwp", others, sojourn.path("other")))
    for name, data in (("damaged", b"no package"), ("of another build", other)):
        with open(program + ".dwp", "wb") as file:
            file.write(data)
        said, found = typed(sojourn, program)
        check(found == EXPECTED and "(.dwp) is" not in said, f"beside one that is {name}: {found}, {said}")
    os.unlink(program + ".dwp")
    os.rename(files[0] + ".kept", files[0])
    said, found = typed(sojourn, program)
    check(found == EXPECTED, f"beside a .dwo file: {found}, {said}")
    os.unlink(debug + ".dwp")
    said, found = typed(sojourn, program)
    check({row[0] for row in found} == {"open_file"} and "nor is a package of them (.dwp)" in said, f"no package: {found}, {said}")


def test_other_build(sojourn):
    """Nothing is read from a package of another build, whether it has all units or only one."""
    folder, kept = sojourn.path("package"), sojourn.path("other.dwp")
    for first, second, expected in ((EXCHANGED, CHANGED, set()), (FIRST, CHANGED, {"open_file"})):
        _, others = build(folder, "g++", ["-gdwarf-4"], first, second)
        os.rename(make_package("dwp", others, folder), kept)
        program, files = build(folder, "g++", ["-gdwarf-4"])
        make_package("dwp", files, folder)
        shutil.copy(kept, program + ".dwp")
        said, found = typed(sojourn, program)
        check({row[0] for row in found} == expected and ".dwp) is of another build" in said, f"{expected}: {found}, {said}")


def index_of(package):
    """Returns the bytes of the package, and the offset of the index in them."""
    with open(package, "rb") as file:
        data = file.read()
    return data, data.index(read_sections(package)[".debug_cu_index"])


def test_damaged(sojourn, compilers):
    """Whatever the package contains, the program is recorded. If nothing can be read from the package, that is
    reported."""
    folder = sojourn.path("package")
    numbers = random.Random(int(os.environ.get("SJ_SEED", "5")))
    forms = (("dwp", ["-gdwarf-4"]), ("llvm-dwp-14", ["-gdwarf-4", "-fdebug-types-section"]), ("own", ["-gdwarf-5"]))
    for number, compiler in enumerate(compilers):
        # By default each form comes from one compiler: the reader of a package does not know its author.
        for tool, options in forms if IS_LONG else forms[number::len(compilers)]:
            program, files = build(folder, compiler, options)
            package = make_package(tool, files, folder)
            whole, index = index_of(package)
            for turn in range(3 * DAMAGED):
                data = bytearray(whole)
                # damages all over the file, in the index, or by cutting it
                places = range(len(data)) if turn % 3 != 1 else range(index, min(index + 128, len(data)))
                for _ in range(numbers.randint(1, 20)):
                    data[numbers.choice(places)] = numbers.randrange(256)
                with open(package, "wb") as file:
                    file.write(data[:numbers.randrange(len(data))] if turn % 3 == 2 else data)
                typed(sojourn, program)
            version, cut, rows = bytearray(whole), whole[:len(whole) // 3], bytearray(whole)
            version[index] = 3
            struct.pack_into("<I", rows, index + 8, 2**32 - 1)
            for name, data in (("version", version), ("cut", cut), ("rows", rows), ("empty", b""), ("text", b"no package")):
                with open(package, "wb") as file:
                    file.write(data)
                said, found = typed(sojourn, program)
                reason = "beyond what is read of one" if name == "rows" else ".dwp) is damaged"
                check(not found and reason in said and "no debug data about 1 of 1 function" in said,
                      f"{compiler} {tool} {name}: {found}, {said}")


def test(sojourn, arguments):
    compilers = [shutil.which("g++"), shutil.which("clang++") or shutil.which("clang++-14")]
    check(all(compilers) and shutil.which("dwp") and shutil.which("llvm-dwp-14"), f"compilers, dwp, llvm-dwp-14: {compilers}")
    test_forms(sojourn, compilers)
    test_type_units(sojourn, compilers)
    test_debug_file(sojourn)
    test_other_build(sojourn)
    test_damaged(sojourn, compilers)


if __name__ == "__main__":
    main(test)
