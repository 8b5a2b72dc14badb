#!/usr/bin/env python3
"""Measures what attaching costs a process: how long its threads are stopped and how long all takes for some
15,000 functions, idle and with more busy threads than cores; what its work costs before, while and
after; which of its system calls see EINTR. attach_bench.py BUILD_FOLDER [--rounds N]

Work is counted per second of the process's own CPU time, because other processes share the cores."""
import argparse
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "system", "support"))
from attaching import Target, attach
from sojourn_testing import SAMPLES, Sojourn, check

SUBJECT = os.path.join(SAMPLES, "bench", "libraries_in_threads.py")
MODULES = ("python3.11", "libcrypto.so*", "libssl.so*", "libsqlite3.so*", "_*.so")


def spread(values, unit=1e6):
    return (f"{min(values) / unit:.2f} / {statistics.median(values) / unit:.2f} / "
            f"{max(values) / unit:.2f}")


def measure_stops(sojourn, name, busy, waiting, rounds):
    target = Target(["/usr/bin/python3.11", SUBJECT, str(busy), str(waiting)]).ready()
    options = ["--for", "30ms", *(word for module in MODULES for word in ("--module", module))]
    summaries = []
    for i in range(rounds + 1):
        database = sojourn.path("stops.db")
        if os.path.exists(database):
            os.unlink(database)
        done, summary = attach(sojourn, target.pid, database, options)
        check(done.returncode == 0 and summary, f"attach: {done}")
        summaries.append(summary)
    target.finish()
    first, later = summaries[0], summaries[1:]
    print(f"| {name} | {first['hooked']:,} of {first['functions']:,} | {first['attach_patches']:,} | "
          f"{spread([s['attach_stopped_ns'] for s in later])} | "
          f"{spread([s['detach_stopped_ns'] for s in later])} | {first['attach_ns'] / 1e6:.0f} | "
          f"{spread([s['attach_ns'] for s in later])} |", flush=True)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/schedstat", encoding="utf-8"):
        pass
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="utf-8") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def speed(target, seconds):
    """Rounds of work per second of CPU."""
    work, cpu = target.work(), cpu_seconds(target.pid)
    time.sleep(seconds)
    return (target.work() - work) / (cpu_seconds(target.pid) - cpu)


def measure_work(sojourn, sample, rounds):
    """Measures the work before, during and after an attach in turn, so that other load affects all three equally."""
    target = Target([sample]).ready()
    found = {"before": [], "while": [], "after": []}
    for i in range(rounds):
        database = sojourn.path("work.db")
        if os.path.exists(database):
            os.unlink(database)
        found["before"].append(speed(target, 0.5))
        recorder = subprocess.Popen(
            [sojourn.program, "attach", "--quiet", "-o", database, "--when-full", "drop",
             str(target.pid)], env=sojourn.environment)
        time.sleep(1.5)
        found["while"].append(speed(target, 0.5))
        done = sojourn.run(["detach", str(target.pid)], capture_output=True, text=True)
        check(done.returncode == 0 and recorder.wait(60) == 0, f"detach: {done}")
        found["after"].append(speed(target, 0.5))
    for when, values in found.items():
        print(f"| {when} | {max(values):.0f} / {statistics.median(values):.0f} |")
    print(f"after / before: {max(found['after']) / max(found['before']):.3f} of the best, "
          f"{statistics.median(found['after']) / statistics.median(found['before']):.3f} of the "
          "medians")
    _, output = target.finish()
    print(f"{rounds} attaches and detaches: {output.splitlines()[-1]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    sojourn = Sojourn(os.path.join(arguments.build, "bin"))
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("| threads | functions hooked | pieces of text | stop, ms: min / median / max | "
          "longest stop at leaving | first attach, ms | later attaches, ms |")
    print("|---|---|---|---|---|---|---|")
    measure_stops(sojourn, "idle: 4 wait", 0, 3, arguments.rounds)
    measure_stops(sojourn, "2 busy, 2 wait", 2, 1, arguments.rounds)
    measure_stops(sojourn, "oversubscribed: 16 busy", 16, 0, arguments.rounds)
    print("| work of attach_target | rounds per CPU second: best / median |")
    print("|---|---|")
    measure_work(sojourn, os.path.join(arguments.build, "tests/samples/attach_target"),
                 max(3, arguments.rounds // 4))


main()
