#!/usr/bin/env python3
"""Signatures in source order, for generated functions with whole and floating-point numbers, texts and structures.
The recorded arguments and results equal those that the functions print, for gcc and clang at -O0 and -O2. Each
mistake gives one sentence.

value_signatures.py BUILD_FOLDER (SJ_LONG=1: a thousand signatures, at -O1 too; SJ_SEED: other ones)
"""
import os
import random
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import IS_LONG, SAMPLES, check, check_accounts, main, wait_for

# A recording can have 256 rules about values, a function 16.
FUNCTIONS, VALUES, POSITIONS = 16, 16, 15
GENERAL, VECTORS, STACK_WORDS = 6, 8, 7
ROUNDS = 11 if IS_LONG else 2
C_TYPES = {"int": "int", "uint": "unsigned", "long": "long", "ulong": "unsigned long",
           "char": "signed char", "bool": "bool", "hex": "unsigned long", "pointer": "void *",
           "float": "float", "double": "double", "str": "const char *", "struct": "large"}
FORMATS = {"int": "%d", "uint": "%u", "long": "%ld", "ulong": "%lu", "char": "%d", "bool": "%d",
           "hex": "0x%lx", "pointer": "0x%lx", "float": "%.17g", "double": "%.17g", "str": "%s"}
HEAD = os.path.join(SAMPLES, "values", "signatures.h")


def literal(kind, numbers):
    if kind in ("float", "double"):
        return repr(numbers.randint(-10**6, 10**6) / 64) + ("F" if kind == "float" else "")
    if kind == "str":
        return '"' + "".join(numbers.choice("abcdefgh/_") for _ in range(numbers.randint(1, 40))) + '"'
    if kind == "struct":
        return f"((large){{{numbers.randint(1, 99)}.5, {numbers.randint(1, 99)}, 2.5}})"
    low, high = {"int": (-2**31 + 1, 2**31 - 1), "uint": (0, 2**32 - 1), "long": (-2**63 + 1, 2**63 - 1),
                 "char": (-128, 127), "bool": (0, 1)}.get(kind, (0, 2**64 - 1))
    number = numbers.randint(low, high)
    suffix = {"uint": "U", "long": "L", "ulong": "UL", "hex": "UL", "pointer": "UL"}.get(kind, "")
    return ("(void *)" if kind == "pointer" else "") + f"{number}{suffix}"


class Signature:
    """A function with generated parameters and result."""

    def __init__(self, name, numbers):
        self.name = name
        kinds = list(C_TYPES)
        self.result = numbers.choice([*kinds, "void"])
        self.kinds = [numbers.choice(kinds) for _ in range(numbers.randint(1, 17))]
        general, vectors, stack, possible = int(self.result == "struct"), 0, 0, []
        for index, kind in enumerate(self.kinds):
            is_real = kind in ("float", "double")
            vectors += is_real
            general += not is_real and kind != "struct"
            in_register = kind != "struct" and (vectors <= VECTORS if is_real else general <= GENERAL)
            stack += STACK_WORDS if kind == "struct" else not in_register  # arguments behind it are not found
            if kind != "struct" and (in_register or stack <= STACK_WORDS) and index < POSITIONS:
                possible.append(index)
        has_result = self.result not in ("void", "struct")
        most = VALUES - has_result
        self.recorded = set(numbers.sample(possible, min(most, len(possible))))
        self.is_empty = not self.recorded and not has_result
        self.given = literal(self.result, numbers) if self.result != "void" else ""
        self.calls = [[literal(kind, numbers) for kind in self.kinds] for _ in range(3)]

    def rule(self):
        parts = [f"{f'a{i}' if i in self.recorded else '_'}:{kind}" for i, kind in enumerate(self.kinds)]
        return f"{self.name}({', '.join(parts)})" + (f" -> {self.result}" if self.result != "void" else "")

    def show(self, position, kind, value):
        value = f"(unsigned long){value}" if kind == "pointer" else value
        value = f"(double){value}" if kind == "float" else value
        kind_word = "string" if kind == "str" else kind
        return f'    printf("{self.name} %d {position} {kind_word} {FORMATS[kind]}\\n", calls, {value});\n'

    def source(self):
        result = C_TYPES.get(self.result, "void")
        parameters = ", ".join(f"{C_TYPES[kind]} a{i}" for i, kind in enumerate(self.kinds))
        text = f"NOT_INLINED {result} {self.name}({parameters});\n"
        text += f"NOT_INLINED {result} {self.name}({parameters})\n{{\n    static int calls;\n    calls++;\n"
        for index in range(len(self.kinds)):
            if index in self.recorded:
                text += self.show(index + 1, self.kinds[index], f"a{index}")
            else:
                text += f"    (void)a{index};\n"
        if self.result == "void":
            return text + "}\n"
        text += f"    const {result} result = {self.given};\n" if self.result != "str" else \
            f"    const char *const result = {self.given};\n"
        if self.result != "struct":
            text += self.show(0, self.result, "result")
        return text + ("    return (void *)result;\n}\n" if self.result == "pointer" else "    return result;\n}\n")


def shown(kind, value):
    return f"{value:.17g}" if kind in ("float", "double") else str(value)


def one_program(sojourn, compiler, level, signatures):
    source, program = sojourn.path("generated.c"), sojourn.path("generated")
    calls = "".join(f"    (void){one.name}({', '.join(given)});\n" for one in signatures for given in one.calls)
    with open(source, "w", encoding="utf-8") as file:
        file.write("".join(one.source() for one in signatures) + f"int main(void)\n{{\n{calls}}}\n")
    subprocess.run([compiler, f"-O{level}", "-w", "-include", HEAD, source, "-o", program], check=True)
    database = sojourn.path("generated.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    rules = [part for one in signatures for part in ("--value", one.rule())]
    done, _ = sojourn.record([program], database, ["--block-ms", "10000", *rules], text=True)
    check(done.returncode == 0, f"{rules} ended with {done.returncode}: {done.stderr}")
    check_accounts(sojourn, database)
    numbers, found = {}, []
    for row in sojourn.sql(database, "SELECT f.name, a.* FROM arguments AS a JOIN calls USING "
                           "(session_id, call_id) JOIN functions AS f USING (function_id) "
                           "ORDER BY a.call_id, a.position"):
        of = numbers.setdefault(row["name"], {})
        number = of.setdefault(row["call_id"], len(of) + 1)
        found.append((row["name"], str(number), str(row["position"]), row["kind"],
                      shown(row["kind"], row["value"])))
    printed = sorted(tuple(line.split(" ", 4)) for line in done.stdout.splitlines())
    wrong = sorted(set(printed) ^ set(found))
    check(sorted(found) == printed and printed,
          f"{compiler} -O{level}: differ: {wrong}, rules: {rules}")
    return len(printed)


def refusals(sojourn):
    for rule, what in (("f(a:ints)", '"ints" is not a type'), ("f(a:int", 'needed before ""'),
                       ("f()", "no value that can be recorded"),
                       (f"f({'a:int,' * 15}b:int)", "argument 14 is passed on the stack"),
                       (f"f({'a:int,a:double,' * 7}a:int,a:int)", "only the first 15 can"),
                       ("f(_:int,_:int,_:int,_:int,_:int,_:int,_:struct,g:int)", "argument 8 is passed on the stack"),
                       ("f(a:bytes)", "bytes[NAME]"), ("f(a:str[5000])", "1 to 4096 bytes"),
                       ("f(a:bytes[x], x:double)", '"x" is not a parameter that can be a length')):
        done = sojourn.run(["record", "--value", rule, "--", "/bin/true"], capture_output=True, text=True)
        check(done.returncode == 125 and what in done.stderr, f"{rule}: {done}")
    done = sojourn.run(["record", "--value", "f(a:int)", "--value", "f(2:int)", "--", "/bin/true"],
                       capture_output=True, text=True)
    check(done.returncode == 125 and "count differently" in done.stderr, f"mixed: {done}")
    done = sojourn.run(["record", "--value", "no_such(a:int, b:int)", "--", "/bin/true"],
                       capture_output=True, text=True)
    check(done.returncode == 125 and done.stderr.count("no_such") == 1, f"unmatched: {done}")
    for rule, is_explained in (("f(3:double)", True), ("f(3:int)", False), ("f(a:double)", False)):
        done = sojourn.run(["record", "--value", rule, "--", "/bin/true"], capture_output=True, text=True)
        check(("floating-point argument 3" in done.stderr) == is_explained, f"{rule}: {done}")


def a_warning_names_misplaced_arguments(sojourn):
    """A warning names an argument that debug data locate elsewhere than the signature. The argument is recorded as
    written."""
    program = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests", "samples", "gcc-O2", "values")
    for rule, name in (("val_whole(b:int)", "b"), ("val_single(b:int)", "b"), ("val_whole(a:int, _:int, _:int, c:int)", "c"),
                       ("val_whole(a:int, b:uint) -> int", None), ("val_real(c:int)", None), ("val_whole(_:int, b:uint)", None),
                       ("val_text(x:str, b:str)", None), ("val_w*(b:int)", None)):
        done = sojourn.run(["record", "-q", "-o", sojourn.path("places.db"), "--value", rule, "--", program], capture_output=True, text=True)
        told = f"in the debug data '{name}' (" in done.stderr
        advised = "'_:KIND'" in done.stderr
        check(done.returncode == 0 and told == advised == ("in another place" in done.stderr) == (name is not None), f"{rule}: {done.stderr}")
    check(warns_about_running(sojourn, program, "/bin/sleep") is False, "the file at the path was looked at, not the one that runs")
    check(warns_about_running(sojourn, "/bin/sleep", program) is True, "the file that runs was not looked at")


def warns_about_running(sojourn, here, there):
    """True if the recorder warns about a process that runs the file `there`. On this machine, the path of that
    process has the file `here`, as for a process in a container."""
    path = sojourn.path("running")
    shutil.copy(here, path)
    other = subprocess.Popen(["unshare", "-m", "sh", "-c", f"mount --bind {there} {path} && exec {path} 60"])
    try:
        wait_for("the process runs", lambda: os.readlink(f"/proc/{other.pid}/exe") == path)
        done = sojourn.run(["attach", "--for", "10ms", "-o", sojourn.path("places.db"), "--value", "val_whole(b:int)", str(other.pid)],
                           capture_output=True, text=True)
    finally:
        other.kill()
        other.wait()
    return "in another place" in done.stderr


def test(sojourn, arguments):
    numbers = random.Random(int(os.environ.get("SJ_SEED", "1")))
    compilers = [shutil.which("gcc"), shutil.which("clang") or shutil.which("clang-14")]
    check(all(compilers), f"compilers: {compilers}")
    count = values = 0
    for compiler in compilers:
        for level in range(3) if IS_LONG else (0, 2):
            for _ in range(ROUNDS):
                signatures = []
                while len(signatures) < FUNCTIONS:
                    one = Signature(f"generated_{len(signatures)}", numbers)
                    signatures += [] if one.is_empty else [one]
                values += one_program(sojourn, compiler, level, signatures)
                count += FUNCTIONS
    print(f"{count} signatures, {values} values as printed")
    refusals(sojourn)
    a_warning_names_misplaced_arguments(sojourn)


if __name__ == "__main__":
    main(test)
