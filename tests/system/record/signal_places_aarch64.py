#!/usr/bin/env python3
"""Does the same as system.signal_places for AArch64, in the emulator, with the same programs and output.
signal_places_aarch64.py BUILD_FOLDER SAMPLES"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import EMULATOR, PATIENCE_S, check, main, wait_for

TINY = ["--function", "leaf", "--function", "middle"]
SITUATIONS = (("signal_places", "step", []), ("signal_places", "raw", ["--clock", "adaptive", *TINY]),
              ("signal_places", "raw", ["--value", "leaf(int)", *TINY]), ("signal_places_iterates", "raw", TINY),
              ("signal_places", "marked", ["--value", "leaf(long)", "--function", "leaf"]),
              ("signal_places", "turns", []), ("signal_places", "fault", []), ("signal_places", "fault", ["--zombies", "heap"]))


def test_places(sojourn, samples):
    """Checks what handlers see, where they redirect threads to, and what unwinders find, as on x86-64."""
    for name, word, options in SITUATIONS:
        wanted = subprocess.run([os.path.join(samples, "signal_places"), word], capture_output=True, check=False)
        done, summary = sojourn.record([os.path.join(samples, "emulated", name), word], sojourn.path("places.db"), options)
        check((done.returncode, done.stdout) == (0, wanted.stdout), f"{name} {word} {options}: {done}, not {wanted.stdout}")
        check(summary["calls"] > 0, f"{name} {word} {options}: {summary}")


def test_thrown(sojourn, samples):
    """Handlers of faults throw exceptions. All calls are stored or counted."""
    command = [os.path.join(samples, "emulated", "handlers_that_throw")]
    plain = subprocess.run([*EMULATOR, *command], capture_output=True, timeout=PATIENCE_S, check=False)
    for options in ([], ["--clock", "adaptive"]):
        done, summary = sojourn.record(command, sojourn.path("thrown.db"), options)
        check((done.returncode, done.stdout) == (plain.returncode, plain.stdout), f"{options}: {done}, not {plain}")
        check(summary["lost_calls"] == 0, f"{options}: {summary}")


def test_ends(sojourn, samples):
    """If the values of a call need more stack than there is, the address of the fault is just below the caller's
    stack frame."""
    policy, database = sojourn.path("values.json"), sojourn.path("ends.db")
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": [{"name": "kept", "function": "leaf", "argument": 1, "as": "long"}]}, file)
    done, _ = sojourn.record([os.path.join(samples, "emulated/signal_places"), "ends"], database, ["--policy", policy])
    check((done.returncode, done.stdout) == (0, b"ends: called 1, outside 0, elsewhere 0\n"), f"{done}")
    kept = sojourn.sql(database, "SELECT count(*) AS kept FROM arguments")[0]["kept"]
    check(0 < kept < 81, f"{kept} values: no stack ended")


def test_first_call(sojourn, samples):
    """The first recorded call of a thread reaches the end of its stack. No later call is lost, whether values are
    recorded, calls may be counted, or neither."""
    for options in ([], ["--value", "leaf(long)"], ["--clock", "adaptive"]):
        database = sojourn.path("first_call.db")
        done, summary = sojourn.record([os.path.join(samples, "emulated/signal_places"), "ends"], database,
                                       ["--function", "leaf", *options])
        check((done.returncode, done.stdout) == (0, b"ends: called 1, outside 0, elsewhere 0\n"), f"{options}: {done}")
        check(summary["calls"] > 0 and summary["lost_calls"] == 0, f"{options}: {summary}")


def debug(sojourn, program, commands):
    """Records a program that the emulator's debugger controls. Returns the functions of each stack that gdb shows."""
    socket = sojourn.path("gdb.socket")
    script = ["set debuginfod enabled off", "set sysroot /usr/aarch64-linux-gnu", "set pagination off",
              f"set solib-search-path {os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), 'lib')}",
              f"target remote {socket}", *commands, "kill"]
    with subprocess.Popen([sojourn.program, "record", "-q", "-o", sojourn.path("gdb.db"), "--", program],
                          env=dict(sojourn.environment, QEMU_GDB=socket), stdin=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as recorder:
        wait_for("the emulator", lambda: os.path.exists(socket))
        words = [word for line in script for word in ("-ex", line)]
        done = subprocess.run(["gdb-multiarch", "-q", "-batch", "-nx", program, *words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        recorder.wait(PATIENCE_S)
    stacks = []
    for number, function in re.findall(r"^#(\d+) +(?:0x[0-9a-f]+ in )?(<[^>]+>|\S+)", done.stdout, re.M):
        if number == "0":
            stacks.append([])
        stacks[-1].append(function)
    return stacks, done


def test_debugger(sojourn, samples):
    """gdb shows the program's functions behind a stub: when the stub has called the recorder, and at each instruction."""
    steps = ["stepi", "backtrace"] * 60
    stacks, done = debug(sojourn, os.path.join(samples, "aarch64-gcc-O0/s_recursion"), [
        "tbreak main", "continue", "tbreak sj_recorder_slow", "continue", "backtrace", "tbreak *s_odd", "continue", *steps])
    check(len(stacks) == 61 and stacks[0][0] == "sj_recorder_slow" and "s_fibonacci" in stacks[0], f"gdb: {done}")
    for stack in stacks:
        check(stack[-1] == "main" and "??" not in stack, f"gdb shows {stack}")
    stubs = [stack for stack in stacks[1:] if stack[0] == "<signal handler called>"]
    check(len(stubs) > 10 and all(stack[1] in ("s_odd", "truth_enter", "current_lane") for stack in stubs), f"stubs: {stubs}")


def test(sojourn, arguments):
    test_debugger(sojourn, arguments[0])
    test_places(sojourn, arguments[0])
    test_ends(sojourn, arguments[0])
    test_first_call(sojourn, arguments[0])
    test_thrown(sojourn, arguments[0])


if __name__ == "__main__":
    main(test)
