#!/usr/bin/env python3
"""Tests what users meet: small files, files of other users, missing databases, full disks, tags, piped SQL, and
messages without internal words.

behaving.py BUILD_FOLDER
"""
import glob
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system", "support"))
from sojourn_testing import SAMPLES, build_sample, check, main

NOBODY = 65534


def say(sojourn, words, **options):
    return sojourn.run(words, capture_output=True, text=True, **options)


def ends_of(sojourn):
    return os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests", "samples", "ends")


def the_smallest_database_is_small(sojourn):
    program, database = build_sample(sojourn, "cli/nothing.c", "-O2"), sojourn.path("tiny.db")
    say(sojourn, ["record", "-q", "-o", database, "--", program], check=True)
    check(os.path.getsize(database) < 110 * 1024, f"{os.path.getsize(database)} bytes")
    check(sojourn.sql(database, "SELECT count(*) AS n FROM calls")[0]["n"] > 0, "no call")
    return program, database


def files_of_another_user_are_read(sojourn, database):
    """A file of another user is in a folder without write permission."""
    folder = sojourn.path("others")
    os.mkdir(folder)
    there = shutil.copy(database, folder)
    os.chmod(there, 0o444)
    os.chmod(folder, 0o555)
    os.chmod(sojourn.path("."), 0o755)
    before = os.listdir(folder), os.stat(there).st_mtime_ns
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    environment = {**sojourn.environment, "HOME": "/nonexistent", "TMPDIR": "/tmp"}
    for words in (["report"], ["tree"], ["replay"], ["sessions"], ["sql", "SELECT count(*) FROM calls"]):
        done = say(sojourn, [*words, "-d", there], env=environment, **user)
        check(done.returncode == 0 and done.stdout, f"{words}: {done}")
    done = say(sojourn, ["session", "tag", "last", "a=b", "-d", there], env=environment, **user)
    check(os.geteuid() != 0 or (done.returncode == 1 and done.stderr), f"{done}")
    check(before == (os.listdir(folder), os.stat(there).st_mtime_ns), "it was changed")


def tags_have_values(sojourn, database):
    for words in (["novalue"], ["a=b", "novalue"], ["=value"]):
        done = say(sojourn, ["session", "tag", "last", *words, "-d", database])
        check(done.returncode == 2 and "a tag is KEY=VALUE" in done.stderr, f"{words}: {done}")
    unset = sojourn.sql(database, "SELECT tags ->> 'a' AS a, tags ->> 'novalue' AS b FROM sessions")[0]
    check(unset == {"a": None, "b": None}, f"one was set: {unset}")
    say(sojourn, ["session", "tag", "last", "a=b", "c=", "-d", database], check=True)
    tags = sojourn.sql(database, "SELECT tags ->> 'a' AS a, tags ->> 'c' AS c FROM sessions")[0]
    check(tags == {"a": "b", "c": ""}, f"{tags}")
    listed = say(sojourn, ["policy", "list"], check=True).stdout.split()
    for name in listed:
        shown = say(sojourn, ["policy", "show", name])
        check(shown.returncode == 0 and '"policy"' in shown.stdout, f"policy show {name}: {shown}")


def piped_statements_run(sojourn, database):
    done = say(sojourn, ["sql", database], input="select 1; select ';' as x; -- and\nselect\n 3 as y;")
    check(done.returncode == 0 and done.stdout.split() == ["1", "1", "x", ";", "y", "3"], f"{done}")
    done = say(sojourn, ["sql", database], input="select 1; select nonsense; select 2;")
    check(done.returncode == 1 and "no such column" in done.stderr and "2" not in done.stdout, f"{done}")
    for wrong, code in (("select nonsense;", 1), (".nonsense", 2)):
        done = say(sojourn, ["sql", database], input=f"select 1;\n{wrong}\nselect 2;\n")
        check(done.returncode == code and "1" in done.stdout and "2" not in done.stdout, f"{wrong}: {done}")


def mistyped_query_parameters_are_explained(sojourn, database):
    done = say(sojourn, ["sql", "--query", "slowest_calls", "--param", "limit=2", database])
    check(done.returncode == 0 and len(done.stdout.splitlines()) <= 3, f"{done}")
    for words, text in ((["--query", "slowest_calls", "--param", "lmit=2"], ""), ([], ".query slowest_calls lmit=2\n")):
        done = say(sojourn, ["sql", *words, database], input=text)
        check(done.returncode == 2 and "no parameter for lmit=2" in done.stderr and not done.stdout, f"{words}: {done}")
    done = say(sojourn, ["sql", "--cluster", "http://127.0.0.1:1", "--query", "slowest_calls", "--param", "lmit=2"])
    check(done.returncode == 2 and "no parameter for lmit=2" in done.stderr and not done.stdout, f"--cluster: {done}")
    done = say(sojourn, ["zombies", database])
    check(done.returncode == 0 and "no session was recorded with --zombies" in done.stderr, f"{done}")
    watched = sojourn.path("watched.db")
    done = say(sojourn, ["record", "-q", "--zombies", "heap", "-o", watched, "--", "perl", "-e", "1"])
    done = say(sojourn, ["zombies", "-d", watched])
    check(done.returncode == 0 and re.fullmatch(
        r"sojourn zombies: no use of freed memory was found; watched \S.* % of \d+ allocations.*\n", done.stderr), f"{done}")
    done = say(sojourn, ["record", "--budget", "10", "--", "true"])
    check(done.returncode == 125 and 'such as "10%"' in done.stderr, f"{done}")
    done = say(sojourn, ["report", "/etc/passwd"])
    check(done.returncode == 1 and "/etc/passwd" in done.stderr, f"{done}")
    done = say(sojourn, ["record", "-o", "/nowhere/x.db", "--", "true"])
    check(done.returncode == 125 and "cannot create /nowhere/x.db: No such file or directory; choose another place" in done.stderr, f"{done}")
    done = say(sojourn, ["flame", "-o", "/dev/full", database])
    check(done.returncode == 1 and "No space left" in done.stderr, f"{done}")


def commands_about_single_calls_refuse_profiles(sojourn, program):
    """A profile has no single calls. Commands that need them say so instead of showing none."""
    database = sojourn.path("profile.db")
    say(sojourn, ["record", "-q", "--profile", "-o", database, "--", program], check=True)
    calls = sojourn.sql(database, "SELECT sum(calls) AS n FROM profiles")[0]["n"]
    for words in (["report", "--to", "1s"], ["tree", "--from", "0"], ["replay"], ["export"], ["export", "--format", "chrome-json"],
                  ["flame", "--to", "1s", "-o", "-"]):
        done = say(sojourn, [*words, database])
        told = f"{calls} calls of session 1 were" if calls != 1 else "1 call of session 1 was"
        check(f"{told} recorded as totals (mode profile)" in done.stderr, f"{words}: {done}")
    for words in (["report"], ["tree"], ["export", "--format", "folded"]):
        done = say(sojourn, [*words, database])
        check(done.returncode == 0 and not done.stderr, f"{words}: {done}")


def builds_of_two_names_do_not_match(sojourn, program, database):
    """Functions of programs with two names do not match. Functions of builds in two folders do."""
    os.mkdir(sojourn.path("new"))
    other, same = sojourn.path("other"), sojourn.path(os.path.join("new", os.path.basename(program)))
    for name, copy, level in (("other", other, "-O1"), ("same", same, "-O0")):
        build_sample(sojourn, "cli/nothing.c", level, program=copy)  # these are other builds
        say(sojourn, ["record", "-q", "--name", name, "-o", database, "--", copy], check=True)
    for name, is_told in (("other", True), ("same", False)):
        done = say(sojourn, ["diff", "1", f"name:{name}", database])
        check(done.returncode == 0 and ("no function is in both sets" in done.stderr) == is_told, f"{name}: {done}")


def tables_are_listed(sojourn, database):
    """.tables lists every table function of schema/README.md."""
    shown = say(sojourn, ["sql", "--csv", database], input=".tables\n", check=True).stdout
    for name in ("siblings", "sequence", "contains", "intervals_intersect", "concurrency", "coverage", "histogram", "call_tree",
                 "open_paths", "open_now", "open_before"):
        check(f"{name},function" in shown, f"{name}: {shown}")


def flush_reports_a_missing_database(sojourn):
    """flush of a killed recorder's session, whose folder is gone, too, ends and says where the data is."""
    folder = sojourn.path("gone")
    os.mkdir(folder)
    recorder = subprocess.Popen([sojourn.program, "record", "-q", "-o", os.path.join(folder, "x.db"), "--",
                                 ends_of(sojourn), "wait"], env=sojourn.environment, stdout=subprocess.PIPE,
                                start_new_session=True)
    recorder.stdout.readline()
    recorder.kill()
    recorder.wait()
    os.killpg(recorder.pid, signal.SIGKILL)  # kills the program
    shutil.rmtree(folder)
    done = say(sojourn, ["flush", "--wait", "1s"])
    check(done.returncode == 1 and "/spool/" in done.stderr and folder in done.stderr and "1 kept" in done.stdout, f"{done}")


def a_full_disk(sojourn):
    """record into a disk that gets full ends after --wait. While it waits, it says so and names the spool. flush
    delivers the session when there is space again."""
    disk = sojourn.path("disk")
    os.mkdir(disk)
    done = subprocess.run(["unshare", "-m", "sh", os.path.join(SAMPLES, "cli", "fills_disk.sh"), disk, sojourn.program], cwd=sojourn.path("."), env=sojourn.environment,
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0 and done.stdout.split()[-2:] == ["completed", "1"], f"{done}")


def frames_refused_for_good_are_not_delivered(sojourn):
    """Frames that a collector refuses for good do not count as delivered. flush and doctor name them until their
    folder is gone."""
    root, name, golden = sojourn.path("refusing"), "0123456789abcdef" * 2, "../../proto/golden/v1_frames.bin"
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), golden), "rb") as file:
        left, frames = file.read(), []
    while left:
        size = 20 + sum(struct.unpack_from("<II", left, 8))
        frames.append(left[:size])
        left = left[size:]
    frames = [frame for frame in frames if struct.unpack_from("<H", frame, 6)[0] not in (1, 2)] # HELLO, SESSION
    os.makedirs(os.path.join(root, name))
    with open(os.path.join(root, name, "00000001.frames"), "wb") as file:
        file.write(b"".join(frames))
    with open(os.path.join(root, name + ".to"), "w", encoding="utf-8") as file:
        file.write(f"file {sojourn.path('refusing.db')}\n")
    for _ in range(2):
        done = say(sojourn, ["flush", "--spool", root])
        check(done.returncode == 1 and "0 sessions delivered, 0 kept, 0 being recorded, 1 refused in part" in done.stdout and
              f"{len(frames)} frames refused by the collector for good" in done.stderr and
              f"{name}/aside" in done.stderr and "not announced" in done.stderr, f"{done}")
        check(not glob.glob(os.path.join(root, name, "*.frames")), "what was refused lies in the spool, too")
    kept = glob.glob(os.path.join(root, name, "aside", "*.rejected"))
    check(len(kept) == len(frames), f"{len(kept)} of {len(frames)} frames are kept")
    usual = os.path.join(sojourn.environment["XDG_STATE_HOME"], "sojourn/spool")
    os.makedirs(usual, exist_ok=True)
    os.symlink(os.path.join(root, name), os.path.join(usual, name))
    done = say(sojourn, ["doctor"])
    check("PROBLEM  refused frames" in done.stdout and f"session {name}: {len(frames)} frames" in done.stdout, f"{done}")
    shutil.rmtree(os.path.join(root, name))
    check("PROBLEM  refused frames" not in say(sojourn, ["doctor"]).stdout, "what was removed is still named")
    check(say(sojourn, ["flush", "--spool", root]).returncode == 0, "nothing is left to be refused")
    os.remove(os.path.join(usual, name))


INSIDES = re.compile(r"pragma|\{:|policy:\d+:\d+|9223372036854775807|1844674407370955161|0x[0-9a-f]{8}|assert|errno", re.IGNORECASE)
HUGE = "99999999999999999999"


def messages_name_the_typed_argument(sojourn, program, database):
    garbage, other = sojourn.path("garbage.db"), sojourn.path("other.db")
    with open(garbage, "w", encoding="utf-8") as file:
        file.write("garbage" * 1000)
    sqlite3.connect(other).execute("CREATE TABLE t (a)").connection.close()
    record = lambda *options: ["record", *options, "--", program]
    for words in (["report", garbage], ["report", other], ["tree", sojourn.path(".")], ["report", "--limit", HUGE, database],
                  ["replay", "--count", HUGE, database], ["tree", "--depth", HUGE, database], record("--max-bytes", HUGE),
                  record("--budget", "1e30"), record("--function", ""), record("--minimum", HUGE + "s"), record("--depth", HUGE),
                  *(record("--clock", "adaptive", *with_it) for with_it in (["--zombies", "heap"], ["--library-calls"],
                                                                            ["--mono-class", "X"], ["--java-class", "X"])),
                  record("--threads", HUGE), record("--wait", HUGE), record("--value", "f(x:nonsense)"), record("--policy", "none"),
                  ["diff", HUGE, "1", database], ["report", "--session", HUGE, database], ["flush", "--wait", HUGE],
                  ["bench", "-n", HUGE, "--", program], ["attach", HUGE], ["mark", "begin", "x", "--session", "zz"],
                  ["report", "--from", "soon", database], ["sql", "--limit", HUGE, "SELECT 1", database],
                  ["check", "--threshold", "x", "1", "2", database], ["session", "retain", "all=soon", "-d", database]):
        done = say(sojourn, words)
        first = done.stderr.split("\n", maxsplit=1)[0]
        check(done.returncode not in (0, -signal.SIGSEGV), f"{words}: {done}")
        check(first.startswith("sojourn ") and not INSIDES.search(done.stderr), f"{words} says: {done.stderr}")


def a_missing_process_has_its_own_exit_code(sojourn):
    """attach exits with 3 if the process does not exist, and with another code if anything else is missing."""
    with subprocess.Popen(["sleep", "60"]) as process:
        done = say(sojourn, ["attach", "--agent", sojourn.path("missing.so"), str(process.pid)])
        process.kill()
    check(done.returncode == 1 and "missing.so" in done.stderr, f"no agent: {done}")
    done = say(sojourn, ["attach", str(process.pid)])
    check(done.returncode == 3 and "there is no process" in done.stderr, f"an ended process: {done}")


def durations_have_three_digits_and_a_unit(sojourn, database):
    """Durations have three digits and a unit, in every table."""
    alike = re.compile(r"^-?(\d{1,3} ns|\d\.\d\d (us|ms|s)|\d\d\.\d (us|ms|s)|\d{3} (us|ms|s)|\d+ min \d\d s|\d+ h \d\d min)$")
    for words in (["report"], ["tree", "--all"], ["replay"], ["sessions"], ["report", "--waiting"]):
        shown = say(sojourn, [*words, database], check=True).stdout.replace("for calls of 40 ms", "")
        found = re.findall(r"(?<![\w.])-?[\d.]+ (?:ns|us|ms|s)(?![\w])", shown)
        check(found and all(alike.match(text) for text in found), f"{words}: {[t for t in found if not alike.match(t)]}")


def test(sojourn, arguments):
    program, database = the_smallest_database_is_small(sojourn)
    files_of_another_user_are_read(sojourn, database)
    tags_have_values(sojourn, database)
    piped_statements_run(sojourn, database)
    mistyped_query_parameters_are_explained(sojourn, database)
    commands_about_single_calls_refuse_profiles(sojourn, program)
    tables_are_listed(sojourn, database)
    messages_name_the_typed_argument(sojourn, program, database)
    a_missing_process_has_its_own_exit_code(sojourn)
    durations_have_three_digits_and_a_unit(sojourn, database)
    a_full_disk(sojourn)
    frames_refused_for_good_are_not_delivered(sojourn)
    flush_reports_a_missing_database(sojourn)
    builds_of_two_names_do_not_match(sojourn, program, database)


if __name__ == "__main__":
    main(test)
