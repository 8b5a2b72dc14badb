"""Helpers for the system tests: run `sojourn`, query its databases, check accounts."""
import contextlib
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

# The command that runs programs for AArch64 without a recorder. QEMU up to 7.2 keeps translated code in GLib's slices.
# A fork leaves the locks of the slices held in the child, so the emulator must not use slices.
EMULATOR = ["env", "G_SLICE=always-malloc", "qemu-aarch64", "-U", "G_SLICE", "-L", "/usr/aarch64-linux-gnu"]


# The longest time that a test waits, in seconds. A machine under load is slow, and a wait ends when its condition is
# true. The value is less than the TIMEOUT of system tests, so that the test reports what it waited for.
PATIENCE_S = 300

# How often a test records a program again if calls got lost on a machine under load.
ATTEMPTS = 4

# True if the long forms of the tests are asked for.
IS_LONG = os.environ.get("SJ_LONG", "") not in ("", "0")

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples")


def json_rows(text):
    """Returns the rows that a command prints with --json."""
    written = json.loads(text)
    check(set(written) == {"schema", "rows"} and written["schema"] == 1, f"not the rows of a command: {str(text)[:200]}")
    return written["rows"]


class Failure(Exception):
    """A check that failed."""


def check(condition, message):
    if not condition:
        raise Failure(message)


def wait_for(what, condition, seconds=PATIENCE_S):
    """Returns the value of the condition as soon as it is true. `what` is a text, or a function that returns one."""
    deadline = time.monotonic() + seconds
    asked = time.monotonic()
    while not (value := condition()):
        now = time.monotonic()
        check(now < deadline, f"waited in vain: {what() if callable(what) else what}")
        # a condition often starts a process: sleeps leave most of the time to others
        time.sleep(min(max(0.02, 3 * (now - asked)), 0.1))
        asked = time.monotonic()
    return value


def function_lines(text):
    """Returns the lines of a function.txt without their numbers, times and threads. Each line must name a thread."""
    lines = [re.fullmatch(r"\d+\[\d+,\d+\](.*) tid:[1-9]\d*( ~)?", line) for line in text.splitlines()]
    check(None not in lines, f"not a line of function.txt, or without a thread: {text[:2000]}")
    return [line[1] + (line[2] or "") for line in lines]


def sample_text(name):
    """Returns the source of a program of tests/samples, for a test that builds it with several compilers or changes
    it."""
    with open(os.path.join(SAMPLES, name), encoding="utf-8") as file:
        return file.read()


def build_sample(sojourn, name, *options, program=None, compiler="gcc"):
    """Compiles a program of tests/samples into the test's folder. Returns its path."""
    path = program or sojourn.path(os.path.splitext(os.path.basename(name))[0])
    subprocess.run([compiler, os.path.join(SAMPLES, name), *options, "-o", path], check=True)
    return path


def children(pid):
    """Returns the child processes of a process, oldest first, or none if the process is gone."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def stop_all_threads(pid):
    """Stops all threads of a process. Other threads run until the thread that receives the signal gets a processor,
    so this waits."""
    def states():
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError):
                with open(f"/proc/{pid}/task/{thread}/stat", encoding="utf-8") as file:
                    yield file.read().rpartition(")")[2].split()[0]

    os.kill(pid, signal.SIGSTOP)
    wait_for("all threads stand still", lambda: set(states()) == {"T"})


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def let_run(pid, ticks=20):
    """Waits until a process has used `ticks` more hundredths of a second of processor time."""
    end = cpu_ticks(pid) + ticks
    wait_for(f"process {pid} runs on", lambda: cpu_ticks(pid) >= end)


class Sojourn:
    """The built programs in one folder, and a scratch folder for one test."""

    def __init__(self, bin_folder):
        self.program = os.path.abspath(os.path.join(bin_folder, "sojourn"))
        self.scratch = tempfile.TemporaryDirectory(prefix="sojourn-test-")
        self.folder = self.scratch.name
        self.checked = {}  # databases whose sums agree, with their content at that time
        self.environment = dict(
            os.environ,
            XDG_CACHE_HOME=os.path.join(self.folder, "cache"),
            XDG_STATE_HOME=os.path.join(self.folder, "state"),
        )

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, arguments, **options):
        options.setdefault("env", self.environment)
        options.setdefault("timeout", PATIENCE_S)
        return subprocess.run([self.program, *arguments], **options)

    def record(self, command, database, options=(), **run_options):
        """Records a command. Returns the completed process and the summary."""
        summary = self.path("summary.json")
        run_options.setdefault("capture_output", True)
        done = self.run(
            ["record", "--quiet", "-o", database, "--summary", summary, *options, "--", *command],
            **run_options,
        )
        try:
            with open(summary, encoding="utf-8") as file:
                return done, json.load(file)
        except FileNotFoundError:
            return done, None

    def record_all(self, command, database, options=(), **run_options):
        """Records a command as `record` does, and again if calls were lost. A program waits up to 10 s for a
        recorder that gets no processor. After that, calls are missing and counted as lost."""
        for _ in range(ATTEMPTS):
            for suffix in ("", "-wal", "-shm"):
                if os.path.exists(database + suffix):
                    os.unlink(database + suffix)
            done, summary = self.record(command, database, options, **run_options)
            if summary is None or summary["lost_calls"] == 0:
                break
        return done, summary

    def sql(self, database, query):
        """Returns the rows of a query, each a dict."""
        done = self.run(
            ["sql", "--json", "--limit", "5000000", query, database],
            capture_output=True, text=True,
        )
        check(done.returncode == 0, f"sql failed: {query}\n{done.stderr}")
        return json_rows(done.stdout)

    def sql_once_made(self, database, query):
        """Returns the rows of a query, or none if the recorder has not created the database yet."""
        if not os.path.exists(database):
            return []
        done = self.run(["sql", "--json", query, database], capture_output=True, text=True)
        check(done.returncode == 0 or "it holds no recording" in done.stderr,
              f"sql failed: {query}\n{done.stderr}")
        return json_rows(done.stdout) if done.returncode == 0 else []

    @contextlib.contextmanager
    def sql_lines(self, database, query):
        """Returns the rows of a long result as lines of CSV, without the heading."""
        command = [self.program, "sql", "--csv", "--limit", "100000000", query, database]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self.environment) as done:
            next(done.stdout, None)
            yield done.stdout
        check(done.returncode == 0, f"sql failed: {query}")


def check_accounts(sojourn, database):
    """Checks sent = stored + counted lost for every session of a database."""
    for row in sojourn.sql(
        database,
        "SELECT session_id, state, stored_calls, lost_calls, sent_calls, device_lost_calls, "
        "stored_blocks, sent_blocks, (SELECT coalesce(sum(calls), 0) FROM gaps "
        "WHERE gaps.session_id = sessions.session_id AND reason <> 'orphan') AS gap_calls FROM sessions",
    ):
        check(row["sent_calls"] is not None, f"session has no end: {row}")
        check(
            row["stored_calls"] + row["device_lost_calls"] == row["sent_calls"],
            f"sent is not stored + lost: {row}",
        )
        check(row["lost_calls"] <= row["device_lost_calls"], f"more lost than told: {row}")
        check(row["stored_blocks"] == row["sent_blocks"], f"blocks are missing: {row}")
        check(row["gap_calls"] == row["device_lost_calls"], f"gaps do not count what was lost: {row}")
    check_sums(sojourn, database)


def check_sums(sojourn, database):
    """Checks that calls, call paths and functions agree, and that no time counts twice."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "contradictions.sql"), encoding="utf-8") as file:
        rows = sojourn.sql(database, file.read())
    check(not rows, f"{len(rows)} sums of {os.path.basename(database)} contradict others: {rows[:3]}")
    sojourn.checked[os.path.realpath(database)] = content_of(database)


def content_of(database):
    """Returns a value that changes with each change of a database."""
    files = [os.stat(database + end) for end in ("", "-wal") if os.path.exists(database + end)]
    return [(file.st_size, file.st_mtime_ns) for file in files]


def is_ours(database):
    """True if the header of a file marks it as a database of Sojourn (application_id, sqlite.org/fileformat.html)."""
    with open(database, "rb") as file:
        return file.read(72)[68:] == b"SJLB"


def check_rest(sojourn):
    """Checks the sums of all databases that the test has made or changed since the last check."""
    for database in glob.glob(sojourn.path("**/*.db"), recursive=True):
        if is_ours(database) and sojourn.checked.get(os.path.realpath(database)) != content_of(database):
            check_sums(sojourn, database)


def main(test, checks_sums=True):
    """Runs test(sojourn, arguments) on the build folder given on the command line. The sums of all databases that
    the test leaves must agree, unless the test itself writes other figures."""
    sojourn = Sojourn(os.path.join(sys.argv[1], "bin"))
    try:
        test(sojourn, sys.argv[2:])
        if checks_sums:
            check_rest(sojourn)
    except Failure as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)
    print("passed")
