#!/usr/bin/env python3
"""CPython's own tests pass, fail and skip with all functions of the interpreter and of its extension
modules hooked as they do without. judge_python.py BUILD_FOLDER; SJ_LONG=1 runs the broad list."""
import os
import re

from judging import check_session, options_of
from sojourn_testing import check, main
import subprocess

PYTHON = "/usr/bin/python3.11"
MODULES = ("python3.11", "*/lib-dynload/*.so")
SHORT = "test_exceptions test_generators test_thread test_threadsignals test_ctypes test_coroutines test_fork1 test_json"
LONG = SHORT + (
    " test_threading test_signal test_subprocess test_faulthandler test_gc test_asyncio test_io"
    " test_concurrent_futures test_multiprocessing_fork test_re test_pickle test_posix"
    " test_traceback test_sys test_capi test_gdb test_decimal test_hashlib test_zlib test_bz2 test_lzma"
    " test_mmap test_select test_poll test_epoll test_curses test_readline test_tracemalloc test_struct"
    " test_array test_unicode test_list test_dict test_set test_descr test_pty test_fcntl test_resource"
    " test_socket test_os test_wait4 test_wait3 test_contextlib test_sys_settrace test_sys_setprofile"
    " test_setcomps test_atexit test_weakref test_memoryview test_ctypes test_xml_etree_c test_pyexpat"
)
VERDICT = re.compile(r"^(test\w* \([\w.]+\)).* \.\.\. .*?(ok|FAIL|ERROR|skipped.*|expected failure)?$")
SUMMARY = re.compile(r"\d+ tests? (OK|failed|skipped|altered)|Tests? result|Ran \d+ tests|OK|FAILED")


def verdicts(text):
    """Outcome of each test; what tests print in between is theirs."""
    found = set()
    for line in text.split("\n"):
        match = VERDICT.match(line)
        if match:
            found.add((match[1], match[2]))
    return found


def totals(text):
    lines = (re.sub(r" in [\d.]+s$", "", line) for line in text.split("\n"))
    return [line for line in lines if SUMMARY.match(line)]


def one_test(sojourn, test):
    command = [PYTHON, "-m", "test", "-v", "--timeout", "900", test]
    environment = dict(sojourn.environment, PYTHONDONTWRITEBYTECODE="1")
    database = sojourn.path(test + ".db")
    record = [sojourn.program, "record", "--quiet", "-o", database, *options_of(MODULES), "--"]
    runs = [
        subprocess.run([*wrapper, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, env=environment, cwd=sojourn.folder, timeout=1800,
                       check=False)
        for wrapper in ([], record)
    ]
    plain, hooked = (run.stdout.decode("utf-8", "replace") for run in runs)
    check(runs[0].returncode == runs[1].returncode,
          f"{test} ended with {runs[1].returncode}, unhooked with {runs[0].returncode}:\n{hooked[-3000:]}")
    different = verdicts(plain) ^ verdicts(hooked)
    check(not different, f"{test}: {sorted(different, key=str)}")
    check(totals(plain) == totals(hooked), f"{test}: {totals(plain)} became {totals(hooked)}")
    check(len(verdicts(plain)) > 0, f"{test} ran no tests")
    calls = check_session(sojourn, database, 1)
    print(f"{test}: {len(verdicts(plain))} tests, exit {runs[0].returncode}, {calls} calls", flush=True)
    os.unlink(database)


def test(sojourn, arguments):
    check(os.path.exists(PYTHON), f"{PYTHON} is missing: run .ci/packages test")
    names = arguments or (LONG if os.environ.get("SJ_LONG") else SHORT).split()
    for name in names:
        one_test(sojourn, name)


if __name__ == "__main__":
    main(test)
