#!/usr/bin/env python3
"""No surprise behind what people type: small files, files of others, databases that are gone, full disks,
tags, piped SQL, and messages without the program's insides.

behaving.py BUILD_FOLDER
"""
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system", "support"))
from sojourn_testing import check, main

NOBODY = 65534


def say(sojourn, words, **options):
    return sojourn.run(words, capture_output=True, text=True, **options)


def ends_of(sojourn):
    return os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests", "samples", "ends")


def the_smallest_database_is_small(sojourn):
    source, program, database = (sojourn.path(name) for name in ("tiny.c", "tiny", "tiny.db"))
    with open(source, "w", encoding="utf-8") as file:
        file.write("int main(void) { return 0; }\n")
    subprocess.run([shutil.which("gcc"), "-O2", source, "-o", program], check=True)
    say(sojourn, ["record", "-q", "-o", database, "--", program], check=True)
    check(os.path.getsize(database) < 100_000, f"{os.path.getsize(database)} bytes")
    check(sojourn.sql(database, "SELECT count(*) AS n FROM calls")[0]["n"] > 0, "no call")
    return program, database


def files_of_others_are_read(sojourn, database):
    """Somebody else's file in a folder that one may not write to."""
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


def what_is_asked_wrongly_is_said(sojourn, database):
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
    check(done.returncode == 0 and done.stderr == "sojourn zombies: no use of freed memory was found\n", f"{done}")
    done = say(sojourn, ["record", "--budget", "10", "--", "true"])
    check(done.returncode == 125 and 'such as "10%"' in done.stderr, f"{done}")
    done = say(sojourn, ["report", "/etc/passwd"])
    check(done.returncode == 1 and "/etc/passwd" in done.stderr, f"{done}")
    done = say(sojourn, ["record", "-o", "/nowhere/x.db", "--", "true"])
    check(done.returncode == 125 and "/nowhere/x.db: No such file or directory" in done.stderr, f"{done}")
    done = say(sojourn, ["flame", "-o", "/dev/full", database])
    check(done.returncode == 1 and "No space left" in done.stderr, f"{done}")


def totals_are_told_apart(sojourn, program):
    """Of a profile no single calls are known: what asks for them says so instead of showing none."""
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


def builds_of_two_names_are_told(sojourn, program, database):
    """Functions of programs with two names have nothing in common; those of builds in two folders have."""
    os.mkdir(sojourn.path("new"))
    other, same = sojourn.path("other"), sojourn.path(os.path.join("new", os.path.basename(program)))
    for name, copy, level in (("other", other, "-O1"), ("same", same, "-O0")):
        subprocess.run([shutil.which("gcc"), level, program + ".c", "-o", copy], check=True) # other builds
        say(sojourn, ["record", "-q", "--name", name, "-o", database, "--", copy], check=True)
    for name, is_told in (("other", True), ("same", False)):
        done = say(sojourn, ["diff", "1", f"name:{name}", database])
        check(done.returncode == 0 and ("no function is in both sets" in done.stderr) == is_told, f"{name}: {done}")


def tables_are_listed(sojourn, database):
    """Every table function of schema/README.md is one that .tables lists."""
    shown = say(sojourn, ["sql", "--csv", database], input=".tables\n", check=True).stdout
    for name in ("siblings", "sequence", "contains", "intervals_intersect", "concurrency", "coverage", "histogram", "call_tree",
                 "open_paths", "open_now", "open_before"):
        check(f"{name},function" in shown, f"{name}: {shown}")


def a_database_that_is_gone(sojourn):
    """flush of a killed recorder's session whose folder is gone, too: it ends, and says where all is."""
    folder = sojourn.path("gone")
    os.mkdir(folder)
    recorder = subprocess.Popen([sojourn.program, "record", "-q", "-o", os.path.join(folder, "x.db"), "--",
                                 ends_of(sojourn), "wait"], env=sojourn.environment, stdout=subprocess.PIPE,
                                start_new_session=True)
    recorder.stdout.readline()
    recorder.kill()
    recorder.wait()
    os.killpg(recorder.pid, signal.SIGKILL) # the program
    shutil.rmtree(folder)
    done = say(sojourn, ["flush", "--wait", "1s"])
    check(done.returncode == 1 and "/spool/" in done.stderr and folder in done.stderr and "1 kept" in done.stdout, f"{done}")


def a_full_disk(sojourn):
    """record into a disk that gets full ends after --wait, says so while it waits, and where the spool is;
    flush brings it when there is room."""
    disk = sojourn.path("disk")
    os.mkdir(disk)
    script = f"""
        mount -t tmpfs -o size=32m none {disk} || exit 99
        {sojourn.program} record -o {disk}/x.db --wait 2s -- /usr/bin/perl -e '
            $| = 1; $x += $_ for 1..9; open(F, ">{disk}/fill"); 1 while syswrite(F, "x" x 65536); close F;
            for (1..300000) {{ $y{{rand()}} = rand }}' 2>record.txt
        grep -q 'waiting for {disk}/x.db' record.txt || {{ cat record.txt; exit 1; }}
        grep -q 'has not taken everything (.*full).*kept in .*/spool/' record.txt || {{ cat record.txt; exit 2; }}
        ! grep -q '^  next ' record.txt || {{ cat record.txt; exit 4; }}
        rm {disk}/fill
        {sojourn.program} flush || exit 3
        {sojourn.program} sql "SELECT state, stored_calls > 100000 FROM sessions" {disk}/x.db
    """
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=sojourn.path("."), env=sojourn.environment,
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0 and done.stdout.split()[-2:] == ["completed", "1"], f"{done}")


INSIDES = re.compile(r"pragma|\{:|policy:\d+:\d+|9223372036854775807|1844674407370955161|0x[0-9a-f]{8}|assert|errno", re.IGNORECASE)
HUGE = "99999999999999999999"


def messages_are_about_what_was_typed(sojourn, program, database):
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


def an_absent_process_is_told_apart(sojourn):
    """attach ends with 3 where the process is not there, not where anything else is missing."""
    with subprocess.Popen(["sleep", "60"]) as process:
        done = say(sojourn, ["attach", "--agent", sojourn.path("missing.so"), str(process.pid)])
        process.kill()
    check(done.returncode == 1 and "missing.so" in done.stderr, f"no agent: {done}")
    done = say(sojourn, ["attach", str(process.pid)])
    check(done.returncode == 3 and "there is no process" in done.stderr, f"an ended process: {done}")


def durations_are_written_alike(sojourn, database):
    """Three digits and a unit, in every table."""
    alike = re.compile(r"^-?(\d{1,3} ns|\d\.\d\d (us|ms|s)|\d\d\.\d (us|ms|s)|\d{3} (us|ms|s)|\d+ min \d\d s|\d+ h \d\d min)$")
    for words in (["report"], ["tree", "--all"], ["replay"], ["sessions"], ["report", "--waiting"]):
        shown = say(sojourn, [*words, database], check=True).stdout.replace("of calls of 40 ms", "")
        found = re.findall(r"(?<![\w.])-?[\d.]+ (?:ns|us|ms|s)(?![\w])", shown)
        check(found and all(alike.match(text) for text in found), f"{words}: {[t for t in found if not alike.match(t)]}")


def test(sojourn, arguments):
    program, database = the_smallest_database_is_small(sojourn)
    files_of_others_are_read(sojourn, database)
    tags_have_values(sojourn, database)
    piped_statements_run(sojourn, database)
    what_is_asked_wrongly_is_said(sojourn, database)
    totals_are_told_apart(sojourn, program)
    tables_are_listed(sojourn, database)
    messages_are_about_what_was_typed(sojourn, program, database)
    an_absent_process_is_told_apart(sojourn)
    durations_are_written_alike(sojourn, database)
    a_full_disk(sojourn)
    a_database_that_is_gone(sojourn)
    builds_of_two_names_are_told(sojourn, program, database)


if __name__ == "__main__":
    main(test)
