#!/usr/bin/env python3
"""Signal handlers of a recorded program see the program's own instructions. The test single-steps stubs and probes:
each place maps to a place of the program and can be unwound to main. Handlers can repair faults, redirect threads
and throw. Attach and detach keep the program's own handlers in the kernel. signal_places.py BUILD_FOLDER SAMPLES"""
import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import attach, check_left, code_bytes
from sojourn_testing import IS_LONG, PATIENCE_S, check, children, main, wait_for

STEPPED = ([], ["--profile"], ["--library-calls"])
# A probe of a counted call tries again if a handler's records came in between. So the test does not step through every
# instruction of these.
THROWN = (*STEPPED, ["--clock", "adaptive"])
FAULTS = ([], ["--zombies", "heap"])
# The functions that are stepped through. An unwinder that is linked into the program is not recorded.
TINY = ["--function", "leaf", "--function", "middle"]


# Unwinders that unwind through the recorder's slow path, too. By default the C library's backtrace() suffices for that.
UNWINDERS = ("static", "musl", "libunwind", "llvm")


MARKED_CALLS, LEFT_CALLS = 150, 39 * 80  # calls of leaf, as the program prints them
LIBRARY = ["--library-calls", "--function", "leaf", "--function", "libc.so.6!ldiv"]


def run_plain(command):
    return subprocess.run(command, capture_output=True, check=False)


def test_recorded(sojourn, samples):
    places = os.path.join(samples, "signal_places")
    situations = [([places, word], modes) for word, modes in
                  (("step", STEPPED), ("stack", STEPPED[:1]), ("raw", STEPPED[:1]), ("turns", STEPPED[:1]),
                                               ("fault", FAULTS))]
    situations.append(([os.path.join(samples, "handlers_that_throw")], THROWN))
    for command, all_options in situations:
        plain = run_plain(command)
        for options in all_options:
            done, summary = sojourn.record(command, sojourn.path("places.db"), options)
            check((done.returncode, done.stdout) == (plain.returncode, plain.stdout),
                  f"{command} with {options}: {done} instead of {plain.stdout}")
            check(summary["lost_calls"] == 0, f"{command} with {options}: {summary}")


def test_recorder_interrupted(sojourn, samples):
    """Handlers interrupt the recorder's own code. They see the program's places and registers. A handler may leave
    that code, and later calls are still recorded."""
    policy = sojourn.path("library.json")
    values = [{"name": "numerator", "function": "libc.so.6!ldiv", "argument": 1, "as": "long"},
              {"name": "quotient", "function": "libc.so.6!ldiv", "result": True, "as": "long"}]
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "modules": {"library_calls": True}, "values": values}, file)
    modes = (TINY[:2], LIBRARY, ["--value", "leaf(long)", *TINY[:2]], ["--policy", policy, *LIBRARY[1:]])
    said = {word: run_plain([os.path.join(samples, "signal_places"), word]).stdout for word in ("marked", "left")}
    for word, options in (*(("marked", options) for options in modes), ("left", modes[0]), ("left", modes[2])):
        command, database = [os.path.join(samples, "signal_places"), word], sojourn.path("interrupted.db")
        done, summary = sojourn.record(command, database, options)
        check((done.returncode, done.stdout) == (0, said[word]), f"{command} with {options}: {done}, not {said[word]}")
        wanted = LEFT_CALLS if word == "left" else (1 + ("libc.so.6!ldiv" in options)) * MARKED_CALLS
        check((summary["lost_calls"], summary["calls"]) == (0, wanted), f"{command} with {options}: {summary}")


def test_counts(sojourn, samples):
    """A fault that a handler repairs or throws from leaves the calls exact."""
    database = sojourn.path("counts.db")
    sojourn.record([os.path.join(samples, "handlers_that_throw")], database)
    rows = sojourn.sql(database, "SELECT f.name, count(*) AS calls FROM calls JOIN functions AS f USING "
                                 "(function_id) GROUP BY 1")
    calls = {row["name"]: row["calls"] for row in rows}
    check([calls[name] for name in ("load_first", "store_first", "divide_first", "by_call")] == [60, 30, 30, 30],
          f"calls: {calls}")


def test_ends(sojourn, samples):
    """If the values of a call need more stack than there is, the fault is at the function's first push."""
    policy, database = sojourn.path("values.json"), sojourn.path("ends.db")
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": [{"name": "kept", "function": "leaf", "argument": 1, "as": "long"}]}, file)
    done, _ = sojourn.record([os.path.join(samples, "signal_places"), "ends"], database, ["--policy", policy])
    check(done.stdout == b"ends: called 1, outside 0, elsewhere 0\n", f"{done}")
    kept = sojourn.sql(database, "SELECT count(*) AS kept FROM arguments")[0]["kept"]
    check(0 < kept < 81, f"{kept} values: no stack ended")


def test_ends_of_library(sojourn, samples):
    """If a stack ends below the first library call of a thread, the handler sees an address in the library's
    function."""
    command = [os.path.join(samples, "signal_places"), "library_ends"]
    done, _ = sojourn.record(command, sojourn.path("library_ends.db"), LIBRARY)
    check((done.returncode, done.stdout) == (0, b"ends: ended 1, outside 0\n"), f"{done}")


def test_small_stack(sojourn, samples):
    """On an alternate stack that is hardly larger than the kernel needs, nothing is written below its end."""
    command = [os.path.join(samples, "signal_places"), "small_stack"]
    done, _ = sojourn.record(command, sojourn.path("small_stack.db"), TINY[:2])
    check((done.returncode, done.stdout) == (0, b"small stack: stepped 1, changed 0\n"), f"{done}")


def stacks_of_finding(sojourn, database):
    """Returns the program's functions in the stacks of the first finding, innermost first, by the kind of stack."""
    shown = sojourn.run(["zombies", "show", "1", database], capture_output=True, text=True).stdout
    stacks = {}
    for line in shown.split("\n"):
        what = re.match(r"(\w+) by thread \d+$", line)
        frame = re.match(r"  #\d+  (\w+)  .*/short_use\+", line)
        if what:
            frames = stacks.setdefault(what[1], [])
        elif frame:
            frames.append(frame[1])
    return stacks


def test_freed(sojourn, samples):
    """A use of freed memory is attributed to the function whose instruction a stub has copied. Recorded calls into
    libraries have callers, in stacks and where the policy names callers."""
    guard = sojourn.path("guard.json")
    with open(guard, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "zombies": {"heap": {"guard": {"caller": ["open_session"]}}}}, file)
    for options in (["--zombies", "heap"], ["--zombies", "heap", "--library-calls"],
                    ["--policy", guard, "--library-calls"]):
        database = sojourn.path("freed.db")
        sojourn.record([os.path.join(samples, "short_use")], database, options)
        stacks = {what: frames[:3] for what, frames in stacks_of_finding(sojourn, database).items()}
        check(stacks == {what: [function, "handle", "main"] for what, function in
                         (("used", "count_uses"), ("freed", "close_session"), ("allocated", "open_session"))},
              f"{options}: {stacks}")
        os.unlink(database)


def test_attached(sojourn, samples):
    command = [os.path.join(samples, "signal_places"), "attached"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        check(process.stdout.readline() == b"ready\n", "it does not begin")
        before = code_bytes(process.pid)
        for number in range(2):
            done, summary = attach(sojourn, process.pid, sojourn.path(f"attached{number}.db"), ["--for", "200ms"])
            check(done.returncode == 0 and summary["calls"] > 0, f"attach {number}: {done} {summary}")
        check_left(before, process.pid, "the program")
        process.send_signal(signal.SIGTERM)
        said = process.stdout.read()
        check(process.wait() == 0 and said == b"rounds 1, failed 0, outside 0, own 1, unlike 0\n", f"it said {said}")


def start_attach(sojourn, pid, options=()):
    return subprocess.Popen([sojourn.program, "attach", str(pid), "-q", "-o", sojourn.path("steps.db"), *options])


def test_action_under_way(sojourn, samples):
    """The recorder attaches while a thread is about to make the system call that registers a handler. The handler
    gets a gate all the same."""
    with subprocess.Popen([os.path.join(samples, "action_under_way")], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        check(process.stdout.readline() == b"stopped\n", "it does not stop")
        before = code_bytes(process.pid)
        with start_attach(sojourn, process.pid) as recorder:
            # The recorder writes the hooks while all threads are stopped. They continue after it has finished.
            wait_for("hooks", lambda: any(code_bytes(process.pid).get(key) != code for key, code in before.items()))
            process.stdin.write(b"\n")
            process.stdin.flush()
            said = process.stdout.readline()
            recorder.send_signal(signal.SIGINT)
        check(said == b"own handler: 0\n", f"it said {said}")
        check_left(before, process.pid, "the program")
        process.stdin.write(b"\n")
        process.stdin.close()
        check(process.wait() == 0, "it fails")


def test_unwinders(sojourn, samples):
    """Other unwinders than the C library's backtrace() unwind through stubs to main, too."""
    commands = [[os.path.join(samples, f"signal_places_{unwinder}"), "raw" if IS_LONG and unwinder != "llvm" else "warm"]
                for unwinder in UNWINDERS]
    for command in (*commands, [os.path.join(samples, "handlers_that_throw_libunwind")]):
        plain = run_plain(command)
        done, _ = sojourn.record(command, sojourn.path("unwinders.db"), TINY if command[1:] else [])
        check((done.returncode, done.stdout) == (plain.returncode, plain.stdout),
              f"{command}: {done} instead of {plain.stdout}")


def test_unwinders_attached(sojourn, samples):
    """Also tests an unwinder that the program loads while it is attached to."""
    for unwinder, word in (("", "attached_raw"), ("_iterates", "attached_raw"), ("", "attached_late")):
        command = [os.path.join(samples, f"signal_places{unwinder}"), word]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            check(process.stdout.readline() == b"ready\n", "it does not begin")
            before = code_bytes(process.pid)
            with start_attach(sojourn, process.pid, TINY) as recorder:
                check(process.stdout.readline() == b"stepped\n", "no step reached a stub")
                recorder.send_signal(signal.SIGINT)
            check_left(before, process.pid, "the program")
            process.send_signal(signal.SIGTERM)
            said = process.stdout.read()
            check(process.wait() == 0 and said == b"raw: cut 0\n", f"{command}: it said {said}")


def frames_by_gdb(*arguments):
    """Returns the functions that gdb names, for a process or a core file."""
    done = subprocess.run(["gdb", "-q", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-ex", "backtrace", *arguments],
                          capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    return re.findall(r"^#\d+ .*?(\w+) \(", done.stdout, re.M), done


def check_frames(sojourn, pid, program, what):
    """Checks that gdb unwinds to main from a handler that has interrupted a stub, in the process and in its core
    file."""
    core = sojourn.path("core")
    for arguments in (["-ex", f"generate-core-file {core}", "-p", str(pid)], [program, core]):
        frames, done = frames_by_gdb(*arguments)
        check("hold" in frames and "main" in frames and {"leaf", "middle"} & set(frames[frames.index("hold"):]),
              f"{what}: gdb {arguments} shows {done}")


def test_debugger(sojourn, samples):
    program = os.path.join(samples, "signal_places")
    with subprocess.Popen([sojourn.program, "record", "-q", "-o", sojourn.path("gdb.db"), "--", program, "held"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as recorder:
        check(recorder.stdout.readline() == b"ready\n" and recorder.stdout.readline() == b"held\n", "no step reached a stub")
        check_frames(sojourn, children(recorder.pid)[0], program, "recorded")
        said, _ = recorder.communicate(b"on")
        check(said == b"held: sum 6560\n", f"the program said {said}")


def hold_and_leave(sojourn, samples, is_debugged):
    """A handler with its own restorer, which the C library does not know, interrupts a stub. It returns there when
    the recording is over."""
    command = [os.path.join(samples, "signal_places"), "held"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        check(process.stdout.readline() == b"ready\n", "it does not begin")
        # The handler is not recorded: a recorded handler would use up the step that is meant for the recorder's code.
        with start_attach(sojourn, process.pid, TINY) as recorder:
            try:
                check(process.stdout.readline() == b"held\n", "no step reached a stub")
                if is_debugged:
                    check_frames(sojourn, process.pid, command[0], "attached")
            finally:
                recorder.send_signal(signal.SIGINT)
        said, _ = process.communicate(b"on")
        check((process.returncode, said) == (0, b"held: sum 6560\n"), f"{process.returncode}: {said}")


def test_held(sojourn, samples):
    for number in range(2):
        hold_and_leave(sojourn, samples, number == 0)


def test(sojourn, arguments):
    test_recorded(sojourn, arguments[0])
    test_recorder_interrupted(sojourn, arguments[0])
    test_counts(sojourn, arguments[0])
    test_ends(sojourn, arguments[0])
    test_ends_of_library(sojourn, arguments[0])
    test_small_stack(sojourn, arguments[0])
    test_freed(sojourn, arguments[0])
    test_attached(sojourn, arguments[0])
    test_action_under_way(sojourn, arguments[0])
    test_unwinders(sojourn, arguments[0])
    test_unwinders_attached(sojourn, arguments[0])
    test_held(sojourn, arguments[0])
    test_debugger(sojourn, arguments[0])


if __name__ == "__main__":
    main(test)
