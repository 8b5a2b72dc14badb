#!/usr/bin/env python3
"""Forms of debug data: DWARF 4, 5, split, compressed, in a separate file, of another build, damaged, and of types
without an end.

value_debug_data.py BUILD_FOLDER (SJ_LONG=1: 800 damaged files instead of 12)
"""
import glob
import os
import random
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, main, sample_text
from value_testing import record
PLAIN = sample_text("values/plain.c")
EXPECTED = [("open_file", 1, "result", "8"), ("open_file", 1, "path", "/etc/passwd"),
            ("open_file", 1, "flags", "7"), ("open_file", 1, "share", "0.5")]


def test_forms(sojourn, compilers):
    """Tests the forms of debug data."""
    source, program = sojourn.path("plain.c"), sojourn.path("plain")
    with open(source, "w", encoding="utf-8") as file:
        file.write(PLAIN)
    for compiler in compilers:
        for options in (["-gdwarf-4"], ["-gdwarf-5"], ["-g", "-gsplit-dwarf"], ["-g", "-gz=zlib"],
                        ["-g", "-O2", "-flto"] if "clang" not in compiler else ["-g", "-O2"]):
            subprocess.run([compiler, *options, source, "-o", program], check=True, cwd=sojourn.path(""))
            _, found, _ = record(sojourn, program, ["open_file"])
            check(sorted(found) == sorted(EXPECTED), f"{compiler} {options}: {found}")
    subprocess.run(["gcc", "-g", "-O1", source, "-o", program], check=True)
    debug = program + ".debug"
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", "--strip-debug", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)
    _, found, _ = record(sojourn, program, ["open_file"])
    check(sorted(found) == sorted(EXPECTED), f"separate file: {found}")
    other = sojourn.path("other.c")
    with open(other, "w", encoding="utf-8") as file:
        file.write(PLAIN.replace("int flags, double share", "double share, int flags"))
    subprocess.run(["gcc", "-g", "-O1", "-w", other, "-o", sojourn.path("other")], check=True)
    subprocess.run(["objcopy", "--only-keep-debug", sojourn.path("other"), debug], check=True)
    done, found, _ = record(sojourn, program, ["open_file"])
    check(not found and "no debug data about 1 of 1 function" in done.stderr,
          f"debug data of another build: {found}, {done.stderr}")
    done, found, _ = record(sojourn, program, ["open_file(path:str, flags:int, share:double) -> int"])
    check([row[3] for row in sorted(found)] and {row[3] for row in found} == {row[3] for row in EXPECTED},
          f"signature without debug data: {found}")


def split_files(sojourn):
    return sorted(glob.glob(sojourn.path("*.dwo")))


def test_split(sojourn, compilers):
    """Tests split debug data: both versions, compressed; files that are missing, of another build, or damaged."""
    source, program = sojourn.path("plain.c"), sojourn.path("plain")
    numbers = random.Random(11)
    other = PLAIN.replace("int flags, double share", "double share, int flags")
    for compiler in compilers:
        for options in (["-gdwarf-4", "-gsplit-dwarf"], ["-gdwarf-5", "-gsplit-dwarf"],
                        ["-gdwarf-5", "-gsplit-dwarf", "-gz=zlib"]):
            for old in split_files(sojourn):
                os.unlink(old)
            built = []
            for text in (other, PLAIN):
                with open(source, "w", encoding="utf-8") as file:
                    file.write(text)
                subprocess.run([compiler, *options, "-w", source, "-o", program], check=True, cwd=sojourn.path(""))
                check(len(split_files(sojourn)) == 1, f"{compiler} {options}: {split_files(sojourn)}")
                with open(split_files(sojourn)[0], "rb") as file:
                    built.append(file.read())
            _, found, _ = record(sojourn, program, ["open_file"])
            check(sorted(found) == sorted(EXPECTED), f"{compiler} {options}: {found}")
            dwo = split_files(sojourn)[0]
            for _ in range(100 if os.environ.get("SJ_LONG") == "1" else 1):
                damaged = bytearray(built[1])
                for _ in range(numbers.randint(1, 20)):
                    damaged[numbers.randrange(len(damaged))] = numbers.randrange(256)
                with open(dwo, "wb") as file:
                    file.write(damaged[:numbers.randrange(len(damaged))] if numbers.random() < 0.2 else damaged)
                record(sojourn, program, ["open_file"])
            for content in (built[0], b"", None):
                os.unlink(dwo)
                if content is not None:
                    with open(dwo, "wb") as file:
                        file.write(content)
                done, found, _ = record(sojourn, program, ["open_file"])
                check(not found and "no debug data about 1 of 1 function" in done.stderr,
                      f"{compiler} {options}, {'another file' if content else content}: {found}, {done.stderr}")
                if content is None:
                    with open(dwo, "wb") as file:
                        file.write(b"")
            os.unlink(dwo)


def sections(program, name):
    for line in subprocess.run(["readelf", "-SW", program], check=True, capture_output=True, text=True).stdout.splitlines():
        parts = re.sub(r"\[\s*\d+\]", "", line).split()
        if parts and parts[0] == name:
            return int(parts[3], 16), int(parts[4], 16)
    raise AssertionError(name)


def test_damaged(sojourn):
    """The program is recorded, whatever the damaged debug data contain."""
    source, program, damaged = sojourn.path("plain.c"), sojourn.path("plain"), sojourn.path("damaged")
    numbers = random.Random(7)
    subprocess.run(["gcc", "-g", "-O1", source, "-o", program], check=True)
    with open(program, "rb") as file:
        whole = file.read()
    places = [sections(program, name) for name in (".debug_info", ".debug_abbrev", ".debug_loclists")]
    for _ in range(200 if os.environ.get("SJ_LONG") == "1" else 6):
        data = bytearray(whole)
        for _ in range(numbers.randint(1, 12)):
            start, size = numbers.choice(places)
            data[start + numbers.randrange(size)] = numbers.randrange(256)
        with open(damaged, "wb") as file:
            file.write(data)
        os.chmod(damaged, 0o755)
        record(sojourn, damaged, ["open_file"])


def test_endless(sojourn):
    """A type has 64 members, each of which has 64 members, and so on, so no reader can visit all of them. Behind a
    limit, values are reported as unknown. Compilers cannot visit them either, so the test compiles pointers. It then
    turns each pointer into another name of the type that it points to."""
    assembly, program = sojourn.path("endless.s"), sojourn.path("endless")
    members = ", ".join(f"*m{i}" for i in range(64))
    for language, kind in (("c", "struct"), ("c", "union"), ("c++", "struct")):
        text = f"{kind} S0 {{ int of; }};\n" + "".join(
            f"{kind} S{i} {{ {kind} S{i - 1} {members}; }};\n" for i in range(1, 9))
        text += f"""int deep(int before, {kind} S8 *many, int behind)
{{
    return many ? before : behind;
}}
int main(void)
{{
    return deep(1, 0, 2) - 2;
}}
"""
        subprocess.run(["gcc", "-x", language, "-g", "-O0", "-S", "-dA", "-", "-o", assembly], check=True,
                       input=text, text=True)
        with open(assembly, encoding="utf-8") as file:
            pointers = re.compile(r"0xf(\s.*DW_TAG_pointer_type)") # 0x16: a typedef
            changed, count = pointers.subn(r"0x16\1", file.read())
        check(count == 1, f"{count} abbreviations of pointers")
        with open(assembly, "w", encoding="utf-8") as file:
            file.write(changed)
        subprocess.run(["gcc", assembly, "-o", program], check=True)
        _, _, database = record(sojourn, program, ["deep*"])
        states = {row["name"]: row["state"] for row in sojourn.sql(database, "SELECT name, state FROM value_types")}
        check(states == {"before": "recorded", "many": "unknown", "behind": "unknown", "": "recorded"},
              f"{language} {kind}: {states}")


def test(sojourn, arguments):
    compilers = [shutil.which("gcc"), shutil.which("clang") or shutil.which("clang-14")]
    check(all(compilers), f"compilers: {compilers}")
    test_forms(sojourn, compilers)
    test_split(sojourn, compilers)
    test_damaged(sojourn)
    test_endless(sojourn)


if __name__ == "__main__":
    main(test)
