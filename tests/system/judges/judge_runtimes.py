#!/usr/bin/env python3
"""java, node, php, ruby and perl run the programs beside this file with all functions of their interpreters hooked.
Output, exit status and accounts are as without hooks. java uses the JVM's first compiler alone. SJ_LONG=1 repeats
them with more work, runs java with both compilers, and runs perl's own tests of its core, whose output must not
change. judge_runtimes.py BUILD_FOLDER [NAME]"""
import glob
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from judging import IS_LONG, check_session, need, options_of, run_both, sizes
from sojourn_testing import PATIENCE_S, check, main

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
FIRST_COMPILER = [] if IS_LONG else ["-XX:TieredStopAtLevel=1"]
# Each entry: name, command, modules.
RUNTIMES = [("java", ["java", *FIRST_COMPILER, "-Xmx128m", "-cp", ".", "Judge"], ["libjvm.so", "libjava.so"]),
            ("node", ["node", os.path.join(PROGRAMS, "judge.js")], ["node"]),
            ("php", ["php", os.path.join(PROGRAMS, "judge.php")], ["php*"]),
            ("ruby", ["ruby", os.path.join(PROGRAMS, "judge.rb")], ["ruby*", "libruby*"]),
            ("perl", ["perl", os.path.join(PROGRAMS, "judge.pl")], ["perl"])]
# The folders of perl's sources whose tests do not need a perl built beside them.
PERL_TESTS = ["base", "cmd", "op", "re", "uni", "io", "lib", "mro"]
RUNS = 3  # runs before a difference counts


def one_program(sojourn, name, command, modules, size):
    database = sojourn.path("runtime.db")
    ran = run_both(sojourn, name, [*command, str(size)], modules, database, cwd=sojourn.folder)
    check(ran[0] == 3, f"{name} ended with {ran[0]}: {ran[2]}")
    print(f"{name}: {check_session(sojourn, database, len(modules))} calls", flush=True)
    os.unlink(database)


def perl_sources(build):
    """Returns Debian's sources of its perl, unpacked but not built."""
    folder = os.path.join(build, "subjects")
    builder = os.path.join(PROGRAMS, "..", "..", "..", "bench", "build_subjects")
    subprocess.run([builder, folder, "perl"], check=True)
    return os.path.join(folder, "perl-source", "t")


def run_perl_test(sojourn, folder, file, wrapper):
    done = subprocess.run([*wrapper, "perl", file], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=4 * PATIENCE_S, check=False,
                          env=dict(sojourn.environment, PERL_CORE="1"))
    verdicts = [line.split(b" - ")[0] for line in done.stdout.split(b"\n") if line.startswith((b"ok", b"not ok", b"1.."))]
    return done.returncode, tuple(verdicts)


def one_perl_test(sojourn, folder, file):
    """Checks that the verdicts of a test that never vary unhooked are the same hooked."""
    database = sojourn.path("perl.db")
    record = [sojourn.program, "record", "--quiet", "-o", database, "--mode", "profile",
              *options_of(["perl"]), "--"]
    plain, hooked = set(), set()
    for _ in range(RUNS):
        plain.add(run_perl_test(sojourn, folder, file, []))
        hooked.add(run_perl_test(sojourn, folder, file, record))
        check_session(sojourn, database, 1)
        os.unlink(database)
        if plain & hooked:
            return len(next(iter(plain & hooked))[1])
    check(len(plain) > 1, f"{file} changed: unhooked {plain}, hooked {hooked}")
    print(f"{file}: differs from run to run, unhooked, too", flush=True)
    return 0


def perl_tests(sojourn, build):
    folder = perl_sources(build)
    files = sorted(file for part in PERL_TESTS for file in glob.glob(f"{part}/*.t", root_dir=folder))
    check(len(files) > 250, f"only {len(files)} tests in {folder}")
    verdicts = sum(one_perl_test(sojourn, folder, file) for file in files)
    check(verdicts > 10000, f"only {verdicts} verdicts")
    print(f"perl's tests: {len(files)} files, {verdicts} verdicts", flush=True)


def test(sojourn, arguments):
    wanted = [each for each in RUNTIMES if not arguments or each[0] == arguments[0]]
    need("javac", *(name for name, _, _ in wanted))
    subprocess.run(["javac", "-d", sojourn.folder, os.path.join(PROGRAMS, "Judge.java")], check=True)
    for size in sizes(300, 100000):
        for name, command, modules in wanted:
            one_program(sojourn, name, command, modules, size)
    if IS_LONG and (not arguments or arguments[0] in ("perl", "perl_tests")):
        perl_tests(sojourn, os.path.dirname(os.path.dirname(sojourn.program)))


if __name__ == "__main__":
    main(test)
