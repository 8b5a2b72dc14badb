"""A recorder that gets no processor for half a second loses nothing at default settings, because the program waits
for it. A recorder that is killed delays no program for long."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, children, main, wait_for

CALLS = 4 * 3000000


def states_of(pid):
    """Returns the letters of the states of all threads of a process."""
    states = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8") as file:
            states.append(file.read().rpartition(")")[2].split()[0])
    return states


def sleeps(pid):
    """True if all threads of a process, at least five, sleep."""
    states = states_of(pid)
    return len(states) >= 5 and set(states) == {"S"}


def pause(recorder):
    """Stops a recorder until its program waits for it. Tries again if the recorder was stopped while it held threads of
    the program in a tracing stop, because such threads never wait."""
    def program():
        return next((pid for pid in children(recorder.pid)
                     if os.readlink(f"/proc/{pid}/exe").endswith("unguarded_stacks")
                     and len(os.listdir(f"/proc/{pid}/task")) >= 5), None)

    pid = wait_for("the program's threads", program)
    while True:
        os.kill(recorder.pid, signal.SIGSTOP)
        wait_for("the recorder stops", lambda: set(states_of(recorder.pid)) == {"T"})
        wait_for("the program waits, or is held", lambda: sleeps(pid) or "t" in states_of(pid))
        if sleeps(pid):
            return
        os.kill(recorder.pid, signal.SIGCONT)
        wait_for("the recorder continues", lambda: "T" not in states_of(recorder.pid))


def start(sojourn, sample, database):
    return subprocess.Popen([sojourn.program, "record", "-q", "-o", database, "--", sample],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=sojourn.environment)


def test(sojourn, arguments):
    database = sojourn.path("paused.db")
    recorder = start(sojourn, arguments[0], database)
    pause(recorder)
    time.sleep(0.5)  # longer than the delay of a recorder that counts as late
    os.kill(recorder.pid, signal.SIGCONT)
    output, errors = recorder.communicate(timeout=PATIENCE_S)
    check((recorder.returncode, output, errors) == (0, f"calls {CALLS}\n", ""),
          f"the recorder ended with {recorder.returncode}, {output!r}, {errors!r}")
    check_accounts(sojourn, database)
    lost = sojourn.sql(database, "SELECT lost_calls FROM sessions")
    check(lost == [{"lost_calls": 0}], f"lost: {lost}")

    recorder = start(sojourn, arguments[0], sojourn.path("killed.db"))
    pause(recorder)
    os.kill(recorder.pid, signal.SIGKILL)
    output, _ = recorder.communicate(timeout=PATIENCE_S)
    check(output == f"calls {CALLS}\n", f"the program said {output!r}")


main(test)
