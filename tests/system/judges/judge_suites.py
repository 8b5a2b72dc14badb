#!/usr/bin/env python3
"""The tests of compilers' run-time libraries say the same hooked as unhooked: what they print, and
how they end. From Debian's source packages: OCaml's tests of exceptions and errors; with SJ_LONG=1
also gcc's of C++ exceptions, libstdc++'s of language support, GNAT's, and glibc's of threads. A test
that does not build by itself is passed over; too few that do fail the judge.
judge_suites.py BUILD_FOLDER FOLDER_FOR_SOURCES [SUITE [TEST]]"""
import functools
import glob
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from judging import IS_LONG, need, without_losses
from sojourn_testing import Failure, check, main

HERE = os.path.dirname(os.path.abspath(__file__))
DEBIAN_SOURCE = os.path.join(HERE, "..", "..", "bench", "debian_source")
LIMIT_S = 300
# So often a test is asked whether it says by itself, too, what it said hooked: some depend on who comes first.
ASKED_AGAIN = 20
MODES = [[], ["--libs"], ["--library-calls"], ["--profile"]] if IS_LONG else [[]]
GCC = ["gcc/testsuite/g++.dg/eh", "gcc/testsuite/gnat.dg", "libstdc++-v3/testsuite/18_support",
       "libstdc++-v3/testsuite/util"]
# What does not say the same twice: addresses, process numbers, times.
VARIES = [(r"0x[0-9a-f]+", "ADDRESS"), (r"\b\d+\.\d+s\b", "TIME")]


def unpack(archive, into, members):
    subprocess.run(["tar", "-xf", archive, "-C", into, "--wildcards", *members], check=True)


def gcc_tree(folder):
    found = glob.glob(os.path.join(folder, "gcc-*", "libstdc++-v3"))
    if not found:
        subprocess.run([DEBIAN_SOURCE, folder, "gcc-12"], check=True)
        unpack(glob.glob(os.path.join(folder, "source", "gcc-12_*.orig.tar.gz"))[0], folder,
               ["*/gcc-*-dfsg.tar.xz"])
        inner = glob.glob(os.path.join(folder, "gcc-12-*", "gcc-*-dfsg.tar.xz"))[0]
        unpack(inner, folder, [f"*/{part}/*" for part in GCC])
        found = glob.glob(os.path.join(folder, "gcc-*", "libstdc++-v3"))
    return os.path.dirname(found[0])


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
    """The words of a DejaGnu directive; those of one for other targets count as none."""
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
        # What g++'s tests do not say they only compile; libstdc++'s run.
        if "dg-do run" not in text and ("dg-do" in text or "g++.dg" in path):
            continue
        tests.append((path, ["g++", "-w", "-O2", "-g", "-pthread", *directed(text, "options"),
                             *directed(text, "additional-options"), "-I", os.path.join(library, "util"),
                             "-I", os.path.dirname(path), path, "-o"]))
    return tests


def ada_tests(folder):
    tests = []
    for path in sorted(glob.glob(os.path.join(gcc_tree(folder), GCC[1], "*.adb"))):
        text = read(path)
        if "dg-do run" in text:
            tests.append((path, ["gnatmake", "-q", "-f", "-gnatws", *directed(text, "options"), path, "-o"]))
    return tests


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


# Where glibc's tests find their files: nowhere.
GLIBC_PATHS = [f'-D{name}_PATH="/nowhere"' for name in
               ("OBJDIR", "SRCDIR", "OBJDIR_ELF_LDSO", "INSTDIR", "LIBDIR", "SLIBDIR", "BINDIR", "SBINDIR",
                "ROOTSBINDIR", "SYSCONFDIR", "COMPLOCALEDIR", "ROOTDIR", "RUNPATHDIR")]


# See LIMITS in sojourn-record(1): one has 800 MB of address space, one the smallest stack there is.
BEYOND_LIMITS = ("tst-create-detached.c", "tst-minstack-exit.c")


def glibc_support(tree, command):
    """The library of glibc's tests, of those files that build without glibc itself."""
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
            for path in sorted(glob.glob(os.path.join(tree, part, "tst-*.c")))
            if os.path.basename(path) not in BEYOND_LIMITS]


# The tests of a suite, and how many have to build at least, in the short and the long form.
SUITES = {"ocaml": (ocaml_tests, 3, 60), "c++": (cxx_tests, 0, 70), "ada": (ada_tests, 0, 200),
          "glibc": (glibc_tests, 0, 250)}


def build(sojourn, path, command):
    """The program's path, or None where it does not build."""
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
    """What a program does, without what varies; a hang is an outcome as well."""
    done = subprocess.Popen(command, cwd=sojourn.path("build"), env=sojourn.environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        output, errors = done.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(done.pid, signal.SIGKILL)
        done.communicate()
        shutil.rmtree(sojourn.path("state"), ignore_errors=True) # of the killed recorder
        return "hangs"
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    if not with_output:
        return f"exit {code}"
    text = output.decode("utf-8", "replace") + "\n--\n" + without_losses(
        errors.decode("utf-8", "replace"))
    for pattern, replacement in VARIES:
        text = re.sub(pattern, replacement, text)
    return f"exit {code}\n{text}"


def judge(sojourn, suite, only):
    make_tests, least_short, least_long = SUITES[suite]
    # Threads print in any order, and tests of them tell by their exit code.
    said = functools.partial(run, sojourn, with_output=suite != "glibc")
    built = differing = 0
    for path, command in make_tests(sojourn.sources):
        if only and only not in path:
            continue
        program = build(sojourn, path, command)
        if program is None:
            continue
        built += 1
        plain = said([program])
        if plain == "hangs" or plain != said([program]):
            continue # it does not say the same twice by itself
        for mode in MODES:
            hooked = said([sojourn.program, "record", "-q", "-o", sojourn.path("suite.db"), "--max-bytes", "0",
                           "--block-ms", "10000", *mode, "--", program])
            for left in glob.glob(sojourn.path("suite.db*")):
                os.remove(left)
            if hooked != plain and not any(said([program]) == hooked for _ in range(ASKED_AGAIN)):
                differing += 1
                print(f"  {os.path.basename(path)} {' '.join(mode)}: plain {plain[:300]!r}, hooked {hooked[:300]!r}")
    least = 1 if only else least_long if IS_LONG else least_short
    print(f"{suite}: {built} tests built, {differing} differ")
    check(built >= least, f"{suite}: only {built} tests build")
    return differing


def test(sojourn, arguments):
    need("ocamlopt", *(["g++", "gnatmake"] if IS_LONG else []))
    sojourn.sources = os.path.abspath(arguments[0])
    os.makedirs(sojourn.sources, exist_ok=True)
    suites = arguments[1:2] or [name for name in SUITES if IS_LONG or SUITES[name][1] != 0]
    differing = sum(judge(sojourn, suite, arguments[2] if len(arguments) > 2 else "") for suite in suites)
    if differing != 0:
        raise Failure(f"{differing} tests say something else hooked than unhooked")


if __name__ == "__main__":
    main(test)
