#!/usr/bin/env python3
"""One allocation fails while a device enrols, in its daemon, or in its recorder. None of them crashes or hangs, each
command is answered, the recorded program is not disturbed, and each call is stored or counted as lost. NNG 1.5.2 may
crash or hang if an allocation of its own fails: then a new daemon continues, and nothing is lost either.

device_memory.py BUILD_FOLDER [WORD FIRST STEP END]: some allocations; SJ_LONG=1: each without TLS, some with TLS.
With WORD (enroll, run or session): every STEP-th allocation from FIRST on and before END, without TLS.
"""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import Device, Collector, enrol
from sojourn_testing import IS_LONG, PATIENCE_S, Failure, check, json_rows, main, wait_for

NEVER = 1 << 60
HANG_S = 40  # more than the device waits for an answer
CALLS = 1003  # of the program `ends`
PRINTED = "1501500"
COMMANDS = (["status"], ["launch", "counted"], ["sessions"], ["doctor"], ["stop"])
SUMS = """
SELECT lower(hex(uuid)) AS uuid, state, sent_calls, stored_calls, device_lost_calls, lost_calls, sent_blocks,
       stored_blocks, (SELECT max(payload ->> 'processes' + payload ->> 'modules') FROM reports AS r
       WHERE r.session_id = s.session_id AND monitor = 'recorder' AND kind = 'not_recorded') AS unrecorded
FROM sessions AS s
"""


checked = set()  # sessions whose sums were checked


class Fault:
    """The n-th allocation of the processes that have `word` as an argument."""

    def __init__(self, sojourn, library, word, number):
        self.word = word
        self.number = number
        self.path = sojourn.path(f"fault-{word}-{number}")
        self.variables = {"LD_PRELOAD": library, "SJ_FAIL_ALLOC": f"{word} {number} {self.path}"}

    def __str__(self):
        return f"{self.word} {self.number} {self.lines('failed')}"

    def lines(self, kind):
        if not os.path.exists(self.path):
            return []
        with open(self.path, encoding="utf-8") as file:
            return [" ".join(line.split()[2:]) for line in file if line.startswith(kind)]

    def is_in_nng(self):
        return any("/libnng" in line for line in self.lines("failed"))

    def count(self):
        """Returns the number of allocations of the process that allocated most."""
        return max(map(int, self.lines("count")), default=0)


def log_of(device):
    with open(device.log_path, encoding="utf-8", errors="replace") as file:
        return file.read()


def end_party(party):
    if party.process is not None and party.process.poll() is None:
        party.process.kill()
        party.process.wait()


class Life:
    """The daemon of a device, from its start to its end, with one failing allocation."""

    def __init__(self, collector, device, fault):
        self.collector = collector
        self.device = device
        self.fault = fault
        self.sessions = []

    def check(self, condition, message):
        check(condition, f"{self.fault}: {message}\n{log_of(self.device)[-2000:]}")

    def start(self):
        sound = self.device.environment
        self.device.environment = dict(sound, **self.fault.variables)
        self.device.start()
        self.device.environment = sound

    def restart_if_ended(self):
        """Restarts the daemon if it has ended, as its unit does. It may end for lack of memory, if it says so."""
        code = self.device.process.poll()
        if code is not None:
            self.check(code == 1 or self.fault.is_in_nng(), f"the daemon ended with {code}")
            self.check(log_of(self.device).splitlines()[-1].startswith("sojourn-device: ") or self.fault.is_in_nng(),
                       "it does not say why")
            self.device.start()

    def command(self, words):
        sojourn = self.collector.sojourn
        with subprocess.Popen([sojourn.program, "device", "--database", self.collector.database, "--timeout",
                               str(PATIENCE_S // 4), self.device.name, *words], env=sojourn.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asked:
            def is_answered():
                self.restart_if_ended()
                return asked.poll() is not None
            wait_for(lambda: f"{self.fault}: an answer to {words}", is_answered)
            answer, problem = asked.communicate()
        if asked.returncode == 0:
            written = json.loads(answer)
            if words[0] == "launch":
                self.sessions.append(written["session"])
            return
        self.check(asked.returncode == 1 and problem.strip().rpartition(":")[2].strip(),
                   f"{words}: {asked.returncode}, {problem}")
        if "time" in problem:
            self.check(self.fault.is_in_nng(), f"{words} was not answered: {problem}")
            end_party(self.device)
            self.device.start()

    def end(self):
        self.restart_if_ended()
        self.device.stop()
        code = self.device.process.returncode
        self.check(code == 0 or self.fault.is_in_nng(), f"the daemon stopped with {code}")
        if self.device.spool():
            self.device.start()
            wait_for(lambda: f"{self.fault}: an empty spool, not {self.device.spool()}",
                     lambda: not self.device.spool())
            self.device.stop()

    def check_sums(self):
        rows = {row["uuid"]: row for row in self.collector.sql(SUMS)}
        for uuid in self.sessions:
            self.check(uuid in rows, f"session {uuid} is not at the collector")
        fresh = [row for uuid, row in rows.items() if uuid not in checked]
        checked.update(rows)
        for row in fresh:
            self.check(row["sent_calls"] is not None, f"a session has no end: {row}")
            self.check(row["sent_calls"] == row["stored_calls"] + row["device_lost_calls"], f"calls are missing: {row}")
            self.check(row["sent_blocks"] == row["stored_blocks"], f"blocks are missing: {row}")
            # the session of a program that could not be hooked for lack of memory says so
            self.check(row["state"] != "completed" or row["sent_calls"] == CALLS or row["unrecorded"],
                       f"not its calls: {row}")

    def count_outputs(self):
        """Returns how many programs printed the same as without Sojourn. Removes their logs."""
        folder = os.path.join(self.device.state, "sojourn/device/logs")
        printed = 0
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                printed += PRINTED in file.read()
            os.remove(os.path.join(folder, name))
        return printed

    def run(self):
        self.start()
        try:
            for words in COMMANDS:
                self.command(words)
            self.end()
            self.check_sums()
        finally:
            end_party(self.device)
            printed = self.count_outputs()
        self.check(printed >= len(self.sessions), "a recorded program did not work")


def live(collector, device, library, word, number):
    fault = Fault(collector.sojourn, library, word, number)
    Life(collector, device, fault).run()
    return fault


def run_or_hang(device, fault, *words):
    """Runs sojourn-device to its end. Returns None if NNG hangs for lack of memory."""
    begun = time.monotonic()
    with subprocess.Popen([device.program, *words], env=device.environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        try:
            wait_for(lambda: f"{fault}: the end of {words[0]}", lambda: process.poll() is not None or
                     (fault.is_in_nng() and time.monotonic() - begun > HANG_S))
            hangs = process.poll() is None
        finally:
            process.kill()
        answer, problem = process.communicate()
    return None if hangs else subprocess.CompletedProcess(words, process.returncode, answer, problem)


def enrol_without(collector, library, number):
    """Enrols a device. If that fails, it says why, and works with another invitation."""
    sojourn = collector.sojourn
    fault = Fault(sojourn, library, "enroll", number)
    device = Device(sojourn, f"enrolled-{collector.port}-{number}")
    invitation = sojourn.path(device.name + ".first")
    collector.device("--collector", collector.url, "invite", invitation)
    sound = device.environment
    device.environment = dict(sound, **fault.variables)
    done = run_or_hang(device, fault, "enroll", "--token-file", invitation, "--name", device.name, "--tag", "site=lab")
    device.environment = sound
    if done is None:
        return fault
    kept = os.path.join(device.state, "sojourn/device/collector.json")
    if done.returncode != 0:
        check(fault.is_in_nng() or done.returncode == 1 and done.stderr.startswith("sojourn-device: "),
              f"{fault}: {done}")
        check(not os.path.exists(kept), f"{fault}: it failed and is enrolled")
        return fault
    with open(kept, encoding="utf-8") as file:
        written = json.load(file)
    check(written["name"] == device.name and written["tags"] == {"site": "lab"}, f"{fault}: {written}")
    checks = {row["check"]: row for row in json_rows(device.run("doctor", "--json").stdout)}
    check(checks["token"]["ok"], f"{fault}: {checks['token']}")
    return fault



class PlainCollector(Collector):
    """A collector without TLS, because cryptography makes nearly all allocations."""

    def start(self):
        self.url = f"tcp://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [os.path.join(os.path.dirname(self.sojourn.program), "sojournd"), "--listen", self.url, "--database",
             self.database], stderr=self.log)
        wait_for("the collector's port", self.is_open)


def catalogue(device, ends):
    with open(os.path.join(device.state, "sojourn/device/apps.json"), "w", encoding="utf-8") as file:
        json.dump({"apps": [{"name": "counted", "command": [ends, "return"],
                             "environment": {"SITE": "lab"}}]}, file)


def rounds_of(word, one, choose):
    """Runs the rounds that `choose` selects from all allocations of a process. Returns the number of problems."""
    count = one(NEVER).count()
    check(count > 100, f"{word} made {count} allocations")
    numbers = choose(count)
    failed = problems = 0
    for number in numbers:
        try:
            failed += bool(one(number).lines("failed"))
        except Failure as problem:
            problems += 1
            print(problem, flush=True)
    print(f"{word}: {count} allocations, {failed} of {len(numbers)} failed, {problems} problems", flush=True)
    check(failed + problems > len(numbers) // 2, f"{word}: most allocations did not happen")
    return problems


def at_collector(sojourn, collector, rounds):
    """Runs rounds with one device at one collector. Returns the number of problems."""
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    library = os.path.join(build, "tests/libfail_one_alloc.so")
    device = Device(sojourn, "at-" + os.path.basename(collector.database).removesuffix(".db"))
    try:
        enrol(collector, device)
        catalogue(device, os.path.join(build, "tests/samples/ends"))
        return sum(rounds_of(word, lambda number, word=word: enrol_without(collector, library, number)
                             if word == "enroll" else live(collector, device, library, word, number), choose)
                   for word, choose in rounds.items())
    finally:
        for party in (device, collector):
            end_party(party)


def samples(number):
    """Chooses `number` numbers below a count, at equal distances."""
    return lambda count: range(0, count, max(1, -(-count // number)))


def test(sojourn, arguments):
    if arguments:
        word = arguments[0]
        first, step, end = map(int, arguments[1:4])
        rounds = {word: lambda count: range(first, min(count, end), step)}
    else:
        rounds = dict.fromkeys(("enroll", "run", "session"), range if IS_LONG else samples(6))
    problems = at_collector(sojourn, PlainCollector(sojourn, name="plain"), rounds)
    if not arguments:
        rounds = dict.fromkeys(rounds, samples(100 if IS_LONG else 2))
        problems += at_collector(sojourn, Collector(sojourn, name="tls"), rounds)
    check(problems == 0, f"{problems} problems")


if __name__ == "__main__":
    main(test)
