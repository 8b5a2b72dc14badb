#!/usr/bin/env python3
"""What recording takes on the device: threads, memory and CPU per million calls, of the app, of the
recorder beside it, and of the lab.

agent_side.py BUILD_FOLDER COMMAND...     e.g. build/release build/release/subjects/lua lua.lua 3
"""
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def status(pid):
    """Threads and highest RSS in MB; None when the process is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["Threads"]), int(lines["VmHWM"].split()[0]) / 1000
    except (FileNotFoundError, ProcessLookupError, KeyError):
        return None


def cpu_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def child_of(pid):
    """The traced program, or None."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            words = file.read().split()
        return int(words[0]) if words else None
    except FileNotFoundError:
        return None


def watch(process):
    """Looks at recorder and app until the recorder ends; the highest of each."""
    highest = {"recorder": (0, 0), "app": (0, 0)}
    app_cpu = 0
    while process.poll() is None:
        app = child_of(process.pid)
        for name, pid in (("recorder", process.pid), ("app", app)):
            seen = status(pid) if pid else None
            if seen:
                highest[name] = tuple(map(max, highest[name], seen))
        try:
            app_cpu = cpu_of(app) if app else app_cpu
        except (FileNotFoundError, ProcessLookupError):
            pass
        time.sleep(0.02)
    return highest, app_cpu


def plain(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    highest = (0, 0)
    while done.poll() is None:
        seen = status(done.pid)
        highest = tuple(map(max, highest, seen)) if seen else highest
        time.sleep(0.02)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return highest, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    build, command = os.path.abspath(sys.argv[1]), sys.argv[2:]
    folder = tempfile.mkdtemp(prefix="agent-side-")
    database = os.path.join(folder, "lab.db")
    url = f"tcp://127.0.0.1:{free_port()}"
    environment = dict(os.environ, XDG_STATE_HOME=folder, XDG_CACHE_HOME=folder)
    (plain_threads, plain_mb), plain_cpu = plain(command)
    lab = subprocess.Popen([f"{build}/bin/sojournd", "--listen", url, "--database", database],
                           stderr=subprocess.DEVNULL)
    while not os.path.exists(database):
        time.sleep(0.05)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    recorder = subprocess.Popen([f"{build}/bin/sojourn", "record", "-q", "--collector", url,
                                 "--wait", "300", "--", *command],
                                env=environment, stdout=subprocess.DEVNULL)
    highest, app_cpu = watch(recorder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    both_cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    lab_cpu, (lab_threads, lab_mb) = cpu_of(lab.pid), status(lab.pid)
    lab.send_signal(signal.SIGTERM)
    lab.wait()
    with sqlite3.connect(database) as opened:
        calls, lost = opened.execute(
            "SELECT sum(stored_calls), sum(device_lost_calls) FROM sessions").fetchone()
    million = calls / 1e6
    print(f"{calls} calls stored, {lost} lost; CPU per million calls, net of the plain run's")
    print(f"app: {highest['app'][0] - plain_threads:+d} threads, "
          f"{highest['app'][1] - plain_mb:+.1f} MB, {1000 * (app_cpu - plain_cpu) / million:.1f} ms")
    print(f"recorder: {highest['recorder'][0]} threads, {highest['recorder'][1]:.1f} MB, "
          f"{1000 * (both_cpu - app_cpu) / million:.1f} ms")
    print(f"lab: {lab_threads} threads, {lab_mb:.1f} MB, {1000 * lab_cpu / million:.1f} ms")
    subprocess.run(["rm", "-rf", folder], check=True)


main()
