#!/usr/bin/env python3
"""Redaction: what a policy redacts (texts of functions, paths, command lines) is in no byte of the shared memory, of
the spool and of the database, even if the recorder is killed. All other values and calls are recorded, and the session
names the policy. Without the policy's "redact" each of these places has the secrets.

redaction.py BUILD_FOLDER
"""
import glob
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import mappings
from sojourn_testing import build_sample, check, check_accounts, main

# The shared memory has texts in pieces of 8 bytes, so the first 8 bytes are what the test searches.
PIECE_BYTES = 8
VALUE, LINE, FOLDER = "velvet42-value", "orchid17-line", "saffron9-folder"
SECRETS = (VALUE, LINE, FOLDER)
RULES = [{"name": "password", "function": "log_in", "argument": 2, "as": "string"},
         {"name": "tries", "function": "log_in", "argument": 3, "as": "int"},
         {"name": "typed", "function": "sign_up"},
         {"name": "greeted", "function": "greet", "argument": 1, "as": "string"}]
REDACT = {"values": ["log_*", "sign_up"], "paths": True}


def write_policy(sojourn, name, **more):
    path = sojourn.path(f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "name": name, "values": RULES, **more}, file)
    return path


def found_in(data):
    return {secret for secret in SECRETS if secret[:PIECE_BYTES].encode() in data}


def written_part(path):
    """Returns the bytes of a file without its holes."""
    parts = []
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        at = 0
        while at < size:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:  # only a hole follows
                break
            end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            parts.append(os.pread(file.fileno(), end - at, at))
            at = end
    return b"".join(parts)


def in_arena(pid):
    """Returns the secrets in the memory that a process shares with the recorder."""
    arenas = {path for _, _, _, path in mappings(pid) if ".arena" in path}
    check(arenas, "the program has no arena")
    return set().union(*(found_in(written_part(path)) for path in arenas))


def in_files(pattern):
    found = set()
    for path in glob.glob(pattern, recursive=True):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found |= found_in(file.read())
    return found


class Recording:
    """A recording of the program, which waits after its calls. No collector takes its frames."""

    def __init__(self, sojourn, program, policy):
        self.sojourn = sojourn
        self.spool = sojourn.path(f"spool-{os.path.basename(policy)}")
        self.recorder = subprocess.Popen(
            [sojourn.program, "record", "--quiet", "--spool", self.spool, "--collector", "ipc://" + sojourn.path("none"),
             "--wait", "0.1", "--policy", policy, "--", program, LINE],
            env=dict(sojourn.environment, SECRET=VALUE), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        self.pid = int(self.recorder.stdout.readline())

    def end(self):
        self.recorder.stdin.write(b"\n")
        self.recorder.stdin.close()
        self.recorder.wait()
        self.recorder.stdout.close()

    def deliver(self, database):
        """Returns the secrets in the spool, and stores the session."""
        spooled = in_files(self.spool + "/**")
        address = "ipc://" + self.sojourn.path("collector")
        collector = subprocess.Popen([os.path.join(os.path.dirname(self.sojourn.program), "sojournd"),
                                      "--listen", address, "--database", database], stderr=subprocess.DEVNULL)
        done = self.sojourn.run(["flush", "--spool", self.spool, "--collector", address, "--wait", "60"],
                                capture_output=True, text=True)
        collector.terminate()
        collector.wait()
        check(done.returncode == 0, f"flush: {done.stdout} {done.stderr}")
        return spooled


def values_of(sojourn, database):
    return {(row["name"], row["position"], str(row["value"])) for row in sojourn.sql(
        database, "SELECT f.name, a.position, a.value FROM arguments AS a JOIN calls USING (session_id, call_id) "
                  "JOIN functions AS f USING (function_id)")}


def test_plain(sojourn, program):
    """The places that are searched have the secrets if no policy redacts them."""
    recording = Recording(sojourn, program, write_policy(sojourn, "plain", unmatched="allow"))
    shared = in_arena(recording.pid)
    check(VALUE in shared, f"plain: the arena has {shared}")
    recording.end()
    database = sojourn.path("plain.db")
    spooled = recording.deliver(database)
    check({LINE, FOLDER} <= spooled, f"plain: the spool has {spooled}")
    check({LINE, FOLDER} <= in_files(database + "*"), "plain: the database has no paths")
    values = values_of(sojourn, database)
    check({("log_in", 2, VALUE), ("sign_up", 1, VALUE), ("sign_up", 2, "4")} <= values, f"plain: {values}")
    check(sojourn.sql(database, "SELECT tags->>'redacted' AS r FROM sessions") == [{"r": None}], "plain: a tag")


def check_redacted(sojourn, database, name):
    check(not in_files(database + "*"), f"{name}: the database has {in_files(database + '*')}")
    values = values_of(sojourn, database)
    check({value for value in values if value[1] != 0} == {("log_in", 3, "3"), ("greet", 1, "everybody")},
          f"{name}: {values}")
    session = sojourn.sql(database, "SELECT tags->>'redacted' AS what, tags->>'redacted_by' AS policy, command "
                                    "FROM sessions")
    check(session == [{"what": "values,paths,command_lines", "policy": name, "command": "(redacted)"}], f"{session}")
    process = sojourn.sql(database, "SELECT executable, command FROM processes")
    check(process == [{"executable": "secrets", "command": "(redacted)"}], f"{process}")


def test_redacted(sojourn, program):
    policy = write_policy(sojourn, "redacted", redact=REDACT)
    recording = Recording(sojourn, program, policy)
    check(not in_arena(recording.pid), f"redacted: the arena has {in_arena(recording.pid)}")
    other = sojourn.run(["policy", "set", str(recording.pid), "--policy", write_policy(sojourn, "other")],
                        capture_output=True, text=True)
    check(other.returncode != 0 and '"redact" of a recording stays' in other.stderr, f"policy set: {other.stderr}")
    recording.end()
    check(not (spooled := recording.deliver(sojourn.path("redacted.db"))), f"redacted: the spool has {spooled}")
    check_redacted(sojourn, sojourn.path("redacted.db"), "redacted")
    check_accounts(sojourn, sojourn.path("redacted.db"))
    said = sojourn.sql(sojourn.path("redacted.db"), "SELECT not_applied FROM policies")[0]["not_applied"]
    check("rule 'password': it records nothing of functions whose texts the policy redacts" in said, f"{said}")
    checked = sojourn.run(["policy", "check", policy], capture_output=True, text=True)
    check("log_*" in checked.stdout and "folders of paths" in checked.stdout and "command lines" in checked.stdout,
          f"policy check: {checked.stdout} {checked.stderr}")


def test_killed(sojourn, program):
    """The process that finishes the session of a killed recorder redacts, too."""
    recording = Recording(sojourn, program, write_policy(sojourn, "killed", redact=REDACT))
    recording.recorder.send_signal(signal.SIGKILL)
    recording.end()
    check(not (spooled := recording.deliver(sojourn.path("killed.db"))), f"killed: the spool has {spooled}")
    check_redacted(sojourn, sojourn.path("killed.db"), "killed")


def test(sojourn, _):
    folder = sojourn.path(FOLDER)
    os.mkdir(folder)
    program = build_sample(sojourn, "record/secrets.c", "-O1", "-g", program=os.path.join(folder, "secrets"))
    test_plain(sojourn, program)
    test_redacted(sojourn, program)
    test_killed(sojourn, program)


main(test)
