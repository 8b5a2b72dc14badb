"""Helpers for the tests of attaching: the target process, and its state as seen from outside."""
import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import threading
import time

from sojourn_testing import PATIENCE_S, check, json_rows, wait_for


# An attach is refused with one of these texts if the process ends or executes another program meanwhile.
ENDINGS = ("has ended", "runs another program", "there is no process", "first thread of process", "is ending",
           "cannot be traced or has ended")


def reports_an_end(done):
    return any(sentence in done.stderr for sentence in ENDINGS)


def work_of(process):
    """Returns the rounds of work that a sample, or the program of a recorder, has done so far."""
    process.stdin.write("?")
    process.stdin.flush()
    return int(process.stdout.readline())


def let_work(process, rounds=3):
    """Waits until each thread of the sample has done that many more rounds."""
    end = work_of(process) + rounds
    wait_for(f"{rounds} rounds of work", lambda: work_of(process) >= end)


class Target:
    """A process to attach to, with its input and output."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options
        )
        self.pid = self.process.pid

    def ready(self):
        check(self.process.stdout.readline() == "ready\n", "the target did not start")
        return self

    def work(self):
        return work_of(self.process)

    def finish(self):
        output, _ = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, output

    def kill(self):
        self.process.kill()
        self.process.wait()


def mappings(pid):
    """Returns (low, high, protection, path) of each mapping, without the mappings that the heap moves."""
    found = []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        for line in file:
            fields = line.split(None, 5)
            low, high = (int(part, 16) for part in fields[0].split("-"))
            found.append((low, high, fields[1], fields[5].strip() if len(fields) > 5 else ""))
    return found


def code_bytes(pid):
    """Returns every byte of each executable mapping that belongs to a file."""
    with open(f"/proc/{pid}/mem", "rb") as memory:
        result = {}
        for low, high, protection, path in mappings(pid):
            if "x" in protection and path.startswith("/"):
                memory.seek(low)
                result[(low, high, path)] = memory.read(high - low)
                if len(result[(low, high, path)]) != high - low:
                    raise ProcessLookupError(f"process {pid} ended while it was read")
        return result


def look(pid):
    """Returns the state that an attach must not change: mappings, descriptors, threads and tracer."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        status = file.read()
    return {
        "mappings": sorted(
            (protection, path, high - low if path.startswith("/") else 0)
            for low, high, protection, path in mappings(pid)
            if path.startswith("/") or "x" in protection
        ),
        "descriptors": sorted(
            (name, os.readlink(f"/proc/{pid}/fd/{name}")) for name in os.listdir(f"/proc/{pid}/fd")
        ),
        "threads": sorted(os.listdir(f"/proc/{pid}/task")),
        "tracer": re.search(r"TracerPid:\t(\d+)", status).group(1),
        "masks": re.findall(r"Sig(?:Blk|Ign|Cgt):\t\w+", status),
    }


def check_same(before, after, code_before, code_after, when):
    for key, value in before.items():
        check(after[key] == value, f"{key} differ {when}:\n{value}\n{after[key]}")
    check(code_before.keys() == code_after.keys(), f"other code is mapped {when}: {sorted(set(code_before) ^ set(code_after))}")
    for key, value in code_before.items():
        if value != code_after[key]:
            places = [i for i in range(len(value)) if value[i] != code_after[key][i]]
            check(False, f"{len(places)} bytes of {key} differ {when}, first at {places[0]:#x}")


def attach(sojourn, pid, database, options=(), **run_options):
    """Attaches and detaches. Returns the completed process and its summary."""
    summary = sojourn.path(f"attach-{pid}.json")
    if os.path.exists(summary):
        os.unlink(summary)
    run_options.setdefault("capture_output", True)
    run_options.setdefault("text", True)
    done = sojourn.run(
        ["attach", "--quiet", "-o", database, "--summary", summary, *options, str(pid)],
        **run_options,
    )
    if not os.path.exists(summary):
        return done, None
    with open(summary, encoding="utf-8") as file:
        return done, json.load(file)


def copy_for_all_users(sojourn):
    """Copies the program and its agent to a folder that other users can read."""
    build = os.path.dirname(os.path.dirname(sojourn.program))
    for name in ("bin/sojourn", "lib/libsojourn-agent.so"):
        path = sojourn.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(os.path.join(build, name), path)
    return sojourn.path("bin/sojourn")


def start_attach(sojourn, pid, database, options=()):
    """Starts an attach in the background and waits until the recorder records."""
    process = subprocess.Popen(
        [sojourn.program, "attach", "--quiet", "-o", database, *options, str(pid)],
        env=sojourn.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    wait_until_recorded(sojourn, pid, process)
    return process


def has_agent(pid):
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
            return "libsojourn-agent" in file.read()
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_recorded(sojourn, pid, recorder):
    def is_recorded():
        if recorder.poll() is not None:
            check(False, f"the recorder ended with {recorder.returncode}: {recorder.communicate()}")
        if not has_agent(pid):  # has_agent() starts `ps`, so it is not called in each step
            return None
        listed = sojourn.run(["ps", "--recorded"], capture_output=True, text=True).stdout
        return re.search(rf"^ *{pid} .*recorded: ", listed, re.M)

    wait_for(f"process {pid} is recorded", is_recorded)


def attach_until(sojourn, pid, database, is_enough, options=()):
    """Attaches for longer and longer, each time with a new database, until is_enough(summary) is true. On a machine
    under load the process may run late. Every attach must work."""
    for milliseconds in (30, 300, 3000, 30000, 300000):
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(database + suffix):
                os.unlink(database + suffix)
        done, summary = attach(sojourn, pid, database, ["--for", f"{milliseconds}ms", *options],
                               timeout=2 * PATIENCE_S)
        check(done.returncode == 0 and summary is not None, f"attach to {pid}: {done}")
        if is_enough(summary):
            return done, summary
    check(False, f"not enough in {milliseconds} ms: {summary}")


def set_policy(sojourn, pid, *options):
    done = sojourn.run(["policy", "set", "--json", *options, str(pid)], capture_output=True, text=True)
    check(done.returncode == 0, f"policy set {options}: {done}")
    return json_rows(done.stdout)[0]


def check_left(code, pid, what):
    """Checks that the code that existed before is unchanged. Code that the process has loaded since is its own. A
    process that has ended or executed another program is not compared."""
    try:
        now = code_bytes(pid)
    except OSError:
        return
    for key, value in code.items():
        check(now.get(key, value) == value, f"bytes of {key} differ in {what}")
    check(not any("libsojourn-agent" in path for _, _, path in now), f"the agent stays in {what}")


def mapped_bytes(sojourn):
    """Returns the bytes that a process maps of the agent's file, in whole pages."""
    listed = subprocess.run(["readelf", "-lW", os.path.join(os.path.dirname(sojourn.program), "../lib/libsojourn-agent.so")],
                          capture_output=True, text=True, check=True).stdout
    loaded = [line.split() for line in listed.splitlines() if line.split()[:1] == ["LOAD"]]
    return max(int(words[2], 16) + int(words[4], 16) + 4095 for words in loaded) // 4096 * 4096


class Met:
    """Counts how often the test attached to a process and detached, and the calls that it recorded.
    `forks_threads`: the process forks children while another thread loads a library. The loader of such a child
    stays locked, so the agent's file, and nothing else, stays mapped in it."""

    def __init__(self, forks_threads=False):
        self.forks_threads = forks_threads
        self.rounds = 0
        self.calls = 0

    def again(self, sojourn, pid, has_ended, chance, options, what):
        """Attaches once more, at a random moment. The process may end at any moment. While it lives, the attach
        must work and leave nothing behind."""
        database = sojourn.path("met.db")
        try:
            code = code_bytes(pid)
        except OSError:
            code = {}
        if os.path.exists(database):
            os.unlink(database)
        done, summary = attach(sojourn, pid, database,
                               ["--for", f"{chance.randrange(5, 60)}ms", *options])
        if summary is None:
            check(has_ended() or reports_an_end(done), f"{what}: {done}")
        else:
            left = summary["left_bytes"]
            check(left == 0 or self.forks_threads and left % mapped_bytes(sojourn) == 0,
                  f"{what}: {left} bytes stay")
            check_left(code, pid, what)
            self.rounds += 1
            self.calls += summary["calls"]
        time.sleep(chance.uniform(0, 0.1))


def run_attached(sojourn, command, chance, options, stdin=None, forks_threads=False, **popen):
    """Runs a command while the test attaches to it and detaches repeatedly. Returns the digest of its output, its
    status, the rounds and the calls."""
    with open(stdin or os.devnull, "rb") as given:
        process = subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, **popen)
    digest = hashlib.sha256()
    reader = threading.Thread(target=lambda: digest.update(process.stdout.read()))
    reader.start()
    met = Met(forks_threads)
    time.sleep(chance.uniform(0, 0.1))
    while process.poll() is None:
        met.again(sojourn, process.pid, lambda: process.poll() is not None, chance, options, command)
    reader.join()
    return digest.hexdigest(), process.wait(), met.rounds, met.calls


@contextlib.contextmanager
def attach_meanwhile(sojourn, pid, chance, options):
    """Attaches to a process and detaches repeatedly while the block under `with` runs."""
    met, end, failures = Met(), threading.Event(), []

    def run():
        try:
            while not end.is_set():
                met.again(sojourn, pid, lambda: False, chance, options, pid)
        except Exception as failure:
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield met
    finally:
        end.set()
        thread.join()
    if failures:
        raise failures[0]


def run_plain(command, stdin=None, **options):
    """Runs a command without Sojourn. Returns the digest of its output, its status and its duration."""
    with open(stdin or os.devnull, "rb") as given:
        start = time.monotonic()
        done = subprocess.run(command, stdin=given, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, **options)
    return (hashlib.sha256(done.stdout).hexdigest(), done.returncode), time.monotonic() - start


def until_met(work, least_rounds=1, least_calls=1):
    """Runs work(size) until it was attached to often enough. work(size) runs a workload and returns the rounds in
    which the test attached, and the calls recorded meanwhile. A fast machine may end the workload before the first
    attach, so the size doubles until both sums suffice."""
    rounds = calls = 0
    for doublings in range(12):
        met, made = work(1 << doublings)
        rounds, calls = rounds + met, calls + made
        if rounds >= least_rounds and calls >= least_calls:
            return
    check(False, f"{rounds} rounds and {calls} calls in up to {1 << doublings} times the workload")
