#!/usr/bin/env python3
"""Measures what recording takes on the device: threads, memory and CPU per million calls, of the app, of the
recorder beside it, and of the collector; and the same in direct mode, where the app is its own recorder.

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
    """Returns the pid of the traced program, or None."""
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


def alone(command, environment=None):
    """Returns the highest number of threads, the highest RSS and the CPU time of a program with one process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    highest = (0, 0)
    while done.poll() is None:
        seen = status(done.pid)
        highest = tuple(map(max, highest, seen)) if seen else highest
        time.sleep(0.02)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return highest, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Collector:
    """The collector of one run."""

    def __init__(self, build, folder, name):
        self.database = os.path.join(folder, name + ".db")
        self.url = f"tcp://127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            [f"{build}/bin/sojournd", "--listen", self.url, "--database", self.database],
            stderr=subprocess.DEVNULL)
        while not os.path.exists(self.database):
            time.sleep(0.05)

    def end(self):
        """Returns the stored and lost calls, and the CPU time, threads and memory of the collector."""
        cpu, (threads, megabytes) = cpu_of(self.process.pid), status(self.process.pid)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        with sqlite3.connect(self.database) as opened:
            calls, lost = opened.execute(
                "SELECT sum(stored_calls), sum(device_lost_calls) FROM sessions").fetchone()
        return calls, lost, cpu, threads, megabytes


def print_calls(how, collector):
    calls, lost, cpu, threads, megabytes = collector.end()
    million = calls / 1e6
    print(f"{how}: {calls} calls stored, {lost} lost; CPU per million calls, net of the plain run's")
    print(f"  collector: {threads} threads, {megabytes:.1f} MB, {1000 * cpu / million:.1f} ms")
    return million


def measure_recorder(build, folder, command, environment, plain):
    (plain_threads, plain_mb), plain_cpu = plain
    collector = Collector(build, folder, "recorder")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    recorder = subprocess.Popen([f"{build}/bin/sojourn", "record", "-q", "--collector", collector.url,
                                 "--wait", "300", "--", *command],
                                env=environment, stdout=subprocess.DEVNULL)
    highest, app_cpu = watch(recorder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    both_cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    million = print_calls("recorder beside the app", collector)
    print(f"  app: {highest['app'][0] - plain_threads:+d} threads, "
          f"{highest['app'][1] - plain_mb:+.1f} MB, {1000 * (app_cpu - plain_cpu) / million:.1f} ms")
    print(f"  recorder: {highest['recorder'][0]} threads, {highest['recorder'][1]:.1f} MB, "
          f"{1000 * (both_cpu - app_cpu) / million:.1f} ms")


def measure_direct(build, folder, command, environment, plain):
    (plain_threads, plain_mb), plain_cpu = plain
    collector = Collector(build, folder, "direct")
    environment = dict(environment, LD_PRELOAD=f"{build}/lib/libsojourn-direct.so",
                       SOJOURN_DIRECT=collector.url, SOJOURN_DIRECT_WAIT="300")
    (threads, megabytes), cpu = alone(command, environment)
    million = print_calls("direct", collector)
    print(f"  app, its recorder included: {threads - plain_threads:+d} threads, "
          f"{megabytes - plain_mb:+.1f} MB, {1000 * (cpu - plain_cpu) / million:.1f} ms")


def main():
    build, command = os.path.abspath(sys.argv[1]), sys.argv[2:]
    folder = tempfile.mkdtemp(prefix="agent-side-")
    environment = dict(os.environ, XDG_STATE_HOME=folder, XDG_CACHE_HOME=folder)
    plain = alone(command)
    measure_recorder(build, folder, command, environment, plain)
    measure_direct(build, folder, command, environment, plain)
    print(f"load average {os.getloadavg()[0]:.0f}")
    subprocess.run(["rm", "-rf", folder], check=True)


main()
