"""A process ends, crashes, loses its first thread or executes another program at any moment of an attach. Two
recorders attach at once. A user without the right attaches. Each gets one clear sentence, and the process behaves
as without Sojourn. SJ_LONG=1 runs many rounds."""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import (Target, attach, check_same, code_bytes, copy_for_all_users, look,
                       reports_an_end)
from sojourn_testing import IS_LONG, PATIENCE_S, check, main, wait_for

# The exit status and the output of each fate without an attach.
FATES = {"exit": (7, ""), "crash": (-signal.SIGSEGV, ""), "exec": (5, "another program\n"),
         "leader": (6, "")}
# A user id without an account, different in each run, because the user gets a folder in /var/tmp.
OTHER_USER = str(200000 + os.getpid())


def meet_fate(sojourn, sample, fate, microseconds):
    """Attaches to a process that meets its fate meanwhile. Returns how the attach ended."""
    process = subprocess.Popen([sample, fate, str(microseconds)], stdout=subprocess.PIPE, text=True)
    check(process.stdout.readline() == "ready\n", "the sample did not start")
    database = sojourn.path("fate.db")
    done, summary = attach(sojourn, process.pid, database, ["--for", "10m"], timeout=2 * PATIENCE_S)
    output, _ = process.communicate(timeout=PATIENCE_S)
    what = f"{fate} after {microseconds} us"
    check((process.returncode, output) == FATES[fate],
          f"{what}: the process ended with {process.returncode}, {output!r}")
    if summary is None:
        codes = (1, 3) if "ended" in done.stderr or "is ending" in done.stderr or "no process" in done.stderr else (1,)
        check(done.returncode in codes and reports_an_end(done), f"{what}: {done}")
        return "refused"
    check(done.returncode == 0, f"{what}: {done}")
    # The other program calls nothing, so a recorder that saw calls was attached to the first program. A recorder that
    # attached in its last moment may have seen none.
    check(not summary["replaced"] or fate == "exec", f"{what}: {summary}")
    made = summary["calls"] - summary["open_calls"]
    check(summary["replaced"] or fate != "exec" or made == 0, f"{what}: {summary}")
    os.unlink(database)
    return "recorded"


def test_fates(sojourn, sample, chance, rounds):
    # The first attach plans the modules, so that the rounds take about equally long.
    start = time.monotonic()
    for _ in range(2):
        start = time.monotonic()
        meet_fate(sojourn, sample, "exec", 2000000)
    whole = max(0.3, time.monotonic() - start - 2.8)
    for fate in FATES:
        outcomes = [meet_fate(sojourn, sample, fate, int(chance.uniform(0, 2 * whole) * 1e6))
                    for _ in range(rounds)]
        print(f"{fate}: {outcomes.count('refused')} refused, {outcomes.count('recorded')} recorded")


def leave(sojourn, pid):
    """Detaches. Returns true if this ended a recording, and false if the recorder may still be about to attach."""
    done = sojourn.run(["detach", str(pid)], capture_output=True, text=True)
    return done.returncode == 0 and "is left" in done.stdout


def test_two_at_once(sojourn, target, rounds):
    """One recorder records until it is detached. The other recorder is refused, however late it attaches."""
    for i in range(rounds):
        both = [subprocess.Popen(
            [sojourn.program, "attach", "--quiet", "-o", sojourn.path(f"two{n}.db"),
             str(target.pid)], env=sojourn.environment, stderr=subprocess.PIPE, text=True)
            for n in range(2)]
        wait_for(f"round {i}: one of two is refused",
                 lambda: any(process.poll() is not None for process in both))
        wait_for(f"round {i}: the one that attached is left",
                 lambda: leave(sojourn, target.pid) or all(process.poll() is not None for process in both))
        errors = [process.communicate(timeout=PATIENCE_S)[1] for process in both]
        codes = [process.returncode for process in both]
        check(sorted(codes) == [0, 1], f"round {i}: {codes}, {errors}")
        check("already" in errors[codes.index(1)] and str(target.pid) in errors[codes.index(1)],
              f"round {i}: {errors}")


def run_as(sojourn, words, pid, program=None, environment=None):
    """Attaches under another tool. Returns the messages and the exit status."""
    return subprocess.run([*words, program or sojourn.program, "attach", "--quiet", "--for", "100ms", "-o",
                           sojourn.path("other.db"), str(pid)], capture_output=True, text=True,
                          env=environment or sojourn.environment, timeout=PATIENCE_S, check=False)


def test_rights(sojourn, target):
    """Attaches as root without SYS_PTRACE, as in containers, and as root to a process of another user. Also attaches
    to a daemon that has dropped root."""
    drop = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-all"]
    done = run_as(sojourn, drop, target.pid)
    check(done.returncode == 1 and "--cap-add=SYS_PTRACE" in done.stderr, f"no SYS_PTRACE: {done}")
    other = Target(["setpriv", f"--reuid={OTHER_USER}", "--clear-groups", *target.process.args]).ready()
    before, code = look(other.pid), code_bytes(other.pid)
    done = run_as(sojourn, [], other.pid)
    check(done.returncode == 1 and f"belongs to user {OTHER_USER}" in done.stderr, f"other user: {done}")
    check_same(before, look(other.pid), code, code_bytes(other.pid), "after a refusal")
    program = copy_for_all_users(sojourn)
    for folder in (sojourn.folder, *(sojourn.path(name) for name in os.listdir(sojourn.folder))):
        if os.path.isdir(folder):
            subprocess.run(["chown", "-R", OTHER_USER, folder], check=True)
    os.chmod(sojourn.folder, 0o755)
    state = f"/var/tmp/sojourn-{OTHER_USER}"
    follow_advice(sojourn, other, program)
    daemon = Target([*target.process.args, OTHER_USER]).ready()
    follow_advice(sojourn, daemon, program)
    check(os.path.isdir(state), "where its spool was")
    shutil.rmtree(state)


def follow_advice(sojourn, other, program):
    """Runs, with root's HOME, the command that the refusal names for another user's process."""
    before, code = look(other.pid), code_bytes(other.pid)
    refusal = run_as(sojourn, [], other.pid).stderr
    advised = re.search(r"become that user: (setpriv .*) attach \d+\n", refusal)
    check(advised and advised[1].endswith(" sojourn"), f"what is advised: {refusal}")
    usual = {name: value for name, value in sojourn.environment.items() if not name.startswith("XDG_")}
    done = run_as(sojourn, advised[1].split()[:-1], other.pid, program, {**usual, "HOME": "/root"})
    check(done.returncode == 0, f"the remedy for another user: {done}")
    check_same(before, look(other.pid), code, code_bytes(other.pid), "after the remedy")
    code, output = other.finish()
    check(code == 0 and "mistakes 0" in output, f"the other user's process: {code}, {output}")


def test(sojourn, arguments):
    fate, sample = arguments
    check(os.geteuid() == 0, "this test takes rights away and needs to be root")
    seed = int(os.environ.get("SJ_SEED", "0")) or random.randrange(1 << 30)
    print(f"seed {seed}")
    test_fates(sojourn, fate, random.Random(seed), 100 if IS_LONG else 2)
    target = Target([sample]).ready()
    before, code = look(target.pid), code_bytes(target.pid)
    test_two_at_once(sojourn, target, 50 if IS_LONG else 3)
    test_rights(sojourn, target)
    check_same(before, look(target.pid), code, code_bytes(target.pid), "at the end")
    status, output = target.finish()
    check(status == 0 and "mistakes 0" in output, f"the target: {status}, {output}")


main(test)
