#!/usr/bin/env python3
"""Work of more than a second shows on a terminal how much is done and how long the rest will take, and leaves
nothing of it behind. Without a terminal it shows nothing.

work_progress.py BUILD_FOLDER
"""
import contextlib
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system",
                                "support"))
from fleet_testing import free_port
from slow_terminal import LINE, check_progress, run_slowly
from sojourn_testing import check, main, wait_for

LOOP = "my $x = 0; for my $i (1 .. $ARGV[0]) { $x = ($x + $i * 3) % 1000003; $x ^= 5 if $i & 1 }"
PROGRAM = ["perl", "-e", LOOP, "200000"]
# This recording is longer, because some commands only copy blocks, and the disk works while they are stopped.
LONGER = ["perl", "-e", LOOP, "1000000"]


def commands_over_sessions(sojourn):
    database, copy, others = (sojourn.path(name) for name in ("run.db", "copy.db", "others.db"))
    longer = sojourn.path("longer.db")
    compiler = subprocess.check_output(["gcc", "-print-prog-name=cc1"], text=True).strip()  # a large program
    for program, into in ((PROGRAM, database), (LONGER, longer)):
        done, _ = sojourn.record(program, into, ["--block-ms", "10"])
        check(done.returncode == 0, f"record: {done}")
    for works, go_s, command in ((1, 0.3, ["export", "--format", "parquet", "-o", sojourn.path("calls.parquet"), database]),
                                 (2, 0.004, ["report", "--all", "--from", "0s", "--to", "30s", database]),
                                 (1, 0.004, ["functions", compiler]),
                                 (1, 0.004, ["verify", "--check-only", database]),
                                 (2, 0.004, ["verify", "--rebuild", "all", database]),
                                 (1, 0.001, ["session", "export", "last", copy, "-d", longer]),
                                 (1, 0.004, ["session", "import", copy, "-d", others]),
                                 (2, 0.001, ["session", "move", "last", sojourn.path("."), "-d", others]),
                                 (2, 0.001, ["session", "return", "last", "-d", others]),
                                 (1, 0.001, ["session", "remove", "last", "-d", others]),
                                 (1, 0.004, ["session", "import", copy, "-d", others]),
                                 (1, 0.001, ["session", "retain", "all=1k", "-d", others])):
        if command[1] == "retain":
            stored = sojourn.sql(others, "SELECT count(*) AS n FROM sessions")[0]["n"]
            check(stored == 1, f"{stored} sessions before retain")
        check_progress(command, run_slowly(sojourn, command, go_s=go_s), works)
    check(sojourn.sql(others, "SELECT count(*) AS n FROM sessions")[0]["n"] == 0, "retain has left it")


def symbols_of_a_folder(sojourn):
    folder, database = sojourn.path("files"), sojourn.path("run.db")
    os.mkdir(folder)
    with open("/bin/true", "rb") as file:
        program = file.read()
    for number in range(3000):
        with open(os.path.join(folder, f"{number}.so"), "wb") as file:
            file.write(program)
    command = ["symbols", "add", folder, "-d", database]
    check_progress(command, run_slowly(sojourn, command, codes=(0, 3)))


@contextlib.contextmanager
def collector(sojourn, port, database):
    program = os.path.join(os.path.dirname(sojourn.program), "sojournd")
    log = sojourn.path("collector.log")
    with open(log, "w", encoding="utf-8") as file, \
            subprocess.Popen([program, "--listen", f"tcp://127.0.0.1:{port}", "--database", database], stderr=file,
                             env=sojourn.environment) as running:
        try:
            wait_for("the collector", lambda: "collecting into" in open(log, encoding="utf-8").read())
            yield running
        finally:
            running.send_signal(signal.SIGCONT)
            running.terminate()


def a_slow_collector(sojourn):
    """Tests the wait of record at its end, and the delivery by flush."""
    port = free_port()
    options = ["record", "--collector", f"tcp://127.0.0.1:{port}"]
    away = sojourn.run([*options, "--wait", "0", "--", *PROGRAM], capture_output=True, text=True)
    check("the rest is kept in" in away.stderr and not LINE.search(away.stderr.encode()), f"{away}")
    with collector(sojourn, port, sojourn.path("collector.db")) as running:
        command = ["flush", "--wait", "1m"]
        check_progress(command, run_slowly(sojourn, command, [running.pid]))
        command = [*options, "--wait", "1m", "--", *PROGRAM]
        sojourn.environment["COLUMNS"] = "60"
        text = run_slowly(sojourn, command, [running.pid])
        del sojourn.environment["COLUMNS"]
        check_progress(command, text)
        lines = [re.sub(rb"\x1b\[K", b"", line.rstrip(b"\r").rsplit(b"\r", 1)[-1]) for line in text.split(b"\n")]
        check(all(len(line) <= 60 for line in lines), f"wider than 60: {lines}")
        check(b"sojourn: waiting for tcp://127.0.0.1" in text and b"next " not in text, f"record: {text[-2000:]}")
    stored = sojourn.sql(sojourn.path("collector.db"), "SELECT state FROM sessions")
    check([row["state"] for row in stored] == ["completed"] * 2, f"{stored}")


def no_progress_is_shown_without_a_terminal(sojourn):
    database = sojourn.path("run.db")
    done = sojourn.run(["verify", "--rebuild", "all", database], capture_output=True)
    check(done.stderr == b"", f"verify without a terminal: {done.stderr}")
    text = run_slowly(sojourn, ["sql", "SELECT sum(depth % 3) FROM calls", database], go_s=0.5)
    check(LINE.search(text) is None, f"sql into a pipe: {text}")


def test(sojourn, _):
    commands_over_sessions(sojourn)
    symbols_of_a_folder(sojourn)
    a_slow_collector(sojourn)
    no_progress_is_shown_without_a_terminal(sojourn)


if __name__ == "__main__":
    main(test)
