#!/usr/bin/env python3
"""Runs threads that exit or are cancelled, more threads than most programs have, children of every kind, signals on
every stack, coroutines, modules that are loaded and unloaded, and exceptions. Each program runs with all its
functions and those of every system library hooked. judge_life.py BUILD_FOLDER; SJ_LONG=1: also programs built by
clang, all their parts, many times"""
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from judging import IS_LONG, REPEATS, check_session, run_both, sizes
from sojourn_testing import EMULATOR, PATIENCE_S, check, children, main

LIFE = "threads crowd children signals storm stacks plugin".split()
OF_CLANG = LIFE if IS_LONG else ["signals", "stacks", "plugin"]


def total(sojourn, database, name):
    return sojourn.sql(
        database,
        "SELECT coalesce(sum(calls), 0) AS calls FROM function_stats JOIN functions USING (function_id) "
        f"WHERE name = '{name}'",
    )[0]["calls"]


def frames_of(pid):
    """Returns gdb's backtrace of the main thread of a process: functions, the innermost first."""
    done = subprocess.run(["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "bt"], capture_output=True,
                          text=True, timeout=PATIENCE_S, check=False, stdin=subprocess.DEVNULL)
    frames = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?([\w.]+)", done.stdout, re.M)
    check(frames, f"gdb shows no frames: {done.stdout} {done.stderr}")
    return frames


def debugger(sojourn, life):
    """gdb shows the same frames of a program that waits deep in its calls, recorded or not."""
    seen = []
    record = [sojourn.program, "record", "--quiet", "-o", sojourn.path("gdb.db"), "--"]
    for wrapper in ([], record):
        with subprocess.Popen([*wrapper, life, "nested"], stdout=subprocess.PIPE, text=True,
                              env=sojourn.environment) as process:
            check(process.stdout.readline() == "nested\n", "the program has not come to its place")
            pid = children(process.pid)[0] if wrapper else process.pid
            seen.append(frames_of(pid))
            os.kill(pid, signal.SIGTERM)
            process.wait(timeout=PATIENCE_S)
    check(seen[0] == seen[1], f"gdb shows {seen[1]}, not {seen[0]}")
    check(seen[1].count("life_nested") == 8 and "main" in seen[1], f"gdb shows {seen[1]}")
    print(f"gdb: {len(seen[1])} frames", flush=True)


def rust(sojourn, panics):
    """Panics unwind through Rust's own code and out of threads, with the standard library hooked."""
    database = sojourn.path("panics.db")
    masks = [(r"0x[0-9a-f]+", "ADDRESS"), (r"\(\d+\) panicked", "panicked")]
    plain = run_both(sojourn, "Rust panics", [panics], ("panics",), database, patterns=masks,
                     environment={"RUST_BACKTRACE": "1"})
    check(plain[0] == 101, f"panics ended with {plain[0]}")
    check_session(sojourn, database, 1)
    told = dict(re.findall(r"^calls (\w+) (\d+)$", plain[1], re.M))
    check(len(told) >= 3, f"the program told nothing: {plain[1]}")
    for name, calls in told.items():
        found = sojourn.sql(
            database, "SELECT coalesce(sum(calls), 0) AS calls, coalesce(sum(unwound), 0) AS unwound "
            f"FROM function_stats JOIN functions USING (function_id) WHERE name LIKE 'panics::{name}%'")[0]
        check(found["calls"] == int(calls), f"{name}: {found['calls']} calls, not {calls}")
        if name.startswith("unwound"):
            check(found["unwound"] == int(calls), f"{name}: {found['unwound']} unwound, not {calls}")
    os.unlink(database)


def twins(sojourn, plugin):
    """Returns the paths of a plugin and of a copy of it: one build under two paths."""
    os.makedirs(sojourn.path("twin"), exist_ok=True)
    return f"{plugin}:{shutil.copy(plugin, sojourn.path('twin'))}"


def aarch64(sojourn, folder):
    """Runs programs for AArch64 in the emulator: children that run other programs, stacks, modules that are loaded
    and unloaded, exceptions."""
    plugin = os.path.join(folder, "life_plugin.so")
    for words in (["life", "children"], ["life", "signals"], ["life", "stacks"],
                  ["life", "plugin", plugin], ["throws", "30"]):
        command = [os.path.join(folder, words[0]), *words[1:]]
        plain = subprocess.run([*EMULATOR, *command], capture_output=True, timeout=PATIENCE_S, check=False,
                               stdin=subprocess.DEVNULL)
        database = sojourn.path("emulated.db")
        done, _ = sojourn.record(command, database, ["--block-ms", "10000"], stdin=subprocess.DEVNULL)
        check(plain.returncode == done.returncode, f"{command} ended with {done.returncode}")
        check((plain.stdout, plain.stderr) == (done.stdout, done.stderr),
              f"{command} says {done.stdout} {done.stderr}, not {plain.stdout} {plain.stderr}")
        calls = check_session(sojourn, database, 1)
        print(f"aarch64 {words[0]} {words[1]}: same output and exit {plain.returncode}, {calls} calls", flush=True)
        os.unlink(database)


def test(sojourn, _):
    samples = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests/samples")
    rust(sojourn, os.path.join(samples, "panics"))
    aarch64(sojourn, os.path.join(samples, "aarch64-gcc-O2"))
    debugger(sojourn, os.path.join(samples, "gcc-O2/life"))
    for compiler in ("gcc", "clang"):
        folder = os.path.join(samples, f"{compiler}-O2")
        for part in (LIFE if compiler == "gcc" else OF_CLANG) * REPEATS:
            database = sojourn.path("life.db")
            words = [os.path.join(folder, "life"), part]
            if part == "plugin":
                words.append(twins(sojourn, os.path.join(folder, "life_plugin.so")))
            plain = run_both(sojourn, f"{compiler} {part}", words, ("life", "life_plugin.so"), database)
            check(plain[0] == 0 and plain[1], f"{compiler} {part} failed: {plain}")
            check_session(sojourn, database, 2 if part == "plugin" else 1)
            lost = sojourn.sql(database, "SELECT lost_calls FROM sessions")[0]["lost_calls"]
            if part == "plugin":
                check(total(sojourn, database, "plugin_step") + lost == 5050, "steps of the plugin")
                check(total(sojourn, database, "plugin_leap") + lost == 300, "leaps out of the plugin")
            if part == "crowd":
                threads = sojourn.sql(database, "SELECT count(*) AS n FROM threads")[0]["n"]
                check(threads == 401, f"{threads} threads, not 401")
            if part == "children":
                found = sojourn.sql(database, "SELECT count(*) AS n FROM processes WHERE "
                                    "command LIKE '%grandchild%'")[0]["n"]
                check(found == 10, f"{found} grandchildren joined, not 10")
            os.unlink(database)
        for rounds in sizes("500", "20000"):
            database = sojourn.path("throws.db")
            words = [os.path.join(folder, "throws"), rounds]
            plain = run_both(sojourn, f"{compiler} throws", words, ("throws", "libstdc++*", "libgcc_s*"), database)
            check(plain[0] == 42 and "terminated" in plain[1], f"throws ended with {plain}")
            check_session(sojourn, database, 3)
            os.unlink(database)


if __name__ == "__main__":
    main(test)
