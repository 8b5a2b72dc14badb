#!/usr/bin/env python3
"""Shared memory is too small, or another program fills it. The recorded program behaves the same, no process ends
by SIGBUS, every call is stored or counted, and a message names the remedy. small_memory.py BUILD_FOLDER SAMPLE
ATTACH_TARGET"""
import contextlib
import ctypes
import errno
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, let_work
from fleet_testing import Collector, Device, enrol
from sojourn_testing import check, check_accounts, children, main, wait_for

THREADS, CALLS = 24, 1500
ALL = THREADS * (CALLS + 1) + 2  # calls of leaf, work and main


FLIGHT = {"policy": 1, "name": "box", "mode": "flight", "buffer": {"when_full": "drop"},
          "flight": {"before": "60s", "after": "1ms", "memory": "64M"}, "triggers": [{"on": "command", "do": ["dump"]}]}
TRACE = {"policy": 1, "name": "all", "buffer": {"when_full": "drop"}}


@contextlib.contextmanager
def shared_memory(sojourn, size, folder=None):
    """Mounts a tmpfs for the memory that recorder and programs share."""
    folder = folder or sojourn.path(f"shared-{size}")
    os.makedirs(folder, 0o700, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", folder], check=True)
    sojourn.environment["XDG_RUNTIME_DIR"] = folder
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder):
    """Fills the tmpfs completely."""
    with open(os.path.join(folder, "filler"), "wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while file.write(bytes(4096)) == 4096:
                pass


def stored(sojourn, database):
    return sojourn.sql(database, "SELECT coalesce(sum(calls), 0) AS calls FROM function_stats")[0]["calls"]


class Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("if_true", ctypes.c_uint8), ("if_false", ctypes.c_uint8),
                ("value", ctypes.c_uint32)]


class Filter(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint16), ("instructions", ctypes.POINTER(Instruction))]


def make_old_kernel():
    """Makes madvise refuse MADV_POPULATE_WRITE, as kernels before 5.14 do, in this process and in all programs that
    it starts afterwards."""
    load, equal, answer = 0x20, 0x15, 0x06
    madvise, populate_write, number_at, advice_at = 28, 23, 0, 32
    allow, einval = 0x7fff0000, 0x00050000 | errno.EINVAL
    steps = [(load, 0, 0, number_at), (equal, 0, 3, madvise), (load, 0, 0, advice_at), (equal, 0, 1, populate_write),
             (answer, 0, 0, einval), (answer, 0, 0, allow)]
    libc = ctypes.CDLL(None, use_errno=True)
    program = Filter(len(steps), (Instruction * len(steps))(*steps))
    no_new_privileges, set_filter, filter_mode = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0 or libc.prctl(set_filter, filter_mode, ctypes.byref(program)) != 0:
        raise OSError(ctypes.get_errno(), "no filter")


def test_sizes(sojourn, program):
    """Tests sizes from 16 KiB to 64 MiB. 24 threads with buffers of 1 MiB fit only into the largest."""
    check_sizes(sojourn, program, ("16k", "192k", "296k", "512k", "1m", "3m", "64m"))


def test_old_kernel(sojourn, program):
    """Tests a kernel before 5.14, where pages get their memory when they are read."""
    check_sizes(sojourn, program, ("296k", "3m", "64m"), preexec_fn=make_old_kernel)


def check_sizes(sojourn, program, sizes, **options):
    for size in sizes:
        database = sojourn.path(f"{size}-{len(options)}.db")
        with shared_memory(sojourn, size):
            done, summary = sojourn.record([program, str(THREADS), str(CALLS)], database, ["--when-full", "drop"],
                                           **options)
        said = done.stderr.decode()
        if done.returncode == 125:  # refused before the program ran
            check(size in ("16k", "192k") and "XDG_RUNTIME_DIR" in said and said.count("\n") == 1, f"{size}: {said}")
            continue
        check(done.returncode == 0 and done.stdout.endswith(b"finished\n"), f"{size}: {done.returncode} {said}")
        if summary["processes_without_arena"] == 0:
            calls = stored(sojourn, database)
            check(calls + summary["lost_calls"] == ALL, f"{size}: {calls} of {ALL} stored: {summary}")
            check_accounts(sojourn, database)
        lost = summary["lost_calls"] + summary["processes_without_arena"]
        check(("XDG_RUNTIME_DIR" in said) == (lost != 0), f"{size}: lost {lost}, said: {said}")
        check(size != "64m" or lost == 0, f"{size}: {said}")


def test_flight(sojourn, program):
    """Calls that are in no dump do not count as lost. The reason why events did not fit is reported."""
    with shared_memory(sojourn, "3m"):
        done, summary = sojourn.record([program, str(THREADS), str(40 * CALLS)], sojourn.path("flight.db"),
                                       ["--flight", "--when-full", "drop"])
    said = done.stderr.decode()
    check(done.returncode == 0 and done.stdout.endswith(b"finished\n"), f"{done.returncode} {said}")
    check("shared memory was full" in said and "lost 0" not in said, f"{summary} {said}")


def begin(sojourn, arguments, **options):
    running = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=sojourn.environment,
                               **options)
    check(running.stdout.readline() == b"4 begun\n", "it began")
    return running


def test_attached(sojourn, program):
    """The test fills the tmpfs between the attach and the first call of most threads."""
    database = sojourn.path("attached.db")
    with shared_memory(sojourn, "3m") as folder:
        running = begin(sojourn, [program, str(THREADS), str(CALLS), "wait"])
        recorder = subprocess.Popen([sojourn.program, "attach", "-q", "-o", database, str(running.pid)],
                                    env=sojourn.environment, stderr=subprocess.PIPE)
        wait_for("it is attached", lambda: sojourn.sql_once_made(database, "SELECT 1 FROM modules LIMIT 1"))
        fill(folder)
        said = running.communicate(b"\n")[0]
        check(running.returncode == 0 and said == b"finished\n", f"{running.returncode} {said}")
        told = recorder.communicate()[1].decode()
        check(recorder.returncode == 0 and "shared memory was full" in told, f"{recorder.returncode} {told}")
    check_accounts(sojourn, database)


def test_killed(sojourn, program):
    """The recorder is killed while the tmpfs is full. The next start finishes the session."""
    database = sojourn.path("killed.db")
    with shared_memory(sojourn, "3m") as folder:
        recorder = begin(sojourn, [sojourn.program, "record", "-q", "-o", database, "--", program, str(THREADS),
                                   str(CALLS), "wait"])
        program_pid = children(recorder.pid)[0]
        recorder.kill()
        recorder.wait()
        fill(folder)
        recorder.stdin.write(b"\n")
        recorder.stdin.flush()
        check(recorder.stdout.readline() == b"finished\n", "the program continued")
        wait_for("it has ended", lambda: not os.path.exists(f"/proc/{program_pid}"))
        done = sojourn.run(["flush"], capture_output=True, text=True)
        check(done.returncode == 0 and "1 session finished" in done.stdout, f"{done.returncode} {done.stdout}")
    check_accounts(sojourn, database)


def attach_by_device(collector, device, policy, pid):
    path = collector.sojourn.path(policy["name"] + ".json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(policy, file)
    return collector.ask("--policy", path, device.name, "attach", str(pid))["session"]


def wait_until_whole(collector, session):
    """Waits until the session is stored completely. Returns its state and its counts of calls."""
    rows = f"FROM sessions WHERE session_id IN (SELECT session_id FROM sessions WHERE lower(hex(uuid)) = '{session}')"
    wait_for("the end of the session", lambda: collector.sql(
        f"SELECT 1 {rows} AND sent_calls IS NOT NULL AND stored_blocks >= sent_blocks"))
    return collector.sql(f"SELECT state, stored_calls, device_lost_calls {rows}")[0]


def record_by_device(collector, device, folder, program):
    """The program's threads begin when the tmpfs is full. All calls are stored or counted."""
    running = begin(collector.sojourn, [program, str(THREADS), str(CALLS), "wait"])
    session = attach_by_device(collector, device, TRACE, running.pid)
    fill(folder)
    said = running.communicate(b"\n")[0]
    check(running.returncode == 0 and said == b"finished\n", f"{running.returncode} {said}")
    told = wait_until_whole(collector, session)
    check(told["state"] == "completed" and told["stored_calls"] + told["device_lost_calls"] == ALL - 1, f"{told}")
    os.unlink(os.path.join(folder, "filler"))


def keep_by_device(collector, device, folder, target):
    """The last seconds are kept although the tmpfs, which holds the seconds before, is full."""
    running = Target([target]).ready()
    session = attach_by_device(collector, device, FLIGHT, running.pid)
    wait_for("a kept block", lambda: any(name.startswith("flight-") for _, _, names in os.walk(folder)
                                         for name in names))
    fill(folder)
    let_work(running.process)
    collector.ask(device.name, "dump")
    collector.ask(device.name, "detach", str(running.pid))
    check(running.finish()[0] == 0, "the program ends as ever")
    check(wait_until_whole(collector, session)["state"] == "completed", "the recorder lives")
    dumped = collector.sql("SELECT stored_calls FROM sessions WHERE parent_session_id IS NOT NULL")
    check(len(dumped) == 1 and dumped[0]["stored_calls"] > 0, f"{dumped}")


def test_device(sojourn, program, target):
    """A device's daemon and its recordings keep running when the tmpfs is filled."""
    collector = Collector(sojourn, host="127.0.0.1")
    device = Device(sojourn, "small")
    with shared_memory(sojourn, "8m", device.runtime) as folder:
        enrol(collector, device)
        device.start()
        record_by_device(collector, device, folder, program)
        keep_by_device(collector, device, folder, target)
        check(device.process.poll() is None, "the daemon did not continue")
        device.stop()
    collector.stop()
    check_accounts(sojourn, collector.database)


def test(sojourn, arguments):
    test_sizes(sojourn, arguments[0])
    test_old_kernel(sojourn, arguments[0])
    test_flight(sojourn, arguments[0])
    test_attached(sojourn, arguments[0])
    test_killed(sojourn, arguments[0])
    test_device(sojourn, *arguments)


if __name__ == "__main__":
    if os.environ.get("SJ_OWN_MOUNTS") != "1":
        own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
        os.execvpe(own[0], [*own, sys.executable, *sys.argv], dict(os.environ, SJ_OWN_MOUNTS="1"))
    main(test)
