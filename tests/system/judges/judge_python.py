#!/usr/bin/env python3
"""CPython's own tests pass, fail and skip the same with all functions of the interpreter and of its extension
modules hooked. judge_python.py BUILD_FOLDER [TEST...]

The default runs, in two processes, the tests that matter to a tracer: exceptions and frames that suspend, calls of C
by ctypes; threads, signals to threads, forks. SJ_LONG=1 runs the broad list, one process for each test, and the short
list 20 times. It uses profile mode, which hooks the program the same way but need not store hundreds of millions of
calls.

Some tests of CPython depend on the machine's load, so a test with a different outcome runs again. An outcome that
differs each time from each unhooked run is a change. A crash always fails the judge.
"""
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from judging import IS_LONG, REPEATS, check_session, options_of
from sojourn_testing import check, main

PYTHON = "/usr/bin/python3.11"
MODULES = ("python3.11", "*/lib-dynload/*.so")
DEFAULT = ["test_exceptions test_coroutines test_ctypes", "test_thread test_threadsignals test_fork1"]
SHORT = "test_exceptions test_generators test_thread test_threadsignals test_ctypes test_coroutines test_fork1 test_json"
LONG = SHORT + (
    " test_threading test_signal test_subprocess test_faulthandler test_gc test_asyncio test_io"
    " test_re test_pickle test_posix"
    " test_traceback test_sys test_decimal test_hashlib test_zlib test_bz2 test_lzma"
    " test_mmap test_select test_poll test_epoll test_curses test_readline test_tracemalloc test_struct"
    " test_array test_unicode test_list test_dict test_set test_descr test_pty test_fcntl test_resource"
    " test_socket test_ssl test_tempfile test_unittest test_os test_wait4 test_wait3 test_contextlib"
    " test_sys_settrace test_sys_setprofile test_setcomps test_atexit test_weakref test_memoryview"
    " test_xml_etree_c test_pyexpat test_sqlite3 test_httplib test_compile test_grammar test_float"
    " test_long test_call test_class test_context test_contextlib_async test_asyncgen test_queue"
    " test_threading_local test_threadedtempfile test_logging test_pdb test_bdb test_zipfile test_tarfile"
    " test_shutil test_selectors test_socketserver test_marshal test_copy test_itertools test_functools"
    " test_concurrent_futures test_multiprocessing_fork test_multiprocessing_forkserver"
    " test_multiprocessing_spawn test_multiprocessing_main_handling"
)
# These tests wait for ever unhooked, too: a virtual machine cannot dial itself by AF_VSOCK.
LEFT_OUT = {"test_socket": ["*VSOCK*"]}
if not IS_LONG:  # these tests make tens of millions of calls of the same functions
    LEFT_OUT["test_exceptions"] = ["*trashcan*", "*memory_error*"]
RUNS = 3  # runs before a difference counts
SKIPPED = re.compile(r"^(test\w* \([\w.]+\)).* \.\.\. .*?(skipped.*|expected failure)$")
FAILED = re.compile(r"^(FAIL|ERROR|UNEXPECTED SUCCESS): (\w+ \([\w.]+\))")
TOTAL = re.compile(r"\d+ tests? (OK|failed|skipped|altered)|Tests? result|Ran \d+ tests|OK|FAILED")


def outcomes(text):
    """Returns the failures, the skips with their reason, and the sums. Other output of the tests is ignored."""
    found = set()
    for line in text.split("\n"):
        for pattern in (SKIPPED, FAILED):
            match = pattern.match(line)
            if match:
                found.add((match[1], match[2]))
        if TOTAL.match(line):
            found.add(("total", re.sub(r" in [\d.]+s$", "", line)))
    return found


def run(sojourn, test, wrapper):
    """Runs a test, or several in one process. Returns their outcomes and the duration."""
    names = test.split()
    left_out = [word for name in names for pattern in LEFT_OUT.get(name, []) for word in ("--ignore", pattern)]
    command = [PYTHON, "-m", "test", "-v", "--timeout", "900", *left_out, *names]
    started = time.monotonic()
    done = subprocess.run([*wrapper, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, cwd=sojourn.folder, timeout=1800, check=False,
                          env=dict(sojourn.environment, PYTHONDONTWRITEBYTECODE="1"))
    text = done.stdout.decode("utf-8", "replace")
    check(0 <= done.returncode < 128, f"{test} crashed: {done.returncode}\n{text[-3000:]}")
    found = outcomes(text)
    check("total" in dict(found), f"{test} ran no tests:\n{text[-3000:]}")
    return found | {("exit", done.returncode)}, time.monotonic() - started


def one_test(sojourn, test):
    database = sojourn.path("python.db")
    mode = ["--mode", "profile"] if IS_LONG else []
    record = [sojourn.program, "record", "--quiet", "-o", database, *mode, *options_of(MODULES), "--"]
    plain, hooked, calls = [], [], 0
    while True:
        for seen, wrapper in ((plain, []), (hooked, record)):
            seen.append(run(sojourn, test, wrapper))
        calls += check_session(sojourn, database, 1)
        os.unlink(database)
        before, after = ([found for found, _ in seen] for seen in (plain, hooked))
        changed = (set.intersection(*before) - set.union(*after)
                   | set.intersection(*after) - set.union(*before))
        if not changed:
            break
        print(f"{test}, run {len(plain)}: {sorted(changed, key=str)}", flush=True)
        check(len(plain) < RUNS, f"{test} changed: {sorted(changed, key=str)}")
    ran = sum(int(count) for count in re.findall(r"Ran (\d+) tests", str(before[-1])))
    print(f"{test}: {ran} tests, {calls} calls, {plain[-1][1]:.0f} s, hooked "
          f"{hooked[-1][1]:.0f} s", flush=True)
    return ran


def test(sojourn, arguments):
    check(os.path.exists(PYTHON), f"{PYTHON} is missing: run .ci/packages test")
    if arguments:
        names = arguments
    else:
        names = LONG.split() + SHORT.split() * (REPEATS - 1) if IS_LONG else DEFAULT
    idle = 0
    for number, name in enumerate(names):
        print(f"{number + 1} of {len(names)}", end=" ", flush=True)
        idle += one_test(sojourn, name) == 0
    check(idle * 10 < len(names), f"{idle} of {len(names)} files were skipped as a whole")


if __name__ == "__main__":
    main(test)
