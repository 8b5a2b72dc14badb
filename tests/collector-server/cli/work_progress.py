#!/usr/bin/env python3
"""Work of more than a second shows on a terminal how much is done and how long the rest will take, and
leaves nothing of it behind; elsewhere it shows nothing.

work_progress.py BUILD_FOLDER
"""
import os
import pty
import re
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system",
                                "support"))
from sojourn_testing import check, main

LINE = re.compile(rb"\r\x1b\[K\.\.\. ([0-9.]+) s, ([0-9]+) % done, about ([0-9]+) s left")


def on_terminal(sojourn, arguments):
    """What standard error gets that is a terminal, and how long it took."""
    ours, theirs = pty.openpty()
    got = []

    def read():
        while True:
            try:
                got.append(os.read(ours, 65536))
            except OSError:
                return

    reader = threading.Thread(target=read)
    reader.start()
    begun = time.monotonic()
    done = sojourn.run(arguments, stderr=theirs, stdout=-3)
    elapsed = time.monotonic() - begun
    os.close(theirs)
    reader.join()
    os.close(ours)
    check(done.returncode == 0, f"{arguments}: {done}: {b''.join(got)}")
    return b"".join(got), elapsed


def shows_progress(sojourn, arguments):
    """False: it was too short for that."""
    text, elapsed = on_terminal(sojourn, arguments)
    lines = [tuple(float(word) for word in match) for match in LINE.findall(text)]
    if len(lines) < 5:
        check(elapsed < 10, f"{arguments} took {elapsed:.1f} s and showed {text}")
        return False
    check(lines[0][0] >= 1, f"{arguments}: shown from {lines[0][0]} s on")
    shares = [share for _, share, _ in lines]
    check(shares == sorted(shares) and shares[-1] <= 100, f"{arguments}: shares {shares}")
    check(text.endswith(b"\r\x1b[K") or b"s left" not in text.rpartition(b"\x1b[K")[2],
          f"{arguments} leaves {text[-80:]}")
    silent = sojourn.run(arguments, capture_output=True)
    check(b"done" not in silent.stderr, f"{arguments} without a terminal: {silent.stderr}")
    return True


def test(sojourn, _):
    database = sojourn.path("run.db")
    rounds = 400_000
    commands = [["export", "--format", "parquet", "-o", sojourn.path("calls.parquet"), database],
                ["sql", "SELECT sum(duration_ns % 7), sum(depth % 3), max(call_id % 5) FROM calls", database]]
    while commands:
        program = f"my $x = 0; for my $i (1 .. {rounds}) {{ $x = ($x + $i * 3) % 1000003; $x ^= 5 if $i & 1 }}"
        if os.path.exists(database):
            os.unlink(database)
        done, _ = sojourn.record(["perl", "-e", program], database)
        check(done.returncode == 0, f"record: {done}")
        if commands[0][0] == "sql":
            text, _ = on_terminal(sojourn, commands[0])
            check(LINE.search(text) is None, f"sql into a pipe: {text}")
            commands.pop(0)
        elif shows_progress(sojourn, commands[0]):
            commands.pop(0)
        else:
            rounds *= 2


if __name__ == "__main__":
    main(test)
