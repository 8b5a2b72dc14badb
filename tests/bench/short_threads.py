#!/usr/bin/env python3
"""Many short threads, twenty of them alive at a time: how many a second, and what is lost.

  tests/bench/short_threads.py B [--threads 100000] [--rounds 3] [--pace 20000]

The sample short_threads runs alone and recorded at default settings, by turns: as fast as it can,
and, if the machine lets it, PACE a second. It prints medians: threads a second, the calls that are
lost (waits for space are not a loss), CPU of the recorder a thread, how long threads waited for space in
all, and how long the whole command took. Sums must be exact.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time


def run(command):
    start = time.monotonic()
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return time.monotonic() - start, int(said.split()[-1])


def record(build, command, folder):
    summary_file = folder / "summary.json"
    seconds, calls = run([build / "bin/sojourn", "record", "-q", "--summary", summary_file, "-o",
                          folder / "threads.db", "--", *command])
    summary = json.loads(summary_file.read_text())
    for file in folder.glob("threads.db*"):
        file.unlink()
    if summary["calls"] + summary["lost_calls"] < calls:
        raise SystemExit(f"{calls} calls made, {summary['calls']} recorded, {summary['lost_calls']} lost")
    return seconds, summary


def measure(options, folder, pace):
    command = [str(options.build / "tests/samples/short_threads"), str(options.threads), str(pace)]
    plain, recorded = [], []
    for _ in range(options.rounds):
        plain.append(run(command)[0])
        recorded.append(record(options.build, command, folder))
    by = {key: statistics.median(summary[key] for _, summary in recorded)
          for key in ("elapsed_ns", "lost_calls", "drain_cpu_ns", "waited_ns")}
    alone = statistics.median(plain)
    print(f"| {pace or 'none'} | {options.threads / alone:,.0f} | {options.threads / by['elapsed_ns'] * 1e9:,.0f} "
          f"| {by['lost_calls']:.0f} | {by['drain_cpu_ns'] / options.threads / 1e3:.1f} "
          f"| {by['waited_ns'] / 1e9:.1f} | {statistics.median(each for each, _ in recorded):.1f} |",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--threads", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pace", type=int, nargs="*", default=[20000, 0])
    options = parser.parse_args()
    print("| pace | plain, threads a second | recorded | calls lost | drain, us of CPU a thread "
          "| waited for room, s summed | the whole command, s |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for pace in options.pace:
            measure(options, pathlib.Path(folder), pace)


if __name__ == "__main__":
    main()
