#!/usr/bin/env python3
"""Memory while recording: the agent's arena in the traced program, and the recorder with its embedded
collector, sampled ten times a second.

  tests/bench/memory.py BUILD_FOLDER [--calls-in-units N] [--keep DATABASE]

N units of the lua workload are recorded (10: over 130 million calls). Fails when the arena holds more
than its configured size, or the collector 512 MB.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CHUNK_BYTES = 64 * 1024
DEFAULT_CHUNKS = 64
THREAD_OVERHEAD_BYTES = 1024 * 1024  # slots, headers and mark tables of an arena
COLLECTOR_LIMIT_BYTES = 512 * 1024 * 1024


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def resident_bytes(pid, wanted):
    """Rss over the mappings whose first line satisfies `wanted`; 0 when the process is gone."""
    total, counts = 0, False
    try:
        with open(f"/proc/{pid}/smaps", encoding="ascii", errors="replace") as file:
            for line in file:
                first = line.split(" ", 1)[0]
                if not first.endswith(":"):
                    counts = wanted(line)
                elif counts and first == "Rss:":
                    total += int(line.split()[1]) * 1024
    except OSError:
        return 0
    return total


def sample(recorder):
    arena = 0
    for child in children_of(recorder):
        arena += resident_bytes(child, lambda line: ".arena" in line)
    # The recorder maps the arena, too; those pages are the agent's.
    return arena, resident_bytes(recorder, lambda line: ".arena" not in line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--calls-in-units", type=int, default=10, dest="units")
    parser.add_argument("--keep", help="write the recording here and keep it")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    subjects = os.path.join(build, "subjects")
    subprocess.run([os.path.join(HERE, "build_subjects"), subjects], check=True)
    with tempfile.TemporaryDirectory(prefix="sojourn-bench-") as scratch:
        database = options.keep or os.path.join(scratch, "memory.db")
        summary = os.path.join(scratch, "summary.json")
        process = subprocess.Popen(
            [os.path.join(build, "bin", "sojourn"), "record", "--quiet", "-o", database, "--summary", summary,
             "--", os.path.join(subjects, "lua"), os.path.join(HERE, "workloads", "lua.lua"), str(options.units)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        arenas, collectors = [], []
        while process.poll() is None:
            arena, collector = sample(process.pid)
            arenas.append(arena)
            collectors.append(collector)
            time.sleep(0.1)
        if process.returncode != 0:
            sys.exit(f"sojourn record ended with {process.returncode}")
        with open(summary, encoding="utf-8") as file:
            told = json.load(file)
        file_bytes = os.path.getsize(database)
    configured = told["threads"] * DEFAULT_CHUNKS * CHUNK_BYTES + THREAD_OVERHEAD_BYTES
    megabytes = 1024 * 1024
    print(f"calls {told['calls'] / 1e6:.1f} M, lost {told['lost_calls']}, "
          f"bytes per call in the file {file_bytes / told['calls']:.3f}")
    print(f"agent: arena {max(arenas) / megabytes:.1f} MB at most, configured "
          f"{configured / megabytes:.1f} MB for {told['threads']} thread(s)")
    print(f"recorder and collector: {max(collectors) / megabytes:.1f} MB at most, limit 512 MB "
          f"({len(collectors)} samples)")
    if max(arenas) == 0 or max(collectors) == 0:
        sys.exit("nothing was sampled")
    if max(arenas) > configured or max(collectors) > COLLECTOR_LIMIT_BYTES:
        sys.exit("over the limit")


if __name__ == "__main__":
    main()
