#!/usr/bin/env python3
"""Watches freed memory under difficult conditions. The use is found, and the program continues.

zombie_hardships.py BUILD_FOLDER SAMPLES
"""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, main

FOUND = ("SELECT z.kind, z.used_in, z.freed_in, z.class FROM zombie_reports r JOIN zombies z USING (zombie_id)"
         " ORDER BY r.report_id")
# word: (the program's functions that used and freed the block)
HEAP = {
    "vfork": ("read_block", "drop_block"),
    "descriptors": ("read_block", "drop_block"),
    "handlers": ("read_block", "drop_block"),
    "module": ("read_block", "free_in_module"),
}


def record(sojourn, command, name, zombies):
    path, database = sojourn.path(f"{name}.json"), sojourn.path(f"{name}.db")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "mode": "profile", "functions": {"exclude": ["*"]}, "zombies": zombies}, file)
    done, _ = sojourn.record(command, database, ["--allow-unmatched", "--policy", path])
    return done, database


def found_in(sojourn, database):
    return [tuple(row.values()) for row in sojourn.sql(database, FOUND)]


def test_heap(sojourn, folder):
    """Runs with guarded blocks, and again with delayed frees beside them."""
    for word, (used, freed) in HEAP.items():
        for zombies in ({"heap": True}, {"heap": {"one_in": 1, "blocks": 64, "delayed_free": True, "vtables": True}}):
            done, database = record(sojourn, [os.path.join(folder, "hardships"), word], word, zombies)
            check((done.returncode, done.stdout.decode()) == (0, word), f"{word}: {done}")
            os.rename(database, database + ".done")
            found = found_in(sojourn, database + ".done")
            check(found == [("use_after_free", used, freed, "")], f"{word}, {zombies}: {found}")
            os.remove(database + ".done")


def record_within(sojourn, wrapper, command, name, zombies):
    """Records `command`. `wrapper` is the command that runs the recorder, and so the program; [] for none."""
    path, database = sojourn.path(f"{name}.json"), sojourn.path(f"{name}.db")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "mode": "profile", "functions": {"exclude": ["*"]}, "zombies": zombies}, file)
    done = subprocess.run([*wrapper, sojourn.program, "record", "-q", "--allow-unmatched", "-o", database, "--policy", path,
                           "--", *command], capture_output=True, env=sojourn.environment, timeout=PATIENCE_S, check=False)
    return done, database


def test_pages(sojourn, folder):
    """Tests content, children and locked memory, with guard regions of the kernel and with mprotect."""
    program = os.path.join(folder, "hardships")
    for word, uses in (("locked", 1), ("content", 3), ("children", 3)):
        for wrapper in ([], [os.path.join(folder, "no_guards")]):
            done, database = record_within(sojourn, wrapper, [program, word], f"{word}-{len(wrapper)}", {"heap": True})
            check((done.returncode, done.stdout.decode()) == (0, word), f"{wrapper} {word}: {done}")
            found = found_in(sojourn, database)
            check(found == [("use_after_free", "read_block", "drop_block", "")] * uses, f"{wrapper} {word}: {found}")


GUARDED = "SELECT guarded, refused_full, uses FROM zombie_accounts ORDER BY guarded DESC LIMIT 1"


def has_guard_regions():
    """True if the kernel has guard regions, as Linux 6.13 and later do."""
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) >= (6, 13)


def test_alive(sojourn, folder):
    """The program has more live blocks than a process may have mappings. If mprotect closes pages, 28,000 blocks are
    guarded."""
    program = os.path.join(folder, "hardships")
    count, word, memory = (100000, "very_many", "1G") if os.environ.get("SJ_LONG") == "1" else (40000, "many", "400M")
    for wrapper, most in (([], count if has_guard_regions() else 28000), ([os.path.join(folder, "no_guards")], 28000)):
        zombies = {"heap": {"one_in": 1, "blocks": 120000, "memory": memory, "stack_bytes": 0}}
        done, database = record_within(sojourn, wrapper, [program, word], f"{word}-{len(wrapper)}", zombies)
        check((done.returncode, done.stdout.decode()) == (0, word), f"{wrapper} {word}: {done}")
        account = sojourn.sql(database, GUARDED)[0]
        check(most <= account["guarded"] <= most + 100 and account["uses"] == 1, f"{wrapper}: {account}")


def test_a_program_without_memory_runs_unharmed(sojourn, folder):
    """A program that has no memory left runs unharmed, and the summary says which blocks were not guarded."""
    done, database = record(sojourn, [os.path.join(folder, "hardships"), "memory"], "memory", {"heap": True})
    plain = subprocess.run([os.path.join(folder, "hardships"), "memory"], capture_output=True, check=False)
    check(done.returncode in (plain.returncode, 128 - plain.returncode), f"{done}, not {plain}")
    rows = sojourn.sql(database, "SELECT not_watched, refused_size + refused_full + refused_limit + refused_memory AS refused"
                       " FROM zombie_accounts")
    check(rows[0]["not_watched"] != "" or rows[0]["refused"] > 0, f"{rows}")


def test_confined(sojourn, folder):
    """Behind a filter of system calls, the agent makes none when threads allocate, free and write. So it cannot guard
    further blocks, but it checks the bytes beside those that are freed."""
    for sampled in (1, 2):
        zombies = {"heap": {"one_in": sampled}}
        done, database = record(sojourn, [os.path.join(folder, "hardships"), "confined"], f"confined-{sampled}", zombies)
        check((done.returncode, done.stdout) == (0, b"confined"), f"confined, one in {sampled}: {done}")
    account = sojourn.sql(sojourn.path("confined-1.db"), "SELECT refused_memory FROM zombie_accounts")[0]
    check(account["refused_memory"] > 0, f"{account}")
    found = found_in(sojourn, sojourn.path("confined-1.db"))
    check([row[:2] for row in found] == [("overflow_at_free", "drop_block")], f"{found}")


def test_objects(sojourn, folder):
    program = os.path.join(folder, "guarded")
    done, database = record(sojourn, [program, "many"], "many", {"objc": {"queue": {"objects": 1000}}})
    check((done.returncode, done.stdout) == (0, b"2\n"), f"many: {done}")
    check(found_in(sojourn, database) == [("message_to_freed", "ask_warmth", "drop_egg", "Egg")], "many")
    account = sojourn.sql(database, "SELECT kept, kept_full, not_kept FROM zombie_accounts")[0]
    check(account["kept"] >= 100000 and account["kept"] - account["kept_full"] <= 1000, f"{account}")
    done, database = record(sojourn, [program, "rise"], "rise", {"objc": True})
    check((done.returncode, done.stdout) == (0, b"4\n"), f"rise: {done}")
    check([row[:2] + row[3:] for row in found_in(sojourn, database)] == [("message_to_freed", "ask_risen", "Phoenix")],
          f"rise: {found_in(sojourn, database)}")


def test_recorder_dies(sojourn, folder):
    """A program whose recorder was killed continues and ends by itself."""
    command = [sojourn.program, "record", "-q", "-o", sojourn.path("died.db"), "--zombies", "heap", "--profile",
               "--exclude", "*", "--", os.path.join(folder, "heap"), "-"]
    with subprocess.Popen(command, env=sojourn.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as recorder:
        check(recorder.stdout.readline() == "ready\n", "not ready")
        with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children", encoding="ascii") as file:
            program = int(file.read().split()[0])
        waiting = os.pidfd_open(program)
        recorder.send_signal(signal.SIGKILL)
        for word in ("0", "1", "4", "16"):
            recorder.stdin.write(word + "\n")
            recorder.stdin.flush()
            check(recorder.stdout.readline() == word + "\n", f"the program did not {word}")
        recorder.stdin.close()
        done = subprocess.run(["tail", f"--pid={program}", "-f", os.devnull], timeout=PATIENCE_S, check=True)
        check(done.returncode == 0, "the program does not end")
        os.close(waiting)


def test(sojourn, arguments):
    folder = os.path.join(arguments[0], "gcc-O2")
    test_heap(sojourn, folder)
    test_pages(sojourn, folder)
    test_alive(sojourn, folder)
    test_a_program_without_memory_runs_unharmed(sojourn, folder)
    test_confined(sojourn, folder)
    test_objects(sojourn, folder)
    test_recorder_dies(sojourn, folder)


if __name__ == "__main__":
    main(test)
