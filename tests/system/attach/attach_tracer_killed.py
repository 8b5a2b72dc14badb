"""Kills the recorder at random moments of attaching, recording and detaching, and before each step by which it
changes the process. The process keeps running and computes the same results. A later attach or detach removes what
stayed."""
import os
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, attach, attach_until, check_same, code_bytes, look
from sojourn_testing import PATIENCE_S, check, main, wait_for


STEPS = ("ptrace", "pwrite64")


def attach_traced(sojourn, pid, options, log):
    """Attaches for a moment under strace. Only the end of the session is sent."""
    return subprocess.run(
        ["strace", "-ff", "-qq", "-e", "signal=none", "-e", "trace=ptrace,pwrite64", "-o", log,
         *options, sojourn.program, "attach", "--quiet", "--for", "10ms", "--collector",
         "tcp://127.0.0.1:9", "--wait", "0", str(pid)],
        env=sojourn.environment, capture_output=True, text=True, timeout=PATIENCE_S)


def count_steps(sojourn, pid):
    """Returns how often the tracing thread makes each kind of step in an attach that is not killed."""
    log = sojourn.path("strace")
    attach_traced(sojourn, pid, [], log)
    counts = []
    for name in os.listdir(sojourn.folder):
        if name.startswith("strace."):
            with open(sojourn.path(name), encoding="latin-1") as file:
                lines = file.readlines()
            counts.append([sum(line.startswith(step + "(") for line in lines) for step in STEPS])
            os.unlink(sojourn.path(name))
    check(counts, "strace logged nothing: is it installed? see .ci/packages")
    return dict(zip(STEPS, max(counts)))


def kill_before_step(sojourn, target, step, number, before, code):
    """True if the recorder was killed. It is not killed if it needs fewer steps this time."""
    done = attach_traced(sojourn, target.pid,
                         ["-e", f"inject={step}:signal=SIGKILL:when={number}"], "/dev/null")
    check_target_continues(target, f"killed before {step} {number}")
    left = sojourn.run(["detach", str(target.pid)], capture_output=True, text=True)
    check(left.returncode == 0, f"killed before {step} {number}: {left}")
    check_same(before, look(target.pid), code, code_bytes(target.pid),
               f"killed before {step} {number}")
    return done.returncode == -9, "is left" in left.stdout


def kill_at_steps(sojourn, target, chance, before, code):
    totals = count_steps(sojourn, target.pid)
    steps = [(step, number) for step in STEPS for number in range(1, totals[step] + 1)]
    if not os.environ.get("SJ_LONG"):
        steps = chance.sample(steps, 6)
    outcomes = [kill_before_step(sojourn, target, *step, before, code) for step in steps]
    kills, cleanings = (sum(values) for values in zip(*outcomes))
    check(kills > len(steps) // 4, f"{kills} kills in {len(steps)} steps")
    print(f"{kills} kills before {len(steps)} steps of {totals}, {cleanings} left something")


def check_target_continues(target, when):
    work = target.work()
    wait_for(f"{when}: the target continues", lambda: target.work() != work)


def test(sojourn, arguments):
    rounds = 500 if os.environ.get("SJ_LONG") else int(arguments[1])
    seed = int(os.environ.get("SJ_SEED", "0")) or random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    target = Target([arguments[0]]).ready()
    before, code = look(target.pid), code_bytes(target.pid)
    left_something = 0
    # The second round counts, because the first one plans the modules.
    for _ in range(2):
        start = time.monotonic()
        done, _ = attach(sojourn, target.pid, sojourn.path("run.db"), ["--for", "100ms"])
        check(done.returncode == 0, f"an attach that is not killed: {done}")
        whole = time.monotonic() - start
    for i in range(10 * rounds):
        if i >= rounds and left_something > rounds // 10:
            break
        recorder = subprocess.Popen(
            [sojourn.program, "attach", "--quiet", "--for", "100ms", "-o", sojourn.path("run.db"),
             str(target.pid)], env=sojourn.environment, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0, whole))
        recorder.kill()
        recorder.wait()
        check_target_continues(target, f"round {i}")
        done = sojourn.run(["detach", str(target.pid)], capture_output=True, text=True)
        check(done.returncode == 0, f"round {i}: {done}")
        left_something += "is left" in done.stdout
        check_same(before, look(target.pid), code, code_bytes(target.pid), f"in round {i}")
    check(left_something > rounds // 10, f"only {left_something} of {i + 1} kills hit anything")
    kill_at_steps(sojourn, target, chance, before, code)
    attach_until(sojourn, target.pid, sojourn.path("last.db"), lambda summary: summary["calls"] > 1000)
    code, output = target.finish()
    check(code == 0 and "mistakes 0, work 1, ticks 1" in output, f"the target: {code}, {output}")
    print(f"{rounds} rounds, {left_something} of them left something to clean up")


main(test)
