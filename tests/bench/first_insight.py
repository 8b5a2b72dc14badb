#!/usr/bin/env python3
"""The first insight into Debian's perl, by one command: how much longer `sojourn record -- perl ...` takes
than perl alone, up to the functions that took the most on the screen; without and with a cached plan.

first_insight.py BUILD_FOLDER [ROUNDS]
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAM = ["/usr/bin/perl", "-e", 'for (1..3000) { $h{"k$_"} = join "", map { chr 97 + $_ % 26 } 1..9 } print scalar(keys %h), "\\n"']


def take(words, environment):
    start = time.perf_counter()
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return time.perf_counter() - start, done.stderr


def main():
    program = os.path.join(sys.argv[1], "bin", "sojourn")
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 11
    beyond = {"no plan cached": [], "plan cached": []}
    plain = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(folder, str(number))}
            alone, _ = take(PROGRAM, environment)
            plain.append(alone)
            for kind, seconds in beyond.items():
                database = os.path.join(folder, f"{number}-{kind[:2]}.db")
                took, shown = take([program, "record", "-o", database, "--", *PROGRAM], environment)
                if "self time" not in shown:
                    sys.exit(f"no insight: {shown}")
                seconds.append(took - alone)
    print(f"perl alone: {statistics.median(plain):.3f} s\n\n| | beyond the program, s: median (range) |\n|---|---|")
    for kind, seconds in beyond.items():
        print(f"| {kind} | {statistics.median(seconds):.3f} ({min(seconds):.3f} to {max(seconds):.3f}) |")


main()
