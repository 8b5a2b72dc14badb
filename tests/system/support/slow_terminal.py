"""Runs programs in short moments between long stops, with standard error on a terminal. Short work then takes
seconds on a fast machine, too, so that the test can read the progress that the program shows."""
import os
import pty
import re
import signal
import subprocess
import threading
import time

from sojourn_testing import PATIENCE_S, check

STOP_S = 0.12
MORE, LESS = -10, 5  # niceness of the process that stops others, so that it is never late, and of the stopped one
ENOUGH = 2  # lines of progress, after which the program runs without stops
LINE = re.compile(rb"\r\x1b\[K\.\.\. ([0-9.]+) s, ([0-9]+) % done, about ([0-9]+) s left")


def signal_all(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def place(pids, niceness, cores):
    for pid in pids:
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.setpriority(os.PRIO_PROCESS, int(thread), niceness)
                os.sched_setaffinity(int(thread), cores)
        except (FileNotFoundError, ProcessLookupError):
            pass


def run_slowly(sojourn, arguments, slow=(), codes=(0,), go_s=0.004):
    """Returns what the terminal received. `slow` names processes that are stopped in place of the program."""
    cores = os.sched_getaffinity(0)
    core = {min(cores)}  # both share one core: the program runs only while this process sleeps
    place([os.getpid()], MORE, core)
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
    program = subprocess.Popen([sojourn.program, *arguments], env=sojourn.environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=theirs, preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, 0 if slow else LESS))
    os.close(theirs)
    stopped = slow or (program.pid,)
    place(slow, LESS, core)
    deadline = time.monotonic() + PATIENCE_S
    while program.poll() is None and time.monotonic() < deadline and len(LINE.findall(b"".join(got))) < ENOUGH:
        signal_all(stopped, signal.SIGCONT)
        time.sleep(go_s)
        signal_all(stopped, signal.SIGSTOP)
        time.sleep(STOP_S)
    place([os.getpid()], 0, cores)
    place({program.pid, *stopped}, 0, cores)
    signal_all(stopped, signal.SIGCONT)
    try:
        program.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
    reader.join()
    os.close(ours)
    text = b"".join(got)
    check(program.returncode in codes, f"{arguments}: {program.returncode}: {text}")
    return text


def check_progress(arguments, text, works=1):
    """Checks that progress shows the finished part and the remaining time from the second second on. Nothing of it
    may stay on the terminal."""
    lines = [tuple(float(word) for word in match) for match in LINE.findall(text)]
    check(len(lines) >= 1, f"{arguments} shows {text[-2000:]}")
    check(lines[0][0] >= 1, f"{arguments}: shown from {lines[0][0]} s on")
    shares = [share for _, share, _ in lines]
    falls = sum(after < before for before, after in zip(shares, shares[1:]))
    check(falls < works and max(shares) <= 100, f"{arguments}: shares {shares}")
    check(b"s left" not in text.rpartition(b"\x1b[K")[2], f"{arguments} leaves {text[-80:]}")
