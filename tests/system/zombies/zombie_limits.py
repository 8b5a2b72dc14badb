#!/usr/bin/env python3
"""Limits of the watch for freed memory: the overhead budget makes sampling rarer and stops histories, reports have a
rate, and presets watch what they name.

zombie_limits.py BUILD_FOLDER SAMPLES
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, main

ACCOUNT = ("SELECT one_in, one_in_most, history_pauses, guarded, uses, suppressed, delayed, kept, not_watched"
           " FROM zombie_accounts")


def check_summary(sojourn, database, summary):
    """The JSON summary has the sums of the processes."""
    sums = sojourn.sql(database, "SELECT total(guarded) AS guarded, total(not_sampled) AS not_sampled, total(no_block) AS no_block,"
                       " total(over_memory) AS over_memory, total(allocations) AS allocations FROM zombie_coverage"
                       " WHERE session_id = (SELECT max(session_id) FROM sessions)")[0]
    said = summary.get("watched_memory", sums)
    check({name: said[name] for name in sums} == sums, f"{said} in the summary, not {sums}")
    check("watched_memory" in summary or sums["allocations"] == 0, f"{summary}, not {sums}")


def record(sojourn, command, name, policy):
    path, database = sojourn.path(f"{name}.json"), sojourn.path(f"{name}.db")
    if isinstance(policy, dict):
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"policy": 1, "mode": "profile", "functions": {"exclude": ["*"]}, **policy}, file)
    done, summary = sojourn.record(command, database, ["--allow-unmatched", "--policy", path if isinstance(policy, dict) else policy])
    account = sojourn.sql(database, ACCOUNT)[0]
    check(account["not_watched"] == "", f"{name}: {account}")
    check_summary(sojourn, database, summary)
    return done, database, account


def test_budget(sojourn, folder):
    """Guarding every allocation makes a program that mostly allocates many times slower."""
    command = [os.path.join(folder, "sampled"), "3000000"]
    zombies = {"heap": {"one_in": 1, "blocks": 1000, "stack_bytes": 0}}
    _, _, kept = record(sojourn, [command[0], "30000"], "no-budget", {"zombies": zombies})
    check(kept["one_in_most"] == 1 and kept["guarded"] >= 30000, f"{kept}")
    _, _, kept = record(sojourn, command, "budget", {"budget": "2%", "zombies": zombies})
    check(kept["one_in"] == 1 and kept["one_in_most"] >= 8 and kept["guarded"] < 1500000, f"{kept}")


def test_history_budget(sojourn, folder):
    """Recording the history of retains and releases makes them several times slower."""
    program = os.path.join(folder, "guarded")
    zombies = {"objc": {"history": True}}
    _, _, kept = record(sojourn, [program, "few"], "no-history-budget", {"zombies": zombies})
    check(kept["history_pauses"] == 0, f"{kept}")
    done, _, kept = record(sojourn, [program, "retain"], "history-budget", {"budget": "1%", "zombies": zombies})
    check(done.returncode == 0 and kept["history_pauses"] >= 1, f"{kept}")


def test_rate(sojourn, folder):
    """Reports beyond the policy's rate are only counted. At most two minutes begin during the test, each with a new
    allowance."""
    numbers = ["1", "2", "3", "4", "8", "9", "11", "12"]
    zombies = {"heap": True, "reports_per_minute": 3}
    done, database, account = record(sojourn, [os.path.join(folder, "heap"), *numbers], "rate", {"zombies": zombies})
    reports = sojourn.sql(database, "SELECT count(*) AS reports FROM zombie_reports")[0]["reports"]
    check(done.returncode == 0 and 3 <= reports <= 6, f"{reports}: {done}")
    check(account["uses"] == len(numbers) and account["suppressed"] == len(numbers) - reports, f"{account}, {reports}")


def test_presets(sojourn, folder):
    """`zombies` watches everything; `zombies-field` samples."""
    for preset, one_in in (("zombies", 1), ("zombies-field", 5000)):
        done, database, account = record(sojourn, [os.path.join(folder, "heap"), "0", "1"], f"{preset}-heap", preset)
        check(done.returncode == 0 and account["one_in"] == one_in, f"{preset}: {account}")
        if preset == "zombies":
            kinds = sojourn.sql(database, "SELECT kind FROM zombies")
            check(kinds == [{"kind": "use_after_free"}] and account["guarded"] > 0, f"{preset}: {kinds}, {account}")
        program = os.path.join(folder, "messages")
        done, database, account = record(sojourn, [program, "23"], f"{preset}-objc", preset)
        found = sojourn.sql(database, "SELECT kind, class FROM zombies")
        check(done.returncode == 0 and found == [{"kind": "message_to_freed", "class": "Duckling"}], f"{preset}: {found}")
        plain = subprocess.run([program], capture_output=True, check=True)
        done, _, account = record(sojourn, [program], f"{preset}-work", preset)
        check((done.returncode, done.stdout) == (0, plain.stdout) and account["uses"] == 0, f"{preset}: {done}, {account}")


def test_even(sojourn, folder):
    """Every size, call site and thread has its share of guarded blocks, in the sum of many short runs."""
    runs, one_in, turns = (2000, 20, 20) if os.environ.get("SJ_LONG") == "1" else (40, 20, 20)
    # In 99 % of all runs all eight stay in this band, so that the short form does not fail by chance.
    deviations = 3.23 if runs == 2000 else 6
    zombies = {"heap": {"one_in": one_in, "blocks": 64, "stack_bytes": 0}, "reports_per_minute": 100000}
    for _ in range(runs):
        done, database, _ = record(sojourn, [os.path.join(folder, "even")], "even", {"zombies": zombies})
        check(done.returncode == 0, f"{done}")
    hits = sojourn.sql(database, "SELECT size, thread_name, count(*) AS n FROM zombie_reports GROUP BY size, thread_name")
    wanted = runs * turns / one_in
    band = deviations * (wanted * (1 - 1 / one_in)) ** 0.5
    print(f"{wanted:.0f} +- {band:.0f} wanted, found {[row['n'] for row in hits]}")
    check(len(hits) == 8 and all(abs(row["n"] - wanted) <= band for row in hits), f"{wanted} +- {band}: {hits}")


COVERAGE = "SELECT allocations, guarded, not_sampled, no_block, over_memory, bad_size, refused FROM zombie_coverage"


def coverage_of(sojourn, database):
    """Returns the row of the coverage. Checks that its parts add up to the whole."""
    row = sojourn.sql(database, COVERAGE)[0]
    check(row["allocations"] == sum(row.values()) - row["allocations"], f"{row}")
    return row


def most_at_once():
    """Returns how many of 40,000 live blocks must be guarded if the policy has no limit."""
    with open("/proc/meminfo", encoding="utf-8") as file:
        available, = [int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:")]
    has_guards = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) >= (6, 13)
    return min(40000 if has_guards else 27000, max(4000, available // 2 // 16 // 4608))


def test_coverage(sojourn, folder):
    """The summary says how much was watched, and why the rest was not."""
    alive = [os.path.join(folder, "hardships"), "many"]
    for setting, missed, remedy in (({"blocks": 1000}, "no_block", "blocks"), ({"memory": "1M", "blocks": 9000}, "over_memory", "memory")):
        zombies = {"heap": {"one_in": 1, "stack_bytes": 0, **setting}}
        done, database, account = record(sojourn, alive, f"cover-{missed}", {"zombies": zombies})
        row = coverage_of(sojourn, database)
        check(done.returncode == 0 and account["uses"] == 1, f"{done}, {account}")
        check(row["allocations"] >= 40000 and row["guarded"] <= 1100 and row[missed] >= 38900, f"{setting}: {row}")
        told = sojourn.run(["zombies", "-d", database], capture_output=True, text=True).stderr
        share = f"watched {100 * row['guarded'] / row['allocations']:.3g} % of {row['allocations']} allocations"
        check(f"sojourn zombies: {share}" in told and f'(raise "{remedy}")' in told, told)
        judged = sojourn.run(["check", "--zombies", database], capture_output=True, text=True)
        check(judged.returncode == 4 and f"1 new finding of freed memory; {share}" in judged.stdout, f"{judged}")
    _, database, account = record(sojourn, alive, "cover-default", {"zombies": {"heap": {"one_in": 1, "stack_bytes": 0}}})
    row = coverage_of(sojourn, database)
    check(row["guarded"] >= most_at_once() and account["uses"] == 1, f"{row}, {account}")
    count, one_in = 300000, 100
    zombies = {"heap": {"one_in": one_in, "stack_bytes": 0}}
    _, database, _ = record(sojourn, [os.path.join(folder, "sampled"), str(count)], "cover-sampled", {"zombies": zombies})
    row = coverage_of(sojourn, database)
    told = sojourn.run(["zombies", "-d", database], capture_output=True, text=True).stderr
    check("no use of freed memory was found; watched " in told and f" % of about {row['allocations']} allocations" in told, told)
    band = 6 * (count * one_in) ** 0.5  # Each sample stands for `one_in` allocations.
    check(abs(row["allocations"] - count) <= band and row["not_sampled"] > 0, f"{row}, {count} +- {band:.0f}")
    zombies = {"heap": {"guard": {"bytes": [200]}, "stack_bytes": 0}}
    _, database, _ = record(sojourn, [os.path.join(folder, "sampled"), "30000"], "cover-named", {"zombies": zombies})
    row = coverage_of(sojourn, database)
    check(30000 <= row["allocations"] + 64 <= 31000 and 10000 <= row["guarded"] <= 10100, f"{row}")


def test(sojourn, arguments):
    folder = os.path.join(arguments[0], "gcc-O2")
    test_coverage(sojourn, folder)
    test_budget(sojourn, folder)
    test_history_budget(sojourn, folder)
    test_rate(sojourn, folder)
    test_presets(sojourn, folder)
    test_even(sojourn, folder)


if __name__ == "__main__":
    main(test)
