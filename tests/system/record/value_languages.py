#!/usr/bin/env python3
"""Types from debug data of C++ and Rust, for functions and methods with generated signatures: the recorded
arguments and results equal those that they print. They are numbers, enumerations, references, pointers and their
targets, std::string, std::string_view, std::vector, classes passed by the address of a copy, hidden results, &str
and slices. x86-64, and C++ on AArch64 under qemu; gcc, clang and rustc.

value_languages.py BUILD_FOLDER (SJ_LONG=1: over a thousand signatures, all levels; SJ_SEED: other ones)
"""
import os
import random
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, main, sample_text
from value_types import SCALARS, STRUCTURES, literal, record

IS_LONG = os.environ.get("SJ_LONG") == "1"
FUNCTIONS = 45 if IS_LONG else 14
MOST_PARAMETERS = 6
MOST_WORDS = 12  # words in registers and on the stack from which arguments are recorded in any case
CXX_SCALARS = {**SCALARS, "shade": ("%s", "name_of({})")}
WORDS = {"large": 4, "std::string_view": 2, **{name: 2 for name in STRUCTURES if name != "large"}}
RETURNED = {**STRUCTURES, "held": [("a", "int"), ("b", "double")]}  # these results are recorded field by field
SURE_OF_RESULT = 3  # with up to this many parameters, enough slots are left for all fields of a result
TEXTS = ("std::string", "const std::string &", "std::string_view")
LEAD_ON = {"const pair &": (".", "pair"), "const reals *": ("->", "reals")}  # these point to a structure
CXX_HEAD = sample_text("values/languages_head.h") + "".join(f"struct {name} {{ {' '.join(f'{kind} {field};' for field, kind in fields)} }};\n"
              for name, fields in STRUCTURES.items())


def write_text(numbers):
    return '"' + "".join(numbers.choice("abcdefgh/_") for _ in range(numbers.randint(1, 40))) + '"'


class CxxSignature:
    """A function, or a method, with generated parameters and result."""

    def __init__(self, number, numbers):
        self.name = f"generated_{number}"
        self.objects = []
        self.is_method = numbers.random() < 0.3
        # otherwise the compiler may change the calling convention
        self.is_kept = self.is_method or numbers.random() < 0.6
        kinds = [*CXX_SCALARS, *STRUCTURES, *TEXTS, *TEXTS, *LEAD_ON, *LEAD_ON, "const long &", "const char &", "held",
                 "const std::vector<int> &", "std::vector<int>"]
        self.kinds = [numbers.choice(kinds) for _ in range(numbers.randint(1, MOST_PARAMETERS))]
        self.result = numbers.choice([*CXX_SCALARS, *STRUCTURES, "std::string", "held", "held", "void"])
        self.given = self.literal(self.result, numbers) if self.result != "void" else ""
        first = [self.literal(kind, numbers) for kind in self.kinds]
        # Some arguments are the same in each call, so that compilers may make them constants.
        self.calls = [[numbers.choice([given, self.literal(kind, numbers)])
                       for kind, given in zip(self.kinds, first)] for _ in range(3)]

    def literal(self, kind, numbers):
        if kind == "shade":
            return numbers.choice(["shade::DARK", "shade::LIGHT"])
        if kind == "const char &":
            return f"'{numbers.choice('abcdef')}'"
        if kind == "const long &":
            return literal("long", numbers) + "L"
        if kind in ("std::string", "const std::string &"):
            return f"std::string({write_text(numbers)})"
        if kind == "std::string_view":
            return f"std::string_view({write_text(numbers)}).substr({numbers.choice([0, 1])})"
        if kind == "held":
            return f"held({literal('int', numbers)}, {literal('double', numbers)})"
        if "vector" in kind:
            return f"std::vector<int>({numbers.randint(0, 50)})"
        if kind in STRUCTURES or kind in LEAD_ON:
            of = LEAD_ON[kind][1] if kind in LEAD_ON else kind
            fields = ", ".join(literal(field, numbers) for _, field in STRUCTURES[of])
            if not kind.endswith("*"):
                return f"{of}{{{fields}}}"
            self.objects.append(f"static const {of} {self.name}_{len(self.objects)} = {{{fields}}};\n")
            return f"&{self.name}_{len(self.objects) - 1}"
        return literal(kind, numbers)

    def show(self, name, form, what):
        return f'    printf("{self.name} %d {name} {form}\\n", calls, {what});\n'

    def show_scalar(self, name, kind):
        form, what = CXX_SCALARS[kind]
        return self.show(name, form, what.format(name))

    def show_value(self, name, kind):
        """Prints everything that may be recorded of a value."""
        if kind in CXX_SCALARS:
            return self.show_scalar(name, kind)
        if kind in TEXTS:
            return self.show(name, "%.*s", f"(int){name}.size(), {name}.data()")
        if kind in STRUCTURES:
            return "".join(self.show_scalar(f"{name}.{field}", of) for field, of in STRUCTURES[kind])
        if kind == "held":
            return self.show_scalar(f"{name}.a", "int") + self.show_scalar(f"{name}.b", "double")
        address = name if kind.endswith("*") else f"&{name}"
        text = self.show(name, "0x%lx", f"(unsigned long){address}")
        if "vector" in kind:
            return text + self.show(f"{name}.size()", "%lu", f"{name}.size()")
        if kind in LEAD_ON:
            by, of = LEAD_ON[kind]
            for field, of_field in STRUCTURES[of]:  # a text behind a pointer is recorded as an address
                full = f"{name}{by}{field}"
                text += (self.show(full, "0x%lx", f"(unsigned long){full}") if of_field == "const char *"
                         else self.show_scalar(full, of_field))
        return text

    def head(self, scope=""):
        parameters = ", ".join(f"{kind} a{i}" for i, kind in enumerate(self.kinds))
        return f"{self.result} {scope}{self.name}({parameters})"

    def source(self):
        begin = "KEPT" if self.is_kept else "static __attribute__((noinline))"
        text = f"{begin} {self.head()};\n{begin} {self.head()}" if not self.is_method else self.head("thing::")
        text += "\n{\n    static int calls;\n    calls++;\n"
        if self.is_method:
            text += (self.show("this", "0x%lx", "(unsigned long)this") + self.show("this->number", "%d", "number") +
                     self.show("this->other", "%ld", "other"))
        text += "".join(self.show_value(f"a{i}", kind) for i, kind in enumerate(self.kinds))
        if self.result == "void":
            return text + "}\n"
        text += f"    {self.result} result = {self.given};\n"
        if self.result in CXX_SCALARS or self.result == "std::string":
            text += self.show_value("result", self.result)
        for field, of in RETURNED.get(self.result, []):  # a text in the result is recorded as an address
            form, what = ("0x%lx", "(unsigned long){}") if of == "const char *" else CXX_SCALARS[of]
            text += self.show(f"return.{field}", form, what.format(f"result.{field}"))
        return text + "    return result;\n}\n"

    def told(self, compiler, level):
        """Returns the names of values that must be recorded: all values at the places of the calling convention,
        except those that optimized code has split."""
        words = self.is_method + (self.result in ("large", "held", "std::string"))
        names = {"result"} if self.result in CXX_SCALARS else set()
        if len(self.kinds) <= SURE_OF_RESULT:
            names |= {f"return.{field}" for field, _ in RETURNED.get(self.result, [])}
        for i, kind in enumerate(self.kinds):
            words += WORDS.get(kind, 1)
            is_whole = kind in CXX_SCALARS and kind != "bool"
            if words > MOST_WORDS or (level != 0 and not (self.is_kept and is_whole)):
                continue
            if kind in STRUCTURES:
                names |= {f"a{i}.{field}" for field, _ in STRUCTURES[kind]}
            elif kind != "held" and kind != "std::vector<int>":
                names.add(f"a{i}")
        return names if level == 0 or self.is_kept else set()


def cxx_source(signatures):
    methods = "".join(f"    KEPT {one.head()};\n" for one in signatures if one.is_method)
    calls = "".join(f"    (void){'one.' if one.is_method else ''}{one.name}({', '.join(given)});\n"
                    for one in signatures for given in one.calls)
    return (CXX_HEAD + "".join(object for one in signatures for object in one.objects) +
            f"struct thing {{\n    int number;\n    long other;\n{methods}}};\n" +
            "".join(one.source() for one in signatures) +
            f"int main()\n{{\n    thing one{{41, -7}};\n{calls}    return one.number - 41;\n}}\n")


def compare(sojourn, program, what, signatures, is_emulated, must):
    """Checks that each recorded value equals the printed one, and that the values that `must` names for a signature
    are there. Returns the numbers of recorded and of printed values."""
    done, found, _ = record(sojourn, program, ["*generated_*"])
    printed = {}
    for line in done.stdout.splitlines():
        name, number, value_name, value = line.split(" ", 3)
        printed[name, int(number), value_name] = value
    # qemu-user lacks the system call that reads safely, so texts are unknown.
    wrong = [(row, printed.get(row[:3])) for row in found if printed.get(row[:3]) != row[3]
             and not (is_emulated and row[3] == "None")]
    check(not wrong, f"{what}: recorded, printed: {wrong[:5]}")
    recorded = {row[:3] for row in found}
    missing = [key for one in signatures for key in printed
               if key[0] == one.name and key[2] in must(one) and key not in recorded]
    check(not missing, f"{what}: not recorded: {missing[:5]}")
    check(len(found) > len(printed) // 4, f"{what}: {len(found)} of {len(printed)} recorded")
    return len(found), len(printed)


def one_cxx(sojourn, compiler, level, numbers):
    signatures = [CxxSignature(number, numbers) for number in range(FUNCTIONS)]
    source, program = sojourn.path("generated.cpp"), sojourn.path("generated_cxx")
    with open(source, "w", encoding="utf-8") as file:
        file.write(cxx_source(signatures))
    subprocess.run([*compiler.split(), "-std=c++17", f"-O{level}", "-g", "-w", source, "-o", program], check=True)
    is_emulated = "aarch64" in compiler
    return compare(sojourn, program, f"{compiler} -O{level}", signatures, is_emulated,
                   lambda one: set() if is_emulated else one.told(compiler, level))


# The Rust format of each type.
RUST_SCALARS = {"i8": "{}", "i16": "{}", "i32": "{}", "i64": "{}", "u8": "{}", "u16": "{}", "u32": "{}", "u64": "{}",
                "usize": "{}", "bool": "{} as u8", "f32": "{} as f64", "f64": "{}", "char": "{} as u32"}
RUST_LIMITS = {"i8": 7, "i16": 15, "i32": 31, "i64": 62, "u8": -8, "u16": -16, "u32": -32, "u64": -63, "usize": -63}
RUST_HEAD = """#![allow(improper_ctypes_definitions, unused, dead_code)]
use std::sync::atomic::{AtomicU32, Ordering};
pub struct Pair { pub x: i32, pub y: i64 }
pub struct Big { pub x: u64, pub y: f64, pub z: u64, pub last: i32 }
"""


class RustSignature:
    """A function with generated parameters and result."""

    def __init__(self, number, numbers):
        self.name = f"generated_{number}"
        self.is_kept = numbers.random() < 0.6
        kinds = [*RUST_SCALARS, "&'static str", "&'static str", "&[u32]", "&Pair", "&mut i64", "i128", "Big"]
        self.kinds = [numbers.choice(kinds) for _ in range(numbers.randint(1, MOST_PARAMETERS))]
        self.result = numbers.choice([*RUST_SCALARS, "&'static str", "Big", "()"])
        self.given = self.literal(self.result, numbers)
        first = [self.literal(kind, numbers) for kind in self.kinds]
        self.calls = [[numbers.choice([given, self.literal(kind, numbers)])
                       for kind, given in zip(self.kinds, first)] for _ in range(3)]

    def literal(self, kind, numbers):
        if kind in RUST_LIMITS:
            bits = RUST_LIMITS[kind]
            return f"{numbers.randint(0 if bits < 0 else -2**bits, 2**abs(bits) - 1)}{kind}"
        if kind in ("f32", "f64"):
            return f"{numbers.randint(-10**6, 10**6) / 64}{kind}"
        return {"bool": lambda: numbers.choice(["true", "false"]), "char": lambda: f"'{numbers.choice('axyz')}'",
                "&'static str": lambda: write_text(numbers), "()": lambda: "()",
                "&[u32]": lambda: f"&[7u32; 50][{numbers.randint(0, 20)}..{numbers.randint(20, 50)}]",
                "&Pair": lambda: f"&Pair {{ x: {numbers.randint(-99, 99)}, y: {numbers.randint(-10**12, 10**12)} }}",
                "&mut i64": lambda: f"&mut {numbers.randint(0, 99)}i64",
                "i128": lambda: f"{numbers.randint(-2**100, 2**100)}i128",
                "Big": lambda: f"Big {{ x: 1, y: 2.5, z: {numbers.randint(0, 99)}, last: -4 }}"}[kind]()

    def show(self, name, what):
        return f'    println!("{self.name} {{}} {name} {{}}", calls, {what});\n'

    def show_value(self, name, kind):
        if kind in RUST_SCALARS:
            return self.show(name, RUST_SCALARS[kind].format(name))
        if kind == "&'static str":
            return self.show(name, name)
        if kind == "&[u32]":
            return (self.show(f"{name}.data_ptr", f'format!("{{:p}}", {name}.as_ptr())') +
                    self.show(f"{name}.length", f"{name}.len()"))
        if kind == "&Pair":
            return (self.show(name, f'format!("{{:p}}", {name})') + self.show(f"{name}->x", f"{name}.x") +
                    self.show(f"{name}->y", f"{name}.y"))
        if kind == "&mut i64":
            return self.show(name, f'format!("{{:p}}", {name})')
        if kind == "i128":
            return self.show(f"{name}.low", f"{name} as u64") + self.show(f"{name}.high", f"({name} >> 64) as i64")
        return ""

    def source(self):
        parameters = ", ".join(f"a{i}: {kind}" for i, kind in enumerate(self.kinds))
        text = f"#[inline(never)]\n{'#[no_mangle]' if self.is_kept else ''}\n"
        text += f"pub fn {self.name}({parameters}) -> {self.result} {{\n"
        text += "    static CALLS: AtomicU32 = AtomicU32::new(0);\n    let calls = CALLS.fetch_add(1, Ordering::Relaxed) + 1;\n"
        text += "".join(self.show_value(f"a{i}", kind) for i, kind in enumerate(self.kinds))
        text += f"    let result = {self.given};\n"
        return text + self.show_value("result", self.result) + "    result\n}\n"

    def told(self):
        """Returns the scalars before the first parameter whose passing rules are not stable."""
        names = set() if self.result in ("()", "Big") else {"result"}
        if self.result == "Big":
            return names
        for i, kind in enumerate(self.kinds):
            if kind in ("Big", "i128"):
                break
            names |= {f"a{i}"} if kind in RUST_SCALARS and kind != "bool" else set()
        return names if self.is_kept and sum(WORDS.get(kind, 2) for kind in self.kinds) <= 6 else set()


def one_rust(sojourn, compiler, level, numbers):
    signatures = [RustSignature(number, numbers) for number in range(FUNCTIONS)]
    source, program = sojourn.path("generated.rs"), sojourn.path("generated_rust")
    calls = "".join(f"    let _ = {one.name}({', '.join(given)});\n" for one in signatures for given in one.calls)
    with open(source, "w", encoding="utf-8") as file:
        file.write(RUST_HEAD + "".join(one.source() for one in signatures) + f"fn main() {{\n{calls}}}\n")
    subprocess.run([compiler, "-g", "-C", f"opt-level={level}", source, "-o", program], check=True)
    return compare(sojourn, program, f"{compiler} -O{level}", signatures, False,
                   RustSignature.told)


def run_all(sojourn, language, one_program, compilers, numbers):
    recorded = printed = programs = 0
    for compiler, short_levels in compilers:
        for level in range(4) if IS_LONG else short_levels:
            of_program = one_program(sojourn, compiler, level, numbers)
            programs, recorded, printed = programs + 1, recorded + of_program[0], printed + of_program[1]
    print(f"{language}: {programs * FUNCTIONS} signatures: {recorded} values of {printed} printed ones, none of them another")


def test(sojourn, arguments):
    numbers = random.Random(int(os.environ.get("SJ_SEED", "1")))
    gxx, clang, cross = shutil.which("g++"), shutil.which("clang++"), shutil.which("aarch64-linux-gnu-g++")
    rust = "/usr/bin/rustc"  # Debian's compiler: another one would make the result depend on the machine
    check(gxx and clang and cross and os.path.exists(rust), f"compilers: {gxx}, {clang}, {cross}, {rust}")
    run_all(sojourn, "C++", one_cxx, [(gxx, (0, 2)), (clang, (0, 2)), (cross, (2,)),
                                      (f"{clang} --target=aarch64-linux-gnu", (0,))], numbers)
    run_all(sojourn, "Rust", one_rust, [(rust, (0, 2))], numbers)


if __name__ == "__main__":
    main(test)
