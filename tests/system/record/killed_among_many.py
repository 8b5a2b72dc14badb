"""A recorder of more than 32 processes is killed while processes come and go, and policies change. The next `record`
finishes its session, records as many processes itself, and both sessions account for every call."""
import contextlib
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, build_sample, check, children, main, wait_for

MORE_THAN = 32
CALLS = 300  # by each process
MODES = ["profile", "trace", "profile", "trace"]


def start(sojourn, program, name):
    """Starts a recording. Returns it with the pid of the program when 40 processes have started."""
    recorder = subprocess.Popen([sojourn.program, "record", "-q", "-o", sojourn.path(f"{name}.db"), "--", program,
                                 sojourn.path(f"{name}.stop")],
                                env=sojourn.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                start_new_session=True)
    line = recorder.stdout.readline()
    check(line == "all run\n", f"{name} said {line!r}")
    return recorder, children(recorder.pid)[0]


def end_group(recorder):
    """Ends what the recording left running, if a check failed."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(recorder.pid, signal.SIGKILL)


def stop(sojourn, name):
    with open(sojourn.path(f"{name}.stop"), "w", encoding="utf-8"):
        pass


def change_policies(sojourn, pid):
    for mode in MODES:
        done = sojourn.run(["policy", "set", "--mode", mode, str(pid)], capture_output=True, text=True)
        check(done.returncode == 0, f"policy set: {done}")


def processes(sojourn, name):
    return sojourn.sql(sojourn.path(f"{name}.db"), "SELECT count(*) AS n FROM processes")[0]["n"]


def check_accounts(sojourn, name, state):
    rows = sojourn.sql(sojourn.path(f"{name}.db"), "SELECT * FROM sessions")
    check(len(rows) == 1 and rows[0]["state"] == state, f"{name}: {rows}")
    check(rows[0]["sent_calls"] == rows[0]["stored_calls"] + rows[0]["device_lost_calls"], f"{name}: {rows}")
    check(processes(sojourn, name) > MORE_THAN, f"{name}: too few processes")


def check_calls(sojourn, name, started):
    """Each process is recorded, and each of its calls is stored or counted as lost."""
    database = sojourn.path(f"{name}.db")
    check(processes(sojourn, name) == started + 1, f"{processes(sojourn, name)} processes, not {started + 1}")
    calls = sojourn.sql(database, "SELECT sum(s.calls) AS n FROM function_stats s JOIN functions USING (function_id) "
                                  "WHERE name = 'many_step'")[0]["n"]
    lost = sojourn.sql(database, "SELECT lost_calls FROM sessions")[0]["lost_calls"]
    check(calls <= started * CALLS <= calls + lost, f"{calls} calls and {lost} lost of {started * CALLS}")


def kill_and_record_again(sojourn, program, left):
    killed, first = start(sojourn, program, "first")
    left.callback(end_group, killed)
    change_policies(sojourn, first)
    wait_for("processes are stored", lambda: processes(sojourn, "first") > MORE_THAN)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    recorder, second = start(sojourn, program, "second")
    left.callback(end_group, recorder)
    change_policies(sojourn, second)
    stop(sojourn, "second")
    said, errors = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0, f"the next record ended with {recorder.returncode}: {errors}")
    stop(sojourn, "first")
    wait_for("the first program ends", lambda: not os.path.exists(f"/proc/{first}"))
    flushed = sojourn.run(["flush"], capture_output=True, text=True)
    check(flushed.returncode == 0, f"flush: {flushed}")
    check_accounts(sojourn, "first", "lost")
    check_accounts(sojourn, "second", "completed")
    check_calls(sojourn, "second", int(re.match(r"\d+", said)[0]))


def test(sojourn, _):
    sojourn.environment["XDG_RUNTIME_DIR"] = sojourn.folder
    program = build_sample(sojourn, "many_processes.c", "-O1")
    with contextlib.ExitStack() as left:
        kill_and_record_again(sojourn, program, left)


main(test)
