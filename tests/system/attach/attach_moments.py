#!/usr/bin/env python3
"""Detaches while a thread of the process is in the agent or about to enter it: in a fork, where the C library has
read the handler's address but not called it; in the agent, for a module that is being loaded; in the loader, which
holds the lock that unloading needs, or will call the agent when it initialises a module. The process continues
unchanged, and so do threads that outlive the first thread. What cannot be unloaded stays mapped and is reported,
and the next detach removes it. A process that ends meanwhile is left alone. attach_moments.py BUILD_FOLDER SAMPLE;
SJ_LONG=1: 50 times, constructors at more moments"""
import json
import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, attach, check_same, code_bytes, look, mapped_bytes, start_attach
from sojourn_testing import IS_LONG, PATIENCE_S, check, children, main, wait_for


class Moment:
    """One attached process with a thread that has reached a given moment."""

    def __init__(self, sojourn, sample, order, waiting="", delay=0):
        self.sojourn, self.sample, self.order = sojourn, sample, order
        self.arguments = [os.path.join(os.path.dirname(sample), "plugin.so"), waiting, str(delay)]
        self.recorder = None
        self.told = ""

    def __enter__(self):
        self.target = Target([self.sample, *self.arguments])
        try:
            self.target.ready()
            self.before, self.code = look(self.target.pid), code_bytes(self.target.pid)
            self.summary = self.sojourn.path(f"{self.order}-{self.target.pid}.json")
            self.recorder = start_attach(self.sojourn, self.target.pid,
                                         self.sojourn.path(f"{self.target.pid}.db"),
                                         ["--summary", self.summary])
            self.tell(self.order)
            self.hear("there")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        self.target.kill()
        if self.recorder:
            self.recorder.kill()
            self.recorder.wait()

    def tell(self, order):
        self.target.process.stdin.write(order)
        self.target.process.stdin.flush()

    def hear(self, expected):
        line = self.target.process.stdout.readline().strip()
        check(line == expected, f"'{line}' and not '{expected}' from the target, which ends with "
                                f"{self.target.process.poll()}")

    def leave(self):
        """Detaches. Returns how many bytes stay mapped in the process."""
        done = self.sojourn.run(["detach", str(self.target.pid)], capture_output=True, text=True)
        check(done.returncode == 0, f"detach: {done}")
        status = self.recorder.wait(PATIENCE_S)
        self.told = self.recorder.stderr.read()
        check(status == 0, f"the recorder ends with {status}: {self.told}")
        with open(self.summary, encoding="utf-8") as file:
            told = json.load(file)
        check(told["calls"] > 0, f"nothing was recorded: {told}")
        return told["left_bytes"]

    def end(self, same):
        """Checks that everything is as before, except the modules that the process has loaded since."""
        done = self.sojourn.run(["detach", str(self.target.pid)], capture_output=True, text=True)
        check(done.returncode == 0, f"second detach: {done}")
        now = code_bytes(self.target.pid)
        check(not any("libsojourn" in path for _, _, path in now), f"the agent stays: {sorted(now)}")
        check_same(self.before if same else {}, look(self.target.pid), self.code,
                   {key: value for key, value in now.items() if same or key in self.code},
                   "in the end")
        status, output = self.target.finish()
        check(status == 0 and output == "", f"the target ends with {status}: {output}")


def file_bytes(pid, path):
    """Returns the executable part of a mapped file twice: as it is in the process and as it is in the file."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        fields = next(line.split() for line in maps if path in line and "x" in line.split()[1])
    low, high = (int(part, 16) for part in fields[0].split("-"))
    with open(f"/proc/{pid}/mem", "rb") as memory, open(path, "rb") as file:
        memory.seek(low)
        file.seek(int(fields[2], 16))
        kept = file.read(high - low)
        return memory.read(len(kept)), kept


def test_fork(sojourn, sample, order):
    """With command `u` the fork begins between the steps of the detach. With `d` it runs below a deep signal
    handler."""
    with Moment(sojourn, sample, order) as moment:
        left = moment.leave()
        if order == "u":
            moment.hear("there")
        moment.tell("g")
        moment.hear("done")
        file = mapped_bytes(sojourn)
        check(left == file, f"{order}: {left} bytes stay while a fork is about to call the agent")
        moment.end(True)


def test_no_thread_to_use(sojourn, sample):
    """A thread in fork may hold every lock of the C library, so the agent has no thread to use."""
    target = Target([sample])
    try:
        target.ready()
        before, code = look(target.pid), code_bytes(target.pid)
        for order, heard in (("h", "there\n"), ("g", "done\n")):
            target.process.stdin.write(order)
            target.process.stdin.flush()
            line = target.process.stdout.readline()
            check(line == heard, f"it says '{line}', not '{heard}'")
            done, summary = attach(sojourn, target.pid, sojourn.path("held.db"), ["--for", "10ms"])
            if order == "h":
                check(done.returncode == 1 and "came to a point" in done.stderr, f"{done}")
            else:
                check(done.returncode == 0 and summary["left_bytes"] == 0, f"{done}")
            check_same(before if order == "g" else {}, look(target.pid), code,
                       code_bytes(target.pid), f"after {order}")
        status, output = target.finish()
        check(status == 0 and output == "", f"it ends with {status}: {output}")
    finally:
        target.kill()


def test_list(sojourn, sample):
    with Moment(sojourn, sample, "p") as moment:
        left = moment.leave()
        moment.tell("g")
        moment.hear("done")
        check(left == mapped_bytes(sojourn), f"{left} bytes stay")
        moment.end(True)


def test_loading(sojourn, sample):
    """The loading continues when the code is restored, and would then hook the new module."""
    plugin = os.path.join(os.path.dirname(sample), "plugin.so")
    with Moment(sojourn, sample, "l") as moment:
        left = moment.leave()
        moment.hear("done")
        memory, file = file_bytes(moment.target.pid, plugin)
        check(memory == file, "a module was hooked when everything else had been restored")
        check(left == 0, f"{left} bytes stay")
        moment.end(False)


def test_constructor(sojourn, sample):
    waiting = os.path.join(os.path.dirname(sample), "array.so")
    with Moment(sojourn, sample, "w", waiting) as moment:
        left = moment.leave()
        moment.tell("g")
        moment.hear("initialised 2, strange 0")
        moment.hear("done")
        check(left == mapped_bytes(sojourn), f"{left} bytes stay")
        moment.end(False)


def test_late_constructor(sojourn, sample, delay):
    """The constructor begins at about the time of unloading, and runs until unloading is over."""
    waiting = os.path.join(os.path.dirname(sample), "array.so")
    with Moment(sojourn, sample, "c", waiting, delay) as moment:
        left = moment.leave()
        moment.hear("there")
        moment.tell("g")
        moment.hear("initialised 2, strange 0")
        moment.hear("done")
        check(left in (0, mapped_bytes(sojourn)), f"{left} bytes stay")
        moment.end(False)


def test_end(sojourn, sample):
    """The process ends before the agent is unloaded."""
    with Moment(sojourn, sample, "e") as moment:
        check(moment.leave() == 0, "bytes stay in a process that has ended")
        check("could not be detached" not in moment.told, moment.told)
        status, output = moment.target.finish()
        check(status == 7 and output == "", f"the target ends with {status}: {output}")


def test_outlived(sojourn, sample):
    """The first thread of the process ends during the recording. The other threads keep running, and the recorder
    detaches from them."""
    with Moment(sojourn, sample, "t") as moment:
        left = moment.leave()
        threads = [tid for tid in os.listdir(f"/proc/{moment.target.pid}/task") if tid != str(moment.target.pid)]
        check(len(threads) == 2, f"{len(threads)} threads outlive the first")
        with open(f"/proc/{threads[0]}/maps", encoding="utf-8") as file:
            check(left == 0 and "libsojourn" not in file.read(), f"the agent stays, {left} bytes are reported")
        status, output = moment.target.finish()
        check(status == 0 and output == "", f"the target ends with {status}: {output}")


def stop(recorder):
    """Two Ctrl-C do this. The program lives on."""
    def interrupted():
        recorder.send_signal(signal.SIGINT)
        return recorder.poll() is not None

    wait_for("the recorder ends", interrupted)


def test_initialisation(sojourn, sample):
    """Tests a program that the recorder has started: at its initialisation, a module's slots would be pointed at
    the hooks."""
    waiting = os.path.join(os.path.dirname(sample), "resolving.so")
    command = [sojourn.program, "record", "--quiet", "-o", sojourn.path("launched.db"), "--library-calls",
               "--module", "attach_moments", "--module", "resolving.so", "--", sample, "", waiting]
    for leaves in (False, True):
        pid = 0
        program = Target(command, env=sojourn.environment)
        try:
            program.ready()
            pid = children(program.pid)[0]
            program.process.stdin.write("w")
            program.process.stdin.flush()
            line = program.process.stdout.readline()
            check(line == "there\n", f"it says '{line}'")
            if leaves:
                stop(program.process)
                done = sojourn.run(["detach", str(pid)], capture_output=True, text=True)
                check(done.returncode == 0, f"{done}")
            program.process.stdin.write("g")
            status, output = program.finish()
        finally:
            program.kill()
            if os.path.exists(f"/proc/{pid}"):
                os.kill(pid, signal.SIGKILL)
        told = re.fullmatch(r"initialised 2, strange (\d+)\ndone\n", output)
        check(status == (130 if leaves else 0) and told, f"it ends with {status}: {output}")
        check((told[1] == "0") == leaves, f"{told[1]} slots do not lead to their functions, detached: {leaves}")


def test(sojourn, arguments):
    sample = arguments[0]
    for _ in range(50 if IS_LONG else 1):
        for order in "fdu":
            test_fork(sojourn, sample, order)
        test_no_thread_to_use(sojourn, sample)
        test_list(sojourn, sample)
        test_end(sojourn, sample)
        test_outlived(sojourn, sample)
        test_loading(sojourn, sample)
        test_constructor(sojourn, sample)
        for delay in (0, 1000, 2000, 4000) if IS_LONG else (0, 2000):
            test_late_constructor(sojourn, sample, delay)
        test_initialisation(sojourn, sample)


if __name__ == "__main__":
    main(test)
