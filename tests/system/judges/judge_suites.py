#!/usr/bin/env python3
"""The tests of compilers' run-time libraries print the same and end the same hooked and unhooked. From Debian's
source packages: OCaml's tests of exceptions and errors. SJ_LONG=1 adds gcc's tests of C++ exceptions and
libstdc++'s of language support (built by gcc, and by clang with libc++), GNAT's, the Ada conformity suite, and
glibc's of threads. The judge names and counts the tests that do not build, and fails if too many do not. It ends
with the table of suites in tests/bench/RESULTS.md. judge_suites.py BUILD_FOLDER FOLDER_FOR_SOURCES [SUITE [TEST]]"""
import functools
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import typing

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import acats
from judging import IS_LONG, need, without_losses
from sojourn_testing import Failure, check, main

HERE = os.path.dirname(os.path.abspath(__file__))
DEBIAN_SOURCE = os.path.join(HERE, "..", "..", "bench", "debian_source")
LIMIT_S = 300
# A test whose hooked output differs runs unhooked up to this often, to see whether it prints that by itself. Some
# tests depend on the order of threads.
ASKED_AGAIN = 20
MODES = [[], ["--libs"], ["--library-calls"], ["--profile"]] if IS_LONG else [[]]
FEW_MODES = [[], ["--libs", "--library-calls"]]
GCC = ["gcc/testsuite/g++.dg/eh", "gcc/testsuite/gnat.dg", "libstdc++-v3/testsuite/18_support",
       "libstdc++-v3/testsuite/util", "gcc/testsuite/ada/acats"]
# These texts differ from run to run.
VARIES = [(r"0x[0-9a-f]+", "ADDRESS"), (r"\b\d+\.\d+s\b", "TIME"),
          (r"\d\d-\d\d-\d\d \d\d:\d\d:\d\d", "DATE")]


def unpack(archive, into, members):
    subprocess.run(["tar", "-xf", archive, "-C", into, "--wildcards", *members], check=True)


def gcc_tree(folder):
    found = glob.glob(os.path.join(folder, "gcc-*", GCC[-1]))
    if not found:
        subprocess.run([DEBIAN_SOURCE, folder, "gcc-12"], check=True)
        unpack(glob.glob(os.path.join(folder, "source", "gcc-12_*.orig.tar.gz"))[0], folder,
               ["*/gcc-*-dfsg.tar.xz"])
        inner = glob.glob(os.path.join(folder, "gcc-12-*", "gcc-*-dfsg.tar.xz"))[0]
        unpack(inner, folder, [f"*/{part}/*" for part in GCC])
        found = glob.glob(os.path.join(folder, "gcc-*", GCC[-1]))
    return found[0][:-len(GCC[-1])]


def ocaml_tree(folder):
    found = glob.glob(os.path.join(folder, "ocaml-*", "testsuite"))
    if not found:
        subprocess.run([DEBIAN_SOURCE, folder, "ocaml"], check=True)
        unpack(glob.glob(os.path.join(folder, "source", "ocaml_*.orig.tar.*"))[0], folder,
               ["*/testsuite/*"])
        found = glob.glob(os.path.join(folder, "ocaml-*", "testsuite"))
    return found[0]


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def directed(text, name):
    """Returns the words of a DejaGnu directive. A directive that is for other targets only counts as missing."""
    words = []
    for match in re.finditer(r"\{ *dg-%s +\"([^\"]*)\" *\}" % name, text):
        words += match.group(1).split()
    return words


def cxx_tests(folder):
    tree = gcc_tree(folder)
    library = os.path.join(tree, "libstdc++-v3", "testsuite")
    tests = []
    for path in sorted(glob.glob(os.path.join(tree, GCC[0], "*.C")) +
                       glob.glob(os.path.join(library, "18_support", "**", "*.cc"), recursive=True)):
        text = read(path)
        # g++'s suite only compiles a test without a directive, libstdc++'s suite runs it.
        if "dg-do run" not in text and ("dg-do" in text or "g++.dg" in path):
            continue
        tests.append((path, ["g++", "-w", "-O2", "-g", "-pthread", *directed(text, "options"),
                             *directed(text, "additional-options"), "-I", os.path.join(library, "util"),
                             "-I", os.path.dirname(path), path, "-o"]))
    return tests


def libcxx_tests(folder):
    return [(path, ["clang++", "-stdlib=libc++", *command[1:]]) for path, command in cxx_tests(folder)]


def ada_tests(folder):
    tests = []
    for path in sorted(glob.glob(os.path.join(gcc_tree(folder), GCC[1], "*.adb"))):
        text = read(path)
        if "dg-do run" in text:
            tests.append((path, ["gnatmake", "-q", "-f", "-gnatws", *directed(text, "options"), path, "-o"]))
    return tests


def acats_tests(folder):
    """Takes every fourth test of each chapter, because all of them take an hour."""
    return acats.tests(os.path.join(gcc_tree(folder), GCC[-1]), 4)


OCAML_SHORT = ["match-exception/nested_handlers", "match-exception/exception_propagation",
               "runtime-errors/syserror"]
OCAML_LONG = [part + "/*" for part in
              ("match-exception", "runtime-errors", "backtrace", "basic", "basic-more", "callback",
               "gc-roots", "lib-systhreads", "lib-threads", "misc", "regression", "statmemprof",
               "asmcomp", "lib-unix")]


def ocaml_tests(folder):
    tree = ocaml_tree(folder)
    tests = []
    for part in OCAML_LONG if IS_LONG else OCAML_SHORT:
        for path in sorted(glob.glob(os.path.join(tree, "tests", part + ".ml"))):
            tests.append((path, ["sh", "-c", 'cp "$0" . && ocamlopt -w -a -g -I +threads unix.cmxa threads.cmxa '
                                 'str.cmxa "$(basename "$0")" -o "$1"', path]))
    return tests


def glibc_tree(folder):
    found = glob.glob(os.path.join(folder, "glibc-*", "nptl"))
    if not found:
        subprocess.run([DEBIAN_SOURCE, folder, "glibc"], check=True)
        unpack(glob.glob(os.path.join(folder, "source", "glibc_*.orig.tar.*"))[0], folder,
               ["*/nptl/*", "*/support/*", "*/sysdeps/pthread/*", "*/test-skeleton.c"])
        found = glob.glob(os.path.join(folder, "glibc-*", "nptl"))
    return os.path.dirname(found[0])


# The paths at which glibc's tests look for their files. Nothing exists there.
GLIBC_PATHS = [f'-D{name}_PATH="/nowhere"' for name in
               ("OBJDIR", "SRCDIR", "OBJDIR_ELF_LDSO", "INSTDIR", "LIBDIR", "SLIBDIR", "BINDIR", "SBINDIR",
                "ROOTSBINDIR", "SYSCONFDIR", "COMPLOCALEDIR", "ROOTDIR", "RUNPATHDIR")]


# These tests differ for known reasons. LIMITS in sojourn-record(1) describes the first two.
KNOWN = {"tst-create-detached.c": "the test has 800 MB of address space, less than the recorder reserves",
         "tst-minstack-exit.c": "the test's threads have the smallest stack that the system allows",
         "tst-robust-fork.c": "the test starts over 16,000 processes and ends itself after 100 seconds"}


def glibc_support(tree, command):
    """Builds the library of glibc's tests from the files that build without glibc itself."""
    objects = os.path.join(tree, "objects")
    os.makedirs(objects, exist_ok=True)
    for path in glob.glob(os.path.join(tree, "support", "*.c")):
        name = os.path.basename(path)[:-2]
        if not re.match(r"(tst|shell|echo|true|test-run|links)-|.*-main$", name):
            subprocess.run([*command, *GLIBC_PATHS, "-DTIMEOUTFACTOR=1", "-c", path, "-o",
                            os.path.join(objects, name + ".o")], capture_output=True, check=False)
    library = os.path.join(tree, "libsupport.a")
    subprocess.run(["ar", "rcs", library, *glob.glob(os.path.join(objects, "*.o"))], check=True)
    return library


def glibc_tests(folder):
    tree = glibc_tree(folder)
    command = ["gcc", "-w", "-O2", "-g", "-D_GNU_SOURCE"]
    for part in ("support", "", "nptl", "sysdeps/pthread"):
        command += ["-I", os.path.join(tree, part)]
    library = glibc_support(tree, command)
    return [(path, [*command, path, library, "-pthread", "-ldl", "-lrt", "-lm", "-o"])
            for part in ("nptl", "sysdeps/pthread")
            for path in sorted(glob.glob(os.path.join(tree, part, "tst-*.c")))]


class Suite(typing.NamedTuple):
    title: str
    package: str                 # Debian's source package
    tests: typing.Callable
    least_short: int  # the least number of tests that must build; 0: the form does not run this suite
    least_long: int
    modes: list


SUITES = {
    "ocaml": Suite("OCaml: exceptions, errors, threads, callbacks", "ocaml", ocaml_tests, 3, 60, MODES),
    "c++": Suite("g++.dg/eh and libstdc++ 18_support", "gcc-12", cxx_tests, 0, 70, MODES),
    "libc++": Suite("the same tests with clang and libc++", "gcc-12", libcxx_tests, 0, 50, FEW_MODES),
    "ada": Suite("gnat.dg", "gcc-12", ada_tests, 0, 200, MODES),
    "acats": Suite("ACATS, every fourth test of each chapter", "gcc-12", acats_tests, 0, 500, FEW_MODES),
    "glibc": Suite("glibc's tests of threads", "glibc", glibc_tests, 0, 250, MODES),
}


class Outcome:
    """Holds the names of a suite's tests, by what happened to them."""

    def __init__(self):
        self.tests = self.runs = 0
        self.not_built, self.varying, self.same, self.known, self.differing = [], [], [], [], []


def build(sojourn, path, command):
    """Returns the program's path, or None if it does not build."""
    folder = sojourn.path("build")
    subprocess.run(["rm", "-rf", folder], check=True)
    os.mkdir(folder)
    program = os.path.join(folder, "test")
    try:
        made = subprocess.run([*command, program], cwd=folder, capture_output=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return None
    return program if made.returncode == 0 and os.path.exists(program) else None


def run(sojourn, command, with_output=True):
    """Returns how a program ends and what it prints, without text that varies. A hang is an outcome, too."""
    done = subprocess.Popen(command, cwd=sojourn.path("build"), env=sojourn.environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        output, errors = done.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(done.pid, signal.SIGKILL)
        done.communicate()
        shutil.rmtree(sojourn.path("state"), ignore_errors=True)  # left by the killed recorder
        return "hangs"
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    if not with_output:
        return f"exit {code}"
    text = output.decode("utf-8", "replace") + "\n--\n" + without_losses(
        errors.decode("utf-8", "replace"))
    for pattern, replacement in VARIES:
        text = re.sub(pattern, replacement, text)
    return f"exit {code}\n{text}"


def says_so_too(said, program, hooked):
    return any(said([program]) == hooked for _ in range(ASKED_AGAIN))


def judge_test(sojourn, said, path, program, modes):
    """Counts the ways of recording in which a program prints something else than unhooked. Returns None if its
    unhooked output varies."""
    plain = said([program])
    if plain == "hangs" or plain != said([program]):
        return None
    differing = 0
    for mode in modes:
        hooked = said([sojourn.program, "record", "-q", "-o", sojourn.path("suite.db"), "--max-bytes", "0",
                       "--block-ms", "10000", *mode, "--", program])
        for left in glob.glob(sojourn.path("suite.db*")):
            os.remove(left)
        if hooked != plain and not says_so_too(said, program, hooked):
            differing += 1
            print(f"  {os.path.basename(path)} {' '.join(mode)}: plain {plain[:300]!r}, hooked {hooked[:300]!r}",
                  flush=True)
    return differing


def judge(sojourn, suite, only):
    # Threads print in any order, so tests of threads are compared by their exit code.
    said = functools.partial(run, sojourn, with_output=suite.package != "glibc")
    outcome = Outcome()
    for path, command in suite.tests(sojourn.sources):
        if only and only not in path:
            continue
        name = os.path.basename(path)
        outcome.tests += 1
        program = build(sojourn, path, command)
        if program is None:
            outcome.not_built.append(name)
            continue
        differing = judge_test(sojourn, said, path, program, suite.modes)
        if differing is None:
            outcome.varying.append(name)
            continue
        outcome.runs += len(suite.modes)
        (outcome.same if differing == 0 else outcome.known if name in KNOWN else outcome.differing).append(name)
    tell(suite, outcome)
    least = 1 if only else suite.least_long if IS_LONG else suite.least_short
    built = outcome.tests - len(outcome.not_built)
    check(built >= least, f"{suite.title}: only {built} tests build")
    return outcome


def tell(suite, outcome):
    print(f"{suite.title}:")
    for what, names in (("do not build", outcome.not_built), ("do not say the same twice unhooked", outcome.varying),
                        ("differ", outcome.differing)):
        if names:
            print(f"  {len(names)} {what}: {' '.join(names)}")
    for name in outcome.known:
        print(f"  {name} differs: {KNOWN[name]}", flush=True)


def version(sojourn, package):
    names = glob.glob(os.path.join(sojourn.sources, "source", package + "_*.dsc"))
    return os.path.basename(names[0])[len(package) + 1:-len(".dsc")]


def table(sojourn, outcomes):
    print("| Suite | Debian source | Tests | Built | Same twice unhooked | Hooked runs | All runs as unhooked | "
          "Differ for a known reason | Differ |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for suite, o in outcomes:
        built = o.tests - len(o.not_built)
        print(f"| {suite.title} | {suite.package} {version(sojourn, suite.package)} | {o.tests} | {built} | "
              f"{built - len(o.varying)} | {o.runs} | {len(o.same)} | {len(o.known)} | {len(o.differing)} |")


def test(sojourn, arguments):
    need("ocamlopt", *(["g++", "gnatmake", "gnatchop", "clang++"] if IS_LONG else []))
    sojourn.sources = os.path.abspath(arguments[0])
    os.makedirs(sojourn.sources, exist_ok=True)
    names = arguments[1:2] or [name for name in SUITES if IS_LONG or SUITES[name].least_short != 0]
    only = arguments[2] if len(arguments) > 2 else ""
    outcomes = [(SUITES[name], judge(sojourn, SUITES[name], only)) for name in names]
    table(sojourn, outcomes)
    differing = sum(len(outcome.differing) for _, outcome in outcomes)
    if differing != 0:
        raise Failure(f"{differing} tests say something else hooked than unhooked")


if __name__ == "__main__":
    main(test)
