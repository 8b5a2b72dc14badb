#!/usr/bin/env python3
"""Running Objective-C programs are attached to and detached from again and again, and a rebound
dispatcher is given back: the text and the references to the dispatcher are what they were, and the
program sees nothing of it.

objc_take_out.py BUILD_FOLDER (SJ_LONG=1: 100 rounds)
"""
import json
import os
import re
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import attach, attach_until, check_same, code_bytes, look, mappings, start_attach
from sojourn_testing import PATIENCE_S, check, check_accounts, children, let_run, main, wait_for

LONG = os.environ.get("SJ_LONG") == "1"
MESSAGES = ("SELECT count(*) AS n FROM calls JOIN functions USING (function_id) "
            "WHERE name GLOB '[-+][[]*'")
WAIT = ["--block-ms", "10000"]  # on a busy machine, too, nothing is dropped
DISPATCHERS = ("objc_msg_lookup", "objc_msg_lookup_super", "__objc_register_selectors_from_module")


def start(sojourn, program, rounds, **options):
    environment = dict(sojourn.environment, HOME=sojourn.folder,
                       OBJC_BUNDLE=os.path.join(os.path.dirname(program), "objc_bundle.so"))
    return subprocess.Popen([*options.pop("before", []), program, str(rounds)], env=environment,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, **options)


def has_loaded(process):
    check(process.poll() is None, "the program did not start")
    return any("objc_bundle" in path for _, _, _, path in mappings(process.pid))


def wait_for_library(process):
    """Until the last library is loaded and everything that it brings has run: it uses the processor."""
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
    for state in (before, after):  # it starts and ends threads all the time, signals blocked
        state.pop("threads"), state.pop("masks")
    check_same(before, after, code, code_bytes(process.pid), f"after {rounds} rounds")
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=PATIENCE_S)[0]
    check("FAILED" not in output, f"{program} went wrong when hooked late:\n{output}")
    print(f"{program}: {messages} messages in {rounds} rounds of methods patched late")


def made_classes_are_learnt(sojourn, program):
    """The class that the program makes has its name as a receiver, as long as the program runs."""
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


def dispatcher_slots(pid):
    """What each reference to a dispatcher holds, by module and offset."""
    found, bases = {}, {}
    for low, _, _, path in mappings(pid):
        if path.startswith("/") and ".so" in path or "objc_torture" in path:
            bases.setdefault(path, low)
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for path, low in bases.items():
            table = subprocess.run(["readelf", "-rW", path], capture_output=True, text=True,
                                   check=False).stdout
            for offset, name in re.findall(r"^([0-9a-f]+) .* ([A-Za-z_]+)(?:@\S+)? \+ 0$", table,
                                           re.MULTILINE):
                if name in DISPATCHERS:
                    memory.seek(low + int(offset, 16))
                    found[path, offset, name] = struct.unpack("<Q", memory.read(8))[0]
    return found


def owners(pid, slots):
    """The modules that the references lead to."""
    ranges = [(low, high, path) for low, high, _, path in mappings(pid)]
    return {
        next((os.path.basename(path) for low, high, path in ranges if low <= value < high), "?")
        for value in slots.values()
    }


def wait_until_bound(recorder):
    """The program's pid and its references, as soon as all of them lead to the agent."""
    def bound():
        for pid in children(recorder.pid):
            slots = dispatcher_slots(pid)
            if len(slots) >= 5 and owners(pid, slots) == {"libsojourn-agent.so"}:
                return pid
        return None

    pid = wait_for("dispatch leads to the agent", bound)
    let_run(pid)
    return pid, dispatcher_slots(pid)


def dispatch_given_back(sojourn, program):
    """Its recorder is killed; `detach` takes everything out."""
    command = [sojourn.program, "record", "--quiet", "-o", sojourn.path("given-back.db"), "--objc",
               "dispatch", "--libs", "--when-full", "drop", "--"]
    recorder = start(sojourn, program, 1000000, before=command)
    pid, slots = wait_until_bound(recorder)
    recorder.kill()
    recorder.wait()
    done = sojourn.run(["detach", str(pid)], capture_output=True, text=True)
    check(done.returncode == 0 and "is left" in done.stdout, f"detach: {done}")
    kept = re.search(r"(\d+) stubs of messages stay", done.stdout)
    check(kept is not None and int(kept.group(1)) > 1000, f"kept stubs are counted: {done}")
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
    print(f"{program}: {len(slots)} references to the dispatcher given back, {kept.group(0)}")


def attach_for_receivers(sojourn, pid, database):
    """Attaches with dispatch until SmpDerived is known as a receiver; the summary."""
    summary = sojourn.path("dispatch.json")
    recorder = start_attach(sojourn, pid, database, ["--objc", "dispatch", *WAIT, "--summary", summary])
    wait_for("messages to SmpDerived", lambda: sojourn.sql(
        database, "SELECT 1 FROM methods JOIN function_stats USING (function_id) "
        "WHERE class = 'SmpBase' AND receiver = 'SmpDerived'"))
    done = sojourn.run(["detach", str(pid)], capture_output=True, text=True)
    check(done.returncode == 0 and recorder.wait(PATIENCE_S) == 0, f"detach: {done}")
    with open(summary, encoding="utf-8") as file:
        return json.load(file)


def dispatch_late(sojourn, program):
    """Dispatch is rebound in a running program and given back; the agent stays, and attach says so."""
    process = start(sojourn, program, 1000000)
    database = sojourn.path("dispatch-late.db")
    wait_for_library(process)
    slots, code = dispatcher_slots(process.pid), code_bytes(process.pid)
    summary = attach_for_receivers(sojourn, process.pid, database)
    check_accounts(sojourn, database)
    check(summary["message_stubs"] > 20 and summary["left_bytes"] > 0, f"{program}: {summary}")
    left = dispatcher_slots(process.pid)
    check(left.keys() == slots.keys(), f"other references: {left.keys() ^ slots.keys()}")
    names = owners(process.pid, left)
    check(len(names) == 1 and next(iter(names)).startswith("libobjc.so"), f"it leads to {names}")
    now = code_bytes(process.pid)
    check(all(now[key] == value for key, value in code.items()), f"{program}: other text")
    done, summary = attach(sojourn, process.pid, database, ["--for", "30ms"])
    check(summary is None and "started again" in done.stderr, f"attached again: {done}")
    let_run(process.pid)
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=PATIENCE_S)[0]
    check("FAILED" not in output, f"{program} went wrong when its dispatch was hooked:\n{output}")
    print(f"{program}: dispatch rebound late, {len(slots)} references given back")


def nothing_to_dispatch(sojourn):
    process = subprocess.Popen(["sleep", "600"])
    done, summary = attach(sojourn, process.pid, sojourn.path("none.db"), ["--objc", "dispatch"])
    check(summary is None and "no dispatcher of messages" in done.stderr, f"sleep: {done}")
    check(not any("libsojourn" in path for _, _, _, path in mappings(process.pid)), "it stays")
    process.kill()
    process.wait()


def test(sojourn, arguments):
    build = os.path.dirname(os.path.dirname(sojourn.program))
    folder = os.path.join(build, "tests/samples/objc/O2")
    nothing_to_dispatch(sojourn)
    made_classes_are_learnt(sojourn, os.path.join(folder, "objc_torture"))
    for name in ("objc_torture", "objc_torture_sealed"):
        dispatch_late(sojourn, os.path.join(folder, name))
        dispatch_given_back(sojourn, os.path.join(folder, name))
    methods_late(sojourn, os.path.join(folder, "objc_torture"), 100 if LONG else 4)


if __name__ == "__main__":
    main(test)
