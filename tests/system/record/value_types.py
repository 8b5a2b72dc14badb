#!/usr/bin/env python3
"""Types from debug data, for functions with generated signatures: all recorded arguments and results equal those
that the functions print. They are numbers of all sizes, texts, enumerations, and structures field by field, in
registers and on the stack, by gcc and clang at -O0 and -O2. A value that a compiler removed or moved is unknown,
never another value.

value_types.py BUILD_FOLDER (SJ_LONG=1: over a thousand signatures at -O0 to -O3; SJ_SEED: other ones)
"""
import os
import random
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, main, sample_text
from value_testing import record
FUNCTIONS = 130 if os.environ.get("SJ_LONG") == "1" else 14
STACK_WORDS = 7  # words of the stack that arguments are recorded from
MOST_NAMED = 15  # values that arguments of a function can have
# C type: the format of its value, and the printed expression
SCALARS = {"int": ("%d", "{}"), "unsigned": ("%u", "{}"), "long": ("%ld", "{}"),
           "unsigned long": ("%lu", "{}"), "signed char": ("%d", "{}"), "unsigned char": ("%d", "{}"),
           "short": ("%d", "{}"), "unsigned short": ("%d", "{}"), "bool": ("%d", "{}"),
           "float": ("%.17g", "(double){}"), "double": ("%.17g", "{}"), "const char *": ("%s", "{}"),
           "void *": ("0x%lx", "(unsigned long){}"), "color": ("%s", "name_of({})")}
LIMITS = {"int": 31, "unsigned": -32, "long": 62, "unsigned long": -63, "signed char": 7,
          "unsigned char": -8, "short": 15, "unsigned short": -16, "bool": -1}
STRUCTURES = {"pair": [("a", "int"), ("b", "int")], "mixed": [("a", "int"), ("b", "float")],
              "reals": [("a", "double"), ("b", "long")], "small": [("a", "signed char"), ("b", "short")],
              "single": [("a", "double")], "text": [("a", "const char *"), ("b", "color")],
              "floats": [("a", "float"), ("b", "float"), ("c", "float")],
              # this structure is passed and returned in memory
              "large": [("a", "double"), ("b", "long"), ("c", "double")]}
# These types are passed in two words, as two values. A value of 16 bytes is recorded if it is the x87's.
WIDE = {"__int128": [("low", "unsigned long", "(unsigned long){}"), ("high", "long", "(long)({} >> 64)")],
        "unsigned __int128": [("low", "unsigned long", "(unsigned long){}"), ("high", "unsigned long", "(unsigned long)({} >> 64)")]}
EXTENDED = "long double"
# The registers that a value takes by System V: general ones and vectors. A value without registers is passed in
# memory. On AArch64, structures of floating-point numbers of one size take vectors, and others of up to 16 bytes take
# general registers. Larger ones are passed by the address of a copy.
CLASSES = {"pair": "G", "mixed": "G", "reals": "VG", "small": "G", "single": "V", "text": "GG", "floats": "VV",
           "large": "", EXTENDED: "", **{kind: "GG" for kind in WIDE}}
CLASSES_AARCH64 = {**CLASSES, "reals": "GG", "floats": "VVV", "large": "G", EXTENDED: "V"}
PLACES = 20  # slots of a function: a value takes one, a value of a structure in memory and a long double take three
SIZES = {"int": 4, "unsigned": 4, "float": 4, "color": 4, "short": 2, "unsigned short": 2, "signed char": 1,
         "unsigned char": 1, "bool": 1}
HEAD = sample_text("values/generated_head.h") + "".join(f"typedef struct {name} {{ {' '.join(f'{kind} {field};' for field, kind in fields)} }} {name};\n"
              for name, fields in STRUCTURES.items())


def literal(kind, numbers):
    if kind in STRUCTURES:
        return f"(({kind}){{{', '.join(literal(of, numbers) for _, of in STRUCTURES[kind])}}})"
    if kind in WIDE:
        halves = [numbers.randint(0, 2**63 - 1) for _ in range(2)]
        return f"((({kind}){halves[0]} << 64) + {halves[1]})"
    if kind == EXTENDED:
        return repr(numbers.randint(-10**6, 10**6) / 64) + "L"
    if kind in ("float", "double"):
        return repr(numbers.randint(-10**6, 10**6) / 64) + ("F" if kind == "float" else "")
    if kind == "const char *":
        return '"' + "".join(numbers.choice("abcdefgh/_") for _ in range(numbers.randint(1, 40))) + '"'
    if kind == "color":
        return numbers.choice(["RED", "GREEN", "BLUE"])
    if kind == "void *":
        return f"(void *){numbers.randint(0, 2**64 - 1)}UL"
    bits = LIMITS[kind]
    number = numbers.randint(0 if bits < 0 else -2**bits, 2**abs(bits) - 1)
    return f"{number}{'UL' if kind == 'unsigned long' else ''}"


class Signature:
    """A function with generated parameters and result."""

    def __init__(self, number, numbers, is_aarch64):
        self.name = f"generated_{number}"
        self.is_aarch64 = is_aarch64
        self.is_kept = numbers.random() < 0.6  # otherwise the compiler may change the calling convention
        self.is_variadic = numbers.random() < 0.15
        kinds = [*SCALARS, *STRUCTURES, *WIDE, EXTENDED]
        self.result = numbers.choice([*kinds, "void"])
        self.kinds = [numbers.choice(kinds) for _ in range(numbers.randint(1, 11))]
        self.given = literal(self.result, numbers) if self.result != "void" else ""
        first = [literal(kind, numbers) for kind in self.kinds]
        # Some arguments are the same in each call, so that compilers may make them constants.
        self.calls = [[numbers.choice([given, literal(kind, numbers)]) for kind, given in zip(self.kinds, first)] +
                      ["7", "2.5"] * self.is_variadic for _ in range(3)]

    def show(self, name, kind, held=None):
        """Prints a value, or `held` under its name. Prints all digits of a long double, the x87's or a binary128."""
        form, what = ("%.36Lg" if self.is_aarch64 else "%.21Lg", "{}") if kind == EXTENDED else SCALARS[kind]
        return f'    printf("{self.name} %d {name} {form}\\n", calls, {what.format(held or name)});\n'

    def show_all(self, name, kind, held):
        """Prints a parameter or the result, field by field. The fields of a result are called return."""
        if kind in SCALARS or kind == EXTENDED:
            return self.show(name, kind, held)
        is_result = held == "result"
        fields = "return" if is_result else name
        # The text behind a pointer in a returned structure is not read.
        kinds = {"const char *": "void *"} if is_result else {}
        return "".join([*(self.show(f"{fields}.{field}", kinds.get(of, of), f"{held}.{field}") for field, of in STRUCTURES.get(kind, [])),
                        *(self.show(f"{fields}.{half}", of, what.format(held)) for half, of, what in WIDE.get(kind, []))])

    def source(self):
        parameters = ", ".join([*(f"{kind} a{i}" for i, kind in enumerate(self.kinds)), *["..."] * self.is_variadic])
        head = f"{'KEPT' if self.is_kept else 'static __attribute__((noinline))'} {self.result} {self.name}({parameters})"
        text = f"{head};\n{head}\n{{\n    static int calls;\n    calls++;\n"
        for index, kind in enumerate(self.kinds):
            text += self.show_all(f"a{index}", kind, f"a{index}")
        if self.result == "void":
            return text + "}\n"
        text += f"    {self.result} result = {self.given};\n"
        return text + self.show_all("result", self.result, "result") + "    return result;\n}\n"

    def stack_words(self):
        """Returns the first stack word of each parameter, or None if the parameter is in registers."""
        if self.is_aarch64:
            return self.stack_words_aarch64()
        general, vectors, stack, words = int(self.result == "large"), 0, 0, []
        for kind in self.kinds:
            classes = CLASSES.get(kind, "V" if kind in ("float", "double") else "G")
            if classes != "" and general + classes.count("G") <= 6 and vectors + classes.count("V") <= 8:
                general, vectors = general + classes.count("G"), vectors + classes.count("V")
                words.append(None)
                continue
            stack += stack % 2 if kind in WIDE or kind == EXTENDED else 0
            words.append(stack)
            stack += len(classes) or {"large": 3, EXTENDED: 2}[kind]
        return words

    def stack_words_aarch64(self):
        """Returns the same as stack_words for AArch64. Once a value does not fit into the registers, no later value
        of its class uses them."""
        taken, stack, words = {"G": 0, "V": 0}, 0, []
        for kind in self.kinds:
            classes = CLASSES_AARCH64.get(kind, "V" if kind in ("float", "double") else "G")
            of = classes[0]
            taken[of] += taken[of] % 2 if kind in WIDE else 0
            if taken[of] + len(classes) <= 8:
                taken[of] += len(classes)
                words.append(None)
                continue
            taken[of] = 8
            stack += stack % 2 if kind in WIDE or kind == EXTENDED else 0
            words.append(stack)
            stack += {"floats": 2, EXTENDED: 2}.get(kind, len(classes))
        return words

    def named(self):
        """Returns the names of the values, up to the limits of a function and of the stack."""
        names, behind = [], []  # names with their words on the stack, and the slots that they need
        for index, (kind, word) in enumerate(zip(self.kinds, self.stack_words())):
            at = 0
            parts = STRUCTURES.get(kind, [(half, of) for half, of, _ in WIDE.get(kind, [])])
            is_behind = kind == "large" and self.is_aarch64
            if is_behind:  # the parameter itself is not one of the values, but one of the names
                names.append(("", None, 0))
            for part, of in parts or [("", kind)]:
                size = SIZES.get(of, 8)
                at += -at % size
                of_it = (f"a{index}.{part}" if part else f"a{index}", word if is_behind or word is None else word + at // 8)
                (behind if is_behind else names).append((*of_it, 3 if kind == EXTENDED or (is_behind and at == 0) else int(not is_behind)))
                at += size
        returned = [*STRUCTURES.get(self.result, []), *WIDE.get(self.result, [])]
        names += [("result", None, 3 if self.result == EXTENDED else 1)] if not returned and self.result != "void" else []
        names += [(f"return.{part[0]}", None, 0 if number else 3) for number, part in enumerate(returned)]
        named, used, positions, has_room = set(), 0, 0, True
        for name, word, places in names + behind:
            positions += name != "result"
            if (word is not None and word >= STACK_WORDS) or positions > MOST_NAMED:
                continue
            has_room = used + places <= PLACES if places else has_room  # the first of the values that share a slot
            if has_room:
                used += places
                named.add(name)
        return named


def one_program(sojourn, compiler, level, numbers):
    is_emulated = "aarch64" in compiler
    signatures = [Signature(number, numbers, is_emulated) for number in range(FUNCTIONS)]
    source, program = sojourn.path("generated.c"), sojourn.path("generated")
    calls = "".join(f"    (void){one.name}({', '.join(given)});\n" for one in signatures for given in one.calls)
    with open(source, "w", encoding="utf-8") as file:
        file.write(HEAD + "".join(one.source() for one in signatures) + f"int main(void)\n{{\n{calls}}}\n")
    subprocess.run([*compiler.split(), f"-O{level}", "-g", "-w", source, "-o", program], check=True)
    done, found, database = record(sojourn, program, ["generated_*"])
    printed = {}
    for line in done.stdout.splitlines():
        name, number, value_name, value = line.split(" ", 3)
        printed[name, int(number), value_name] = value
    wrong = [(row, printed.get(row[:3])) for row in found if printed.get(row[:3]) != row[3]]
    check(not wrong, f"{compiler} -O{level}: recorded, printed: {wrong[:5]}")
    recorded = {row[:3] for row in found}
    unhooked = {row["name"] for row in sojourn.sql(database, "SELECT name FROM unhooked_functions")} if is_emulated else set()
    by_name = {one.name: one for one in signatures}
    def is_short_on_stack(of, value):
        index = int(value[1:].split(".")[0])
        return is_emulated and SIZES.get(of.kinds[index], 8) < 4 and of.stack_words()[index] is not None

    def is_told(name, value):
        of = by_name[name]
        # With optimization, clang does not locate structures that it splits at once, truth values, and on AArch64
        # short numbers on the stack.
        is_argument = value[0] == "a"
        kind = of.kinds[int(value[1:].split(".")[0])] if is_argument else of.result
        is_lost = is_argument and ("." in value or kind == "bool" or is_short_on_stack(of, value))
        if "clang" in compiler and is_emulated and level > 0 and not is_argument and of.result == "large":
            return False  # after writing the result, a function may end by a tail call, which is not a return
        # With optimization, no compiler locates a number in two registers.
        is_wide = is_argument and kind in WIDE
        if "clang" in compiler and any(kind in WIDE for kind in of.kinds):
            # an argument that does not fit into two free registers is unknown, and so are the arguments behind it
            return False
        if "clang" in compiler and is_emulated and not of.is_kept and "large" in of.kinds:
            return False  # clang locates it behind its first instructions only, as in optimized code
        return level == 0 or (of.is_kept and not is_wide and not ("clang" in compiler and is_lost))

    missing = [key for key in printed if key[0] not in unhooked and is_told(key[0], key[2]) and key not in recorded
               and key[2] in by_name[key[0]].named()]
    check(not missing, f"{compiler} -O{level}: not recorded: {missing[:5]}")
    return len(found), len(printed)


def test_generated(sojourn, compilers):
    numbers = random.Random(int(os.environ.get("SJ_SEED", "1")))
    functions = recorded = printed = 0
    cross = shutil.which("aarch64-linux-gnu-gcc")
    check(cross, "no compiler for AArch64")
    emulated = [(cross, (0,)), (f"{compilers[1]} --target=aarch64-linux-gnu", (2,))]
    for compiler, levels in [*((compiler, (0, 2)) for compiler in compilers), *emulated]:
        for level in levels if os.environ.get("SJ_LONG") != "1" else range(4):
            of_program = one_program(sojourn, compiler, level, numbers)
            functions, recorded, printed = functions + FUNCTIONS, recorded + of_program[0], printed + of_program[1]
    print(f"{functions} signatures: {recorded} values of {printed} printed ones, none of them another")


CROWDED = sample_text("values/crowded.c")


def test_crowded(sojourn):
    """Values that exceed a function's slots are reported as unsupported. Everything else is recorded."""
    program = sojourn.path("crowded")
    subprocess.run(["aarch64-linux-gnu-gcc", "-g", "-O1", "-x", "c", "-", "-o", program], input=CROWDED, text=True, check=True)
    _, found, database = record(sojourn, program, ["crowded"])
    states = {row["name"]: row["state"] for row in sojourn.sql(database, "SELECT name, state FROM value_types")}
    check(states == {**{name: "recorded" for name in [*"abcdef", "last"]}, "g": "unsupported", "": "unsupported"}, f"{states}")
    check({row[2]: row[3] for row in found} == {**{name: str(number) for number, name in enumerate("abcdef", 1)}, "last": "8"}, f"{found}")


PARTS = sample_text("values/parts.c")


def test_parts(sojourn):
    """If the compiler has moved the rare part of a function elsewhere, the function begins with its main part."""
    program = sojourn.path("parts")
    subprocess.run(["gcc", "-g", "-O2", "-x", "c", "-", "-o", program], input=PARTS, text=True, check=True)
    names = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    check("in_parts.cold" in names, f"it is in one part: {names}")
    done, found, _ = record(sojourn, program, ["in_parts*"])
    check({row[2:] for row in found} == {("number", "1"), ("why", "counted"), ("result", "2")}, f"{found}")
    check("no debug data" not in done.stderr, f"{done.stderr}")


def test(sojourn, arguments):
    compilers = [shutil.which("gcc"), shutil.which("clang") or shutil.which("clang-14")]
    check(all(compilers), f"compilers: {compilers}")
    test_generated(sojourn, compilers)
    test_crowded(sojourn)
    test_parts(sojourn)


if __name__ == "__main__":
    main(test)
