#!/usr/bin/env python3
"""Direct mode: programs record themselves, in one of their own threads, for a collector on this machine.

direct.py BUILD_FOLDER
"""
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import free_port
from sojourn_testing import PATIENCE_S, SAMPLES, check, check_accounts, json_rows, main, wait_for

COUNTS = """SELECT f.name, sum(s.calls) AS calls FROM function_stats s JOIN functions f USING (function_id)
            GROUP BY 1 ORDER BY 1"""
STEPS = "SELECT coalesce(sum(calls), 0) AS calls FROM function_stats JOIN functions USING (function_id) " \
        "WHERE name = '{}'"


class Collector:
    """A collector server on loopback, by tcp or ipc. The test can kill and restart it."""

    def __init__(self, sojourn, name, kind="tcp"):
        self.sojourn = sojourn
        self.database = sojourn.path(name + ".db")
        self.socket = sojourn.path(name + ".ipc")
        self.url = f"tcp://127.0.0.1:{free_port()}" if kind == "tcp" else f"ipc://{self.socket}"
        self.log_path = sojourn.path(name + ".log")
        self.process = None

    def start(self):
        program = os.path.join(os.path.dirname(self.sojourn.program), "sojournd")
        heard = self.listened()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [program, "--listen", self.url, "--database", self.database], stderr=log)
        wait_for("the collector listens", lambda: self.listened() > heard)
        return self

    def listened(self):
        if not os.path.exists(self.log_path):
            return 0
        with open(self.log_path, encoding="utf-8") as log:
            return log.read().count("event=listening")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        check(self.process.wait(PATIENCE_S) == 0, "the collector ended badly")

    def sql(self, query):
        return self.sojourn.sql(self.database, query)

    def one(self, query):
        return list(self.sql(query)[0].values())[0]


class Direct:
    """Runs programs with libsojourn-direct.so."""

    def __init__(self, sojourn):
        self.sojourn = sojourn
        self.build = os.path.dirname(os.path.dirname(sojourn.program))
        self.library = os.path.join(self.build, "lib/libsojourn-direct.so")
        self.sample = os.path.join(self.build, "tests/samples/direct_life")
        self.ends = os.path.join(self.build, "tests/samples/ends")
        runtime = sojourn.path("run")
        os.makedirs(runtime, mode=0o700)
        sojourn.environment["XDG_RUNTIME_DIR"] = runtime
        self.log_path = os.path.join(sojourn.environment["XDG_STATE_HOME"], "sojourn/direct.log")
        self.spool_path = os.path.join(sojourn.environment["XDG_STATE_HOME"], "sojourn/spool")
        self.runtime = os.path.join(runtime, "sojourn")

    def environment(self, url, **settings):
        settings = {f"SOJOURN_DIRECT_{name}": value for name, value in settings.items()}
        return dict(self.sojourn.environment, LD_PRELOAD=self.library, SOJOURN_DIRECT=url,
                    **{"SOJOURN_DIRECT_WAIT": str(PATIENCE_S), **settings})

    def run(self, command, url, code=0, **settings):
        done = subprocess.run(command, env=self.environment(url, **settings), capture_output=True,
                              timeout=PATIENCE_S, check=False)
        check(done.returncode == code,
              f"{command} ended with {done.returncode}: {done.stderr} {self.log()}")
        check(done.stderr == b"", f"{command} said {done.stderr}")
        return done.stdout

    def start(self, command, url, **settings):
        return subprocess.Popen(command, env=self.environment(url, **settings), text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def log(self):
        if not os.path.exists(self.log_path):
            return ""
        with open(self.log_path, encoding="utf-8") as log:
            return log.read()

    def left(self):
        """Returns the files in the spool and the runtime directory."""
        return [entry for folder in (self.spool_path, self.runtime) if os.path.isdir(folder)
                for entry in os.listdir(folder)]

    def flush(self, code=0):
        done = self.sojourn.run(["flush", "--wait", str(PATIENCE_S)], capture_output=True, text=True)
        check(done.returncode == code, f"flush: {done}")
        return done.stdout


def settle(collector, direct):
    """Ends the collector. Its accounts must be correct, and the device must have no files left."""
    collector.stop()
    check_accounts(collector.sojourn, collector.database)
    twice = collector.sql("SELECT 1 FROM blocks GROUP BY stream_id, kind, first_event HAVING count(*) > 1")
    check(twice == [], "blocks were stored twice")
    check(direct.left() == [], f"left: {direct.left()}")


def counts_equal_those_of_record(sojourn, direct):
    """Compares the counts with those of `record`, for programs of Debian that do the same each time, with system
    libraries."""
    policy = sojourn.path("all.json")
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "modules": {"system": True}}, file)
    document = sojourn.path("document.txt")
    with open(document, "w", encoding="utf-8") as file:
        file.write("abc\n" * 1000)
    rows = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3000) "
    programs = {
        "sqlite3": ["sqlite3", ":memory:", rows + "SELECT sum(x) FROM c"],
        "git": ["git", "hash-object", document],
        "perl": ["perl", "-e", "my %h; $h{$_ % 97} += $_ for 1 .. 20000; "
                               "print join(',', map { $h{$_} } sort keys %h)"],
    }
    sojourn.environment.update(PERL_HASH_SEED="0", PERL_PERTURB_KEYS="0")
    for number, (name, command) in enumerate(programs.items()):
        collector = Collector(sojourn, name, "tcp" if number % 2 == 0 else "ipc").start()
        database = sojourn.path(name + "-record.db")
        alone = subprocess.run(command, env=sojourn.environment, capture_output=True, check=True)
        done, summary = sojourn.record(command, database, ["--libs"])
        check(done.returncode == 0 and summary["lost_calls"] == 0, f"{name}: record: {summary}")
        output = direct.run(command, collector.url, POLICY=policy)
        check(output == alone.stdout, f"{name}: it says {output} instead of {alone.stdout}")
        settle(collector, direct)
        check(collector.one("SELECT sum(device_lost_calls) AS lost FROM sessions") == 0, f"{name}: lost")
        ours = {row["name"]: row["calls"] for row in collector.sql(COUNTS)}
        theirs = {row["name"]: row["calls"] for row in sojourn.sql(database, COUNTS)}
        different = {key: (ours.get(key), theirs.get(key)) for key in {*ours, *theirs}
                     if ours.get(key) != theirs.get(key)}
        check(len(ours) > 100, f"{name}: {len(ours)} functions are no test")
        check(different == {}, f"{name}: {len(different)} functions: {list(different.items())[:20]}")


def signals_of(task):
    with open(f"{task}/status", encoding="utf-8") as file:
        return int(re.search(r"^SigBlk:\s*([0-9a-f]+)$", file.read(), re.M).group(1), 16)


def name_of(task):
    with open(f"{task}/comm", encoding="utf-8") as file:
        return file.read().strip()


def the_library_adds_one_thread_and_no_descriptor(sojourn, direct):
    collector = Collector(sojourn, "thread").start()
    with direct.start([direct.sample, "input"], collector.url) as program:
        program.stdin.write("go\n")
        program.stdin.flush()
        program.stdout.readline()
        tasks = [f"/proc/{program.pid}/task/{tid}" for tid in os.listdir(f"/proc/{program.pid}/task")]
        check(len(tasks) == 2, f"{len(tasks)} threads")
        own = [task for task in tasks if name_of(task) == "sojourn"]
        check(len(own) == 1, f"threads {[name_of(task) for task in tasks]}")
        open_signals = [number for number in range(1, 32)
                        if not signals_of(own[0]) >> (number - 1) & 1]
        check(open_signals == [signal.SIGKILL, signal.SIGSTOP], f"it takes signals {open_signals}")
        descriptors = sorted(map(int, os.listdir(f"/proc/{program.pid}/fd")))
        check(descriptors == [0, 1, 2], f"the program has descriptors {descriptors}")
        more = os.listdir(f"{own[0]}/fd")
        check(len(more) > 5, f"the thread has {more}: is it the recorder?")
        refused = sojourn.run(["attach", str(program.pid)], capture_output=True, text=True)
        check(refused.returncode == 1 and "libsojourn-direct.so" in refused.stderr,
              f"attaching to it: {refused}")
        program.stdin.close()
        check(program.wait(PATIENCE_S) == 5, "it ended otherwise")
    settle(collector, direct)
    check(collector.one(STEPS.format("d_step")) == 2000, "steps")


def child_programs_run_as_without_sojourn(sojourn, direct):
    """The environment and descriptors of programs that it runs are as without Sojourn. With `all` the programs join
    the session."""
    collector = Collector(sojourn, "children").start()
    script = "env | sort; ls /proc/self/fd; true"
    plain = dict(sojourn.environment, LD_PRELOAD="")
    alone = subprocess.run(["dash", "-c", script], env=plain, capture_output=True, check=True)
    del plain["LD_PRELOAD"]
    without = subprocess.run(["dash", "-c", script], env=plain, capture_output=True, check=True)
    check(alone.stdout != without.stdout, "LD_PRELOAD makes no difference: no test")
    for which in ("none", "forked", "all"):
        output = direct.run(["dash", "-c", script], collector.url, CHILDREN=which)
        check(output == without.stdout, f"{which}: {output} instead of {without.stdout}")
    settle(collector, direct)
    processes = [row["n"] for row in collector.sql(
        "SELECT count(*) AS n FROM processes GROUP BY session_id ORDER BY session_id")]
    check(processes[0] == 1 < processes[1] < processes[2], f"processes: {processes}")
    executed = collector.one("SELECT count(*) AS n FROM processes WHERE session_id = 3 AND how = 'exec'")
    check(executed >= 3, "env, sort and ls did not join")


def programs_replaced_by_exec_are_recorded(sojourn, direct):
    collector = Collector(sojourn, "replace").start()
    alone = subprocess.run([direct.ends], capture_output=True, check=False).stdout
    output = direct.run([direct.sample, "replace", direct.ends, "threads"], collector.url, code=3)
    check(output == alone, f"it says {output}")
    settle(collector, direct)
    sessions = collector.sql("SELECT command, state FROM sessions ORDER BY session_id")
    check([row["state"] for row in sessions] == ["completed", "completed"], f"{sessions}")
    check(collector.one(STEPS.format("d_step")) == 1000, "steps of the first program")
    check(collector.one(STEPS.format("ends_step")) == 3000, "steps of the second, with its threads")
    check(collector.one("SELECT count(*) AS n FROM threads WHERE session_id = 2") == 21, "threads")


def forks_join(sojourn, direct):
    collector = Collector(sojourn, "fork").start()
    direct.run([direct.ends, "fork"], collector.url, code=3)
    done = sojourn.path("done.txt")
    direct.run([direct.sample, "child", done], collector.url)
    wait_for("the child continues without its parent", lambda: os.path.exists(done))
    settle(collector, direct)
    check(collector.one(STEPS.format("ends_step")) == 1050, "steps of parent and child")
    check(collector.one("SELECT count(*) AS n FROM processes WHERE session_id = 1") == 2, "processes")
    steps = collector.one(STEPS.format("d_step"))
    check(1010 <= steps <= 3001110, f"steps of parent and orphan: {steps}")


def the_first_thread_may_leave(sojourn, direct):
    collector = Collector(sojourn, "leave").start()
    direct.run([direct.sample, "leave"], collector.url)
    settle(collector, direct)
    check(collector.one(STEPS.format("d_step")) == 1500, "steps")


def descriptors_are_not_shared(sojourn, direct):
    """A program that closes all descriptors loses no calls, and nothing is written to its files."""
    collector = Collector(sojourn, "close").start()
    path = sojourn.path("closed.txt")
    output = direct.run([direct.sample, "close", path], collector.url)
    check(output == b"3\n", f"its file has number {output}")
    with open(path, encoding="utf-8") as file:
        check(file.read() == "".join(f"line {i}\n" for i in range(200)), "its file was changed")
    settle(collector, direct)
    check(collector.one(STEPS.format("d_step")) == 21000, "steps")


# The thread that refuses ends by itself, some time after the program has begun.
ENDED_THREADS = os.path.join(SAMPLES, "ended_threads.sh")


def refusals_are_reported_in_the_log(sojourn, direct):
    budget = sojourn.path("budget.json")
    with open(budget, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "budget": "3%"}, file)
    local = f"tcp://127.0.0.1:{free_port()}"
    cases = [("tcp://192.0.2.1:7654", {}, "only a collector on this machine"),
             ("tcp://lab.example:7654", {}, "only a collector on this machine"),
             ("tls+tcp://127.0.0.1:7654", {}, "only a collector on this machine"),
             ("ipc://lab.ipc", {}, "absolute path"),
             (local, {"POLICY": budget}, "needs a recorder outside"),
             (local, {"POLICY": "/nowhere.json"}, "nowhere.json"),
             (local, {"CHILDREN": "some"}, "SOJOURN_DIRECT_CHILDREN"),
             (local, {"SPOOL_BYTES": "many"}, "SOJOURN_DIRECT_SPOOL_BYTES")]
    for url, settings, sentence in cases:
        before = len(direct.log())
        output = direct.run(["sh", ENDED_THREADS], url, **settings)
        check(output == b"0\n1\n", f"{url} {settings}: {output}")
        told = direct.log()[before:]
        check(sentence in told and "not recorded" in told, f"{url} {settings}: the log says {told}")
    check(direct.left() == [], f"left: {direct.left()}")


def the_doctor_reports_what_the_library_reports(sojourn, direct):
    """The doctor reports what the library reports, and leaves no files."""
    def look(**environment):
        done = sojourn.run(["doctor", "--json"], capture_output=True, text=True,
                           env=dict(sojourn.environment, **environment))
        rows = [row for row in json_rows(done.stdout) if row["check"] == "direct mode"]
        check(len(rows) == 1, f"doctor: {done}")
        return rows[0]
    place = sojourn.path("doctor")
    os.mkdir(place)
    found = look(TMPDIR=place)
    check(found["ok"] and found["found"] == direct.library, f"doctor: {found}")
    found = look(TMPDIR=place, HOME="here", XDG_STATE_HOME="", XDG_CACHE_HOME="")
    check(not found["ok"] and "neither HOME" in found["found"], f"without a place: {found}")
    check(os.listdir(place) == [] and direct.left() == [], f"left: {place} {direct.left()}")


def the_collector_may_be_killed(sojourn, direct):
    collector = Collector(sojourn, "killed").start()
    rounds, stored = 0, 0
    with direct.start([direct.sample, "input"], collector.url) as program:
        for _ in range(3):
            for _ in range(50):
                program.stdin.write("go\n")
                program.stdin.flush()
                rounds += 1
                check(program.stdout.readline() == f"{1000 * rounds}\n", "it says something else")
            wait_for("calls of this life", lambda: collector.one(
                "SELECT coalesce(sum(stored_calls), 0) FROM sessions") > stored)
            stored = collector.one("SELECT sum(stored_calls) FROM sessions")
            collector.kill()
            program.stdin.write("go\n")
            program.stdin.flush()
            rounds += 1
            program.stdout.readline()
            collector.start()
        program.stdin.close()
        check(program.wait(2 * PATIENCE_S) == 5, "it ended otherwise")
    settle(collector, direct)
    check(collector.one(STEPS.format("d_step")) == 1000 * (rounds + 1), "steps")


def kept_calls_are_delivered_later(sojourn, direct):
    """After an end without a collector, by _exit, a crash or a kill, spool and rings are kept. Their calls are
    delivered later."""
    collector = Collector(sojourn, "later", "ipc")
    before = len(direct.log())
    direct.run([direct.sample], collector.url, code=3, WAIT="0")
    check("sojourn flush" in direct.log()[before:], f"the log says {direct.log()[before:]}")
    direct.run([direct.sample, "quick"], collector.url, WAIT="0")
    for how, number in (("segv", signal.SIGSEGV), ("kill", signal.SIGKILL)):
        direct.run([direct.ends, how], collector.url, code=-number)
    check(len([name for name in direct.left() if name.endswith(".to")]) == 4, f"{direct.left()}")
    collector.start()
    output = direct.flush()
    check("4 sessions delivered, 0 kept" in output, f"flush says {output}")
    settle(collector, direct)
    check(collector.one(STEPS.format("d_step")) == 2000, "steps of those that ended")
    check(collector.one(STEPS.format("ends_step")) == 2000, "steps of those that were ended")
    states = sorted(row["state"] for row in collector.sql("SELECT state FROM sessions"))
    check(states == ["completed", "completed", "lost", "lost"], f"states {states}")


def a_full_spool_is_counted(sojourn, direct):
    """Without a collector a small spool fills up. Calls that do not fit become a gap, and each is counted."""
    collector = Collector(sojourn, "full", "ipc")
    direct.run([direct.ends, "flood"], collector.url, code=3, WAIT="0", SPOOL_BYTES="64k")
    collector.start()
    direct.flush()
    settle(collector, direct)
    # main, die, 2 works, 3,001,000 steps
    total = collector.one("SELECT stored_calls + device_lost_calls AS n FROM sessions")
    check(total == 3001004, f"{total} calls are counted")
    check(collector.one("SELECT device_lost_calls FROM sessions") > 0, "nothing was lost: no test")


def the_library_does_nothing_without_its_variable(sojourn, direct):
    """The library does nothing without SOJOURN_DIRECT. `sojourn record` can record such a program."""
    environment = dict(sojourn.environment, LD_PRELOAD=direct.library)
    done = subprocess.run([direct.sample], env=environment, capture_output=True, check=False)
    check((done.returncode, done.stdout, done.stderr) == (3, b"", b""), f"it ended {done}")
    database = sojourn.path("both.db")
    done, _ = sojourn.record([direct.sample], database, env=environment)
    check(done.returncode == 3, f"recorded it ended {done}")
    check(sojourn.sql(database, STEPS.format("d_step"))[0]["calls"] == 1000, "steps")
    check_accounts(sojourn, database)


def many_programs_at_once(sojourn, direct):
    collector = Collector(sojourn, "many").start()
    failures = []

    def run_some():
        try:
            for _ in range(3):
                direct.run([direct.ends, "threads"], collector.url, code=3)
        except Exception as failure:  # pylint: disable=broad-except
            failures.append(failure)

    threads = [threading.Thread(target=run_some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(failures == [], f"{failures}")
    settle(collector, direct)
    check(collector.one("SELECT count(*) AS n FROM sessions") == 12, "sessions")
    check(collector.one(STEPS.format("ends_step")) == 12 * 3000, "steps")


def test(sojourn, _):
    direct = Direct(sojourn)
    for situation in (the_library_does_nothing_without_its_variable, the_doctor_reports_what_the_library_reports,
                      refusals_are_reported_in_the_log,
                      the_library_adds_one_thread_and_no_descriptor, child_programs_run_as_without_sojourn,
                      programs_replaced_by_exec_are_recorded, forks_join, the_first_thread_may_leave,
                      descriptors_are_not_shared, the_collector_may_be_killed,
                      kept_calls_are_delivered_later, a_full_spool_is_counted,
                      many_programs_at_once, counts_equal_those_of_record):
        begin = time.monotonic()
        situation(sojourn, direct)
        print(f"{situation.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main(test)
