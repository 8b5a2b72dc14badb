"""Helpers for the judges. A judge runs a program of other authors twice: without hooks, and with every possible
function hooked. A run counts only if nearly all functions were hooked and each module made calls. The judge fails
if anything that the program shows has changed."""
import os
import re
import shutil
import subprocess

from sojourn_testing import IS_LONG, Failure, check, check_accounts

LEAST_HOOKED = 0.95
REPEATS = 20 if IS_LONG else 1

os.environ["PATH"] += ":/usr/sbin:/sbin"


def sizes(short, long):
    """Returns how much work each round does. The long form is one long round and 19 short ones."""
    return [long] + [short] * (REPEATS - 1) if IS_LONG else [short]


def need(*programs):
    """Fails if a program that the judge needs is missing. A judge without its program proves nothing."""
    for program in programs:
        check(shutil.which(program) is not None, f"{program} is missing: run .ci/packages test")


def options_of(modules):
    """Returns options of `record`. With them a program waits, instead of dropping calls, if a busy machine delays
    the drain."""
    return ["--max-bytes", "0", "--block-ms", "10000", *(word for glob in modules for word in ("--module", glob))]


def check_session(sojourn, database, modules):
    """Checks that at least 95 % of the functions are hooked, each module made calls, and the accounts are correct.
    Cold parts do not count as functions, and start files are skipped by a rule."""
    check_accounts(sojourn, database)
    rows = sojourn.sql(
        database,
        "SELECT m.path AS path, sum(sm.function_count - coalesce(p.parts, 0) - coalesce(u.support, 0)) "
        "AS functions, sum(sm.function_count - coalesce(p.parts, 0) - coalesce(u.left_out, 0)) AS hooked, "
        "(SELECT coalesce(sum(s.calls), 0) FROM function_stats AS s JOIN functions AS f "
        " USING (function_id) WHERE f.module_id = m.module_id) AS calls "
        "FROM session_modules AS sm JOIN modules AS m USING (module_id) LEFT JOIN "
        "(SELECT session_id, module, count(*) AS left_out, "
        " sum(reason = 'start-up or linker code') AS support FROM unhooked_functions "
        " GROUP BY session_id, module) AS u ON u.session_id = sm.session_id AND u.module = m.path "
        "LEFT JOIN (SELECT hook_plan_id, count(*) AS parts FROM hook_plan_functions "
        " WHERE technique = 'part' GROUP BY hook_plan_id) AS p USING (hook_plan_id) "
        "GROUP BY m.module_id",
    )
    check(len(rows) >= modules, f"{len(rows)} modules hooked, not {modules}: {rows}")
    for row in rows:
        print(f"  {row['path']}: {row['hooked']} of {row['functions']} functions hooked, "
              f"{row['calls']} calls")
        check(row["calls"] > 0, f"no calls in {row['path']}")
    hooked, functions = (sum(row[column] for row in rows) for column in ("hooked", "functions"))
    check(hooked >= LEAST_HOOKED * functions, f"only {hooked} of {functions} functions hooked")
    return sum(row["calls"] for row in rows)


def mask(text, patterns):
    for pattern, replacement in patterns:
        text = re.sub(pattern, replacement, text)
    return text


def compare(what, plain, hooked):
    if plain == hooked:
        return
    for number, (left, right) in enumerate(zip(plain.split("\n"), hooked.split("\n"))):
        if left != right:
            raise Failure(f"{what}: line {number + 1}: unhooked {left!r}, hooked {right!r}")
    raise Failure(f"{what}: {len(plain)} characters unhooked, {len(hooked)} hooked")


def without_losses(text):
    """Returns standard error without the recorder's messages about calls that handlers lost."""
    return "".join(line for line in text.splitlines(True) if not line.startswith("sojourn: "))


def run_both(sojourn, name, command, modules, database, patterns=(), **options):
    """Runs a command without hooks and with hooks, into `database`. Both runs must exit and print the same."""
    record = [sojourn.program, "record", "--quiet", "-o", database, *options_of(modules), "--"]
    prepare = options.pop("prepare", None)
    environment = dict(sojourn.environment, **options.pop("environment", {}))
    results = []
    for wrapper in ([], record):
        if prepare is not None:
            prepare()
        done = subprocess.run([*wrapper, *command], capture_output=True, check=False,
                              env=environment, **dict({"timeout": 3600 if IS_LONG else 300}, **options))
        texts = (mask(text.decode("utf-8", "replace"), patterns)
                 for text in (done.stdout, done.stderr))
        results.append((done.returncode, *texts))
    plain, hooked = results
    check(plain[0] == hooked[0],
          f"{name} ended with {hooked[0]}, unhooked with {plain[0]}\n{hooked[2][-2000:]}")
    compare(f"{name}, standard output", plain[1], hooked[1])
    compare(f"{name}, standard error", plain[2], without_losses(hooked[2]))
    print(f"{name}: same output and exit {plain[0]}", flush=True)
    return plain
