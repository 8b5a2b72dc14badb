#!/usr/bin/env python3
"""A device that is asked to end ends at once, although its collector is down, drops packets, says nothing or hangs, and
although a session still waits to be sent.

device_ends.py BUILD_FOLDER
"""
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import Collector, Device, enrol
from sojourn_testing import IS_LONG, check, main, stop_all_threads, wait_for

# A request to the collector fails after 25 s. A device that waited for a request would take longer than this.
LESS_THAN_A_REQUEST_S = 20
ROUNDS = 20 if IS_LONG else 2
SYN_SENT = "02"


def connections(port, state):
    """Returns the local addresses of connections to `port` in a state of /proc/net/tcp."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return [row[1] for row in rows if row[2] == f"0100007F:{port:04X}" and row[3] == state]


@contextlib.contextmanager
def refusing(_collector, device):
    """Nothing listens at the port: the kernel refuses each connection."""
    def times_away():
        with open(device.log_path, encoding="utf-8") as file:
            return file.read().count("sessions are kept on disk")

    count = times_away()
    yield lambda: times_away() > count


@contextlib.contextmanager
def dropping(collector, _device):
    """The listener's queue is full, so the kernel drops the first packet of each further connection."""
    with socket.socket() as listener, contextlib.ExitStack() as held:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", collector.port))
        listener.listen(0)
        while not connections(collector.port, SYN_SENT):
            one = held.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", collector.port))
            time.sleep(0.01)
        count = len(connections(collector.port, SYN_SENT))
        yield lambda: len(connections(collector.port, SYN_SENT)) > count


@contextlib.contextmanager
def silent(collector, _device):
    """Connections are accepted, and never answered."""
    with socket.create_server(("127.0.0.1", collector.port), backlog=64) as listener, contextlib.ExitStack() as held:
        listener.setblocking(False)
        count = 0

        def has_accepted():
            nonlocal count
            with contextlib.suppress(BlockingIOError):
                while True:
                    held.enter_context(listener.accept()[0])
                    count += 1
            return count >= 3  # for commands, for names, and for the session that waits
        yield has_accepted


@contextlib.contextmanager
def hanging(collector, device):
    """The collector stops in the middle of a connection."""
    def has_stopped():
        collector.ask(device.name, "status")
        stop_all_threads(collector.process.pid)
        return True

    collector.start()
    try:
        yield has_stopped
    finally:
        collector.process.send_signal(signal.SIGCONT)
        collector.stop()


def end(device):
    """Ends a device. Returns the seconds that this took."""
    begun = time.monotonic()
    device.process.send_signal(signal.SIGTERM)
    try:
        device.process.wait(LESS_THAN_A_REQUEST_S)
    except subprocess.TimeoutExpired:
        check(False, "the device waits for a request, although it was asked to end")
    check(device.process.returncode == 0, f"ended with {device.process.returncode}")
    return time.monotonic() - begun


def recorder_of(device, session):
    with open(os.path.join(device.state, "sojourn/device/spool", session + ".to"), encoding="utf-8") as file:
        return int(file.read().split("\n")[2])


def leave_a_session(sojourn, collector, device):
    """Leaves a session on the device that has ended without a collector."""
    ends = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program))), "tests/samples/ends")
    device.start()
    session = collector.ask(device.name, "launch", ends, "wait")["session"]
    wait_for("its first calls", lambda: collector.sql("SELECT 1 FROM sessions WHERE stored_calls > 0"))
    collector.stop()
    device.wait_for_more()
    recorder = recorder_of(device, session)
    os.kill(recorder, signal.SIGTERM)
    wait_for("the recorder's end", lambda: not os.path.exists(f"/proc/{recorder}"))
    check(device.spool_bytes() > 0, "nothing waits to be sent")
    end(device)


def test(sojourn, _arguments):
    collector = Collector(sojourn)
    device = Device(sojourn, "phone")
    try:
        enrol(collector, device)
        leave_a_session(sojourn, collector, device)
        for condition in (refusing, dropping, silent, hanging):
            spent = []
            for _ in range(ROUNDS):
                with condition(collector, device) as is_met:
                    device.start()
                    wait_for(condition.__doc__, is_met)
                    spent.append(end(device))
            print(f"{condition.__name__:10} {min(spent):.2f} to {max(spent):.2f} s")
    finally:
        for party in (device, collector):
            if party.process is not None and party.process.poll() is None:
                party.process.kill()
                party.process.wait()


main(test)
