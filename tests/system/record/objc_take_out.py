#!/usr/bin/env python3
"""Attaches to running Objective-C programs, detaches, and restores a rebound dispatcher, several times. Code and
references to the dispatcher are the same as before, and the program behaves the same.

objc_take_out.py BUILD_FOLDER (SJ_LONG=1: 100 rounds, of a program that never sleeps; both programs)
"""
import functools
import json
import os
import re
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import attach, attach_until, check_same, code_bytes, look, mappings, start_attach
from sojourn_testing import PATIENCE_S, check, check_accounts, check_sums, children, let_run, main, wait_for

LONG = os.environ.get("SJ_LONG") == "1"
MESSAGES = ("SELECT count(*) AS n FROM calls JOIN functions USING (function_id) "
            "WHERE name GLOB '[-+][[]*'")
CALLED = "SELECT function_id FROM function_stats JOIN functions USING (function_id) WHERE name GLOB '[-+][[]*'"
STARTS = "SELECT tid, started_ns FROM threads"
WAIT = ["--block-ms", "10000"]  # prevents dropped calls on a busy machine
DISPATCHERS = ("objc_msg_lookup", "objc_msg_lookup_super", "__objc_register_selectors_from_module")


def remove(*paths):
    for path in paths:
        if os.path.exists(path):
            os.unlink(path)


def start(sojourn, program, rounds, **options):
    environment = dict(sojourn.environment, HOME=sojourn.folder,
                       OBJC_BUNDLE=os.path.join(os.path.dirname(program), "objc_bundle.so"))
    if not LONG:
        environment["OBJC_REST_US"] = "20000"
    return subprocess.Popen([*options.pop("before", []), program, str(rounds)], env=environment,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, **options)


def has_loaded(process):
    check(process.poll() is None, "the program did not start")
    return any("objc_bundle" in path for _, _, _, path in mappings(process.pid))


def wait_for_library(process):
    """Waits until the last library is loaded and its code has run: the program then uses the processor."""
    wait_for("the program's bundle", lambda: has_loaded(process))
    let_run(process.pid)


def methods_late(sojourn, program, rounds):
    process = start(sojourn, program, 1000000)
    database = sojourn.path("late.db")
    messages, before = 0, None
    wait_for_library(process)
    for number in range(rounds):
        if before is None:
            before, code = look(process.pid), code_bytes(process.pid)
        options = ["--libs", *WAIT] + (["--receivers"] if number % 2 else [])
        attach_until(sojourn, process.pid, database, lambda summary: summary["calls"] > 1000, options)
        check(code_bytes(process.pid) == code, f"{program}: other text after round {number}")
        found = sojourn.sql(database, MESSAGES)[0]["n"]
        check(found > 0, f"{program}, round {number}: no message among the calls")
        messages += found
    check_accounts(sojourn, database)
    after = look(process.pid)
    for state in (before, after):  # the program starts and ends threads all the time, with signals blocked
        state.pop("threads"), state.pop("masks")
    check_same(before, after, code, code_bytes(process.pid), f"after {rounds} rounds")
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=PATIENCE_S)[0]
    check("FAILED" not in output, f"{program} went wrong when hooked late:\n{output}")
    print(f"{program}: {messages} messages in {rounds} rounds of methods patched late")


def classes_made_at_run_time_are_learnt(sojourn, program):
    """A class that the program creates at run time has its name as a receiver while the program runs."""
    process = start(sojourn, program, 1000000)
    database = sojourn.path("made.db")
    wait_for_library(process)
    found = set()

    def is_known(_):
        rows = sojourn.sql(database, "SELECT class FROM methods JOIN function_stats USING "
                           "(function_id) WHERE receiver = 'SmpMade' AND selector = 'recurse:'")
        found.update(row["class"] for row in rows)
        return found == {"SmpBase", "SmpDerived"}

    attach_until(sojourn, process.pid, database, is_known, ["--receivers", *WAIT])
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=PATIENCE_S)[0]
    check("FAILED" not in output, f"{program} went wrong:\n{output}")
    print(f"{program}: a class made at run time is known as a receiver")


@functools.cache
def dispatcher_offsets(path):
    """Returns (offset, name) of each reference to a dispatcher in a file."""
    table = subprocess.run(["readelf", "-rW", path], capture_output=True, text=True, check=False).stdout
    found = re.findall(r"^([0-9a-f]+) .* ([A-Za-z_]+)(?:@\S+)? \+ 0$", table, re.MULTILINE)
    return [(offset, name) for offset, name in found if name in DISPATCHERS]


def dispatcher_slots(pid):
    """Returns the value of each reference to a dispatcher, by module and offset."""
    found, bases = {}, {}
    for low, _, _, path in mappings(pid):
        if path.startswith("/") and ".so" in path or "objc_torture" in path:
            bases.setdefault(path, low)
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for path, low in bases.items():
            for offset, name in dispatcher_offsets(path):
                memory.seek(low + int(offset, 16))
                found[path, offset, name] = struct.unpack("<Q", memory.read(8))[0]
    return found


def owners(pid, slots):
    """Returns the modules that the references point into."""
    ranges = [(low, high, path) for low, high, _, path in mappings(pid)]
    return {
        next((os.path.basename(path) for low, high, path in ranges if low <= value < high), "?")
        for value in slots.values()
    }


def wait_until_bound(recorder):
    """Returns the program's pid and its references once its last library is loaded and all of them point to the
    agent."""
    def bound():
        for pid in children(recorder.pid):
            slots = dispatcher_slots(pid)
            if any("objc_bundle" in path for path, _, _ in slots) and owners(pid, slots) == {"libsojourn-agent.so"}:
                return pid
        return None

    pid = wait_for("dispatch leads to the agent", bound)
    let_run(pid)
    return pid, dispatcher_slots(pid)


def dispatch_given_back(sojourn, program):
    """The recorder is killed, and `detach` then removes everything."""
    command = [sojourn.program, "record", "--quiet", "-o", sojourn.path("given-back.db"), "--objc",
               "dispatch", "--libs", "--when-full", "drop", "--"]
    recorder = start(sojourn, program, 1000000, before=command)
    pid, slots = wait_until_bound(recorder)
    wait_for("methods have stubs", lambda: len(sojourn.sql_once_made(sojourn.path("given-back.db"), CALLED)) > 40)
    recorder.kill()
    recorder.wait()
    done = sojourn.run(["detach", str(pid)], capture_output=True, text=True)
    check(done.returncode == 0 and "is left" in done.stdout, f"detach: {done}")
    kept = re.search(r"keeps (\d+) stubs? for messages", done.stdout)
    check(kept is not None and int(kept.group(1)) > 20, f"kept stubs are counted: {done}")
    left = dispatcher_slots(pid)
    check(left.keys() == slots.keys(), f"other references: {left.keys() ^ slots.keys()}")
    names = owners(pid, left)
    check(len(names) == 1 and next(iter(names)).startswith("libobjc.so"), f"it leads to {names}")
    again = sojourn.run(["detach", str(pid)], capture_output=True, text=True)
    check(again.returncode == 0, f"detach again: {again}")
    let_run(pid)
    os.kill(pid, signal.SIGTERM)
    output = recorder.stdout.read()
    check("FAILED" not in output, f"{program} went wrong when detached from:\n{output}")
    check_sums(sojourn, sojourn.path("given-back.db"))
    done = sojourn.run(["flush"], capture_output=True, text=True)
    check(done.returncode == 0 and "1 session finished" in done.stdout, f"flush: {done}")
    check_accounts(sojourn, sojourn.path("given-back.db"))
    print(f"{program}: {len(slots)} references to the dispatcher given back, {kept.group(0)}")


def attach_for_receivers(sojourn, pid, database):
    """Attaches with dispatch until SmpDerived is known as a receiver. Returns the summary."""
    summary = sojourn.path("dispatch.json")
    recorder = start_attach(sojourn, pid, database, ["--objc", "dispatch", *WAIT, "--summary", summary])
    wait_for("messages to SmpDerived", lambda: sojourn.sql(
        database, "SELECT 1 FROM methods JOIN function_stats USING (function_id) "
        "WHERE class = 'SmpBase' AND receiver = 'SmpDerived'"))
    done = sojourn.run(["detach", str(pid)], capture_output=True, text=True)
    check(done.returncode == 0 and recorder.wait(PATIENCE_S) == 0, f"detach: {done}")
    with open(summary, encoding="utf-8") as file:
        return json.load(file)


def kept_bytes(pid):
    """Returns how many bytes of memory Sojourn has left: its stubs, and their records before them."""
    found = []
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as file:
        for line in file:
            head = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
            if head:
                low, high = (int(text, 16) for text in head.groups())
                check(high - low < 1 << 30 or "r" not in line.split()[1], f"it stays: {line}")
                found.append([low, high, "sojourn" in line, 0])
            elif line.startswith("Rss:"):
                found[-1][3] = int(line.split()[1]) * 1024
    ours = [low for low, _, is_ours, _ in found if is_ours]
    return sum(size for low, high, is_ours, size in found if is_ours or high in ours)


def check_left(pid, slots, code):
    """Checks that the dispatcher and the code are as before, and that the agent is gone."""
    left = dispatcher_slots(pid)
    check(left.keys() == slots.keys(), f"other references: {left.keys() ^ slots.keys()}")
    names = owners(pid, left)
    check(len(names) == 1 and next(iter(names)).startswith("libobjc.so"), f"it leads to {names}")
    now = code_bytes(pid)
    check(all(now[key] == value for key, value in code.items()), "other text")
    files = [path for _, _, _, path in mappings(pid) if "sojourn" in path]
    check(not any("memfd:sojourn-stubs" not in path for path in files), f"it stays: {files}")
    check(len(files) <= 1, f"stubs of more than one agent stay: {files}")


def dispatch_late(sojourn, program, rounds):
    """Rebinds and restores the dispatcher of a running program repeatedly, in turn with the other technique. One set
    of stubs stays in the program and does not grow."""
    process = start(sojourn, program, 1000000)
    database = sojourn.path("dispatch-late.db")
    wait_for_library(process)
    slots, code = dispatcher_slots(process.pid), code_bytes(process.pid)
    stubs, memory = [], []
    for number in range(rounds):
        remove(database)
        technique = "methods" if number % 2 else "dispatch"
        options = ["--for", "100ms", "--objc", technique, *WAIT]
        if technique == "dispatch":
            summary = attach_for_receivers(sojourn, process.pid, database)
        else:
            done, summary = attach(sojourn, process.pid, database, options)
            check(summary is not None and done.returncode == 0, f"{program}, round {number}: {done}")
        check(summary["left_bytes"] == 0, f"{program}, round {number}: {summary}")
        check_accounts(sojourn, database)
        if technique == "dispatch":  # check_left reads memory that the program has not used before
            memory.append(kept_bytes(process.pid))
        check_left(process.pid, slots, code)
        check((technique == "dispatch") == (summary["message_stubs"] > 0), f"{number}: {summary}")
        stubs.append(summary["message_stubs"])
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=PATIENCE_S)[0]
    check("FAILED" not in output, f"{program} went wrong when its dispatch was hooked:\n{output}")
    check(stubs[0] > 20, f"{program}: {stubs}")
    # A method that is new in a round gets one stub.
    check(max(memory) < 1 << 18, f"{program} keeps {memory} bytes")
    print(f"{program}: dispatch rebound late {rounds} times, {memory[0]} to {memory[-1]} bytes stay")


def ask(process, line, expected):
    """Sends a line to objc_stay and reads its reply."""
    process.stdin.write(line + "\n")
    process.stdin.flush()
    answer = process.stdout.readline().strip()
    check(answer == expected, f"objc_stay answers {line} by {answer!r}, not {expected!r}")


def attach_dispatching(sojourn, pid, database, options):
    """Attaches, and waits until the program's references lead to the agent's dispatcher. Returns the running
    recorder."""
    command = [sojourn.program, "attach", "-o", database, *options, *WAIT, str(pid)]
    recorder = subprocess.Popen(command, env=sojourn.environment, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def is_led_to_agent():
        check(recorder.poll() is None, "attach has ended")
        return owners(pid, dispatcher_slots(pid)) == {"libsojourn-agent.so"}

    wait_for("the dispatcher of the agent", is_led_to_agent)
    return recorder


def check_recovered(sojourn, database, started):
    """Checks that the session of a killed recorder is whole and that its thread began when the recorder said."""
    done = sojourn.run(["flush"], capture_output=True, text=True)
    check(done.returncode == 0 and "1 session delivered" in done.stdout, f"flush: {done}")
    now = sojourn.sql(database, STARTS)
    check(now == started, f"{started} has become {now}")
    check_accounts(sojourn, database)


def calls_outlive_dispatch(sojourn, folder):
    """Calls that were dispatched during the recording return, and throw, after the agent was unloaded. Code
    addresses that the program kept still lead to their methods, even if a recorder was killed."""
    process = subprocess.Popen([os.path.join(folder, "objc_stay")], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True,
                               env=dict(sojourn.environment, HOME=sojourn.folder))
    check(process.stdout.readline() == "ready 1\n", "objc_stay does not start")
    slots, code = dispatcher_slots(process.pid), code_bytes(process.pid)
    for way in ("detach", "kill", "detach"):
        database = sojourn.path(f"stay-{way}.db")
        remove(database)
        recorder = attach_dispatching(sojourn, process.pid, database, ["--objc", "dispatch"])
        ask(process, "keep", "kept 1")
        ask(process, "call", "called 42")
        ask(process, "in", "in 0")
        ask(process, "in", "in 0")
        if way == "kill":
            started = wait_for("the thread is stored", lambda: sojourn.sql_once_made(database, STARTS))
            recorder.kill()
        else:
            done = sojourn.run(["detach", str(process.pid)], capture_output=True, text=True)
            check(done.returncode == 0, f"detach: {done}")
        recorder.wait()
        remove(sojourn.path("stay-late.db"))
        done, summary = attach(sojourn, process.pid, sojourn.path("stay-late.db"),
                               ["--for", "100ms", *WAIT])
        check(summary is not None and summary["left_bytes"] == 0, f"after {way}: {done}")
        check_left(process.pid, slots, code)
        ask(process, "call", "called 42")
        ask(process, "throw", "thrown 7")
        process.stdin.write("out\n")
        process.stdin.flush()
        check(process.stdout.readline() == "out 404\n", f"after {way}: wrong results")
        if way == "kill":
            check_recovered(sojourn, database, started)
    process.stdin.close()
    check(process.wait(timeout=PATIENCE_S) == 0, f"objc_stay ended with {process.returncode}")
    print("objc_stay: calls return and throw after dispatch was taken out")


def a_program_without_a_dispatcher_is_refused(sojourn):
    process = subprocess.Popen(["sleep", "600"])
    done, summary = attach(sojourn, process.pid, sojourn.path("none.db"), ["--objc", "dispatch"])
    check(summary is None and "no dispatcher of messages" in done.stderr, f"sleep: {done}")
    check(not any("libsojourn" in path for _, _, _, path in mappings(process.pid)), "it stays")
    process.kill()
    process.wait()


def test(sojourn, arguments):
    build = os.path.dirname(os.path.dirname(sojourn.program))
    folder = os.path.join(build, "tests/samples/objc/O2")
    a_program_without_a_dispatcher_is_refused(sojourn)
    calls_outlive_dispatch(sojourn, folder)
    classes_made_at_run_time_are_learnt(sojourn, os.path.join(folder, "objc_torture"))
    for name in ("objc_torture", "objc_torture_sealed"):
        if LONG or name == "objc_torture":
            dispatch_late(sojourn, os.path.join(folder, name), 20 if LONG else 2)
        if LONG or name == "objc_torture_sealed":
            dispatch_given_back(sojourn, os.path.join(folder, name))
    methods_late(sojourn, os.path.join(folder, "objc_torture"), 100 if LONG else 2)


if __name__ == "__main__":
    main(test)
