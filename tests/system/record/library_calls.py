#!/usr/bin/env python3
"""Calls into libraries are recorded through import slots, in whatever way those are filled. The counts are those
that the program prints, and its output does not change. library_calls.py BUILD_FOLDER

By default one compiler builds each way of linking, and each compiler is used. SJ_LONG=1: each compiler builds each
way.
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, set_policy, start_attach
from judging import compare
from sojourn_testing import EMULATOR, IS_LONG, PATIENCE_S, build_sample, check, check_accounts, children, main

COUNTS = """SELECT m.path AS module, f.name AS name, sum(calls) AS calls FROM
  function_stats JOIN functions AS f USING (function_id) JOIN modules AS m USING (module_id)
  WHERE f.name LIKE '%!%' GROUP BY 1, 2"""
REASONS = "SELECT module, name, reason FROM unhooked_functions WHERE name LIKE '%!%'"
TAKEN = "an import whose address is taken"
TWICE = "an import that reads its return address or returns twice"
NOT_BOUND = "an import that cannot be bound in a running program"
UNDEFINED = "an import without a definition"
# Compilers and ways of linking.
EVERY = [(compiler, linking) for compiler in ("gcc", "clang") for linking in ("lazy", "now", "no_plt", "fixed")]
DEFAULT = [("gcc", "lazy"), ("clang", "now"), ("gcc", "no_plt"), ("clang", "fixed")]
CHANGED = [("gcc", "lazy"), ("gcc", "fixed"), ("clang", "now")]


def recorded(sojourn, database, module):
    return {row["name"].split("!")[1]: row["calls"] for row in sojourn.sql(database, COUNTS)
            if os.path.basename(row["module"]) == module}


def check_initialised(sojourn, database, folder, linking, plugin):
    """Modules are bound before their first code runs, by their own initialisers. Modules without an initialiser are
    reported, and so are imports without a definition."""
    reasons = {(os.path.basename(row["module"]), row["name"].split("!")[1]): row["reason"]
               for row in sojourn.sql(database, REASONS)}
    for module, calls, reason in (("library_plugin.so", plugin, None), ("library_array.so", 32, None),
                                  ("library_bare.so", None, NOT_BOUND)):
        if linking != "no_plt" or reasons.get((module, "called_add")) != TAKEN:
            found = recorded(sojourn, database, module).get("called_add")
            check(found == calls, f"{folder}: {module} called {found} times, not {calls}")
            check(reasons.get((module, "called_add")) == reason, f"{folder}: {module} {reasons}")
    for module in ("library_calls", "library_plugin.so", "library_array.so"):
        check(reasons.get((module, "called_never")) == UNDEFINED,
              f"{folder}: called_never of {module} is listed as {reasons.get((module, 'called_never'))}")
    check(("library_calls", "called_perhaps") not in reasons, f"{folder}: called_perhaps is left alone")


def one_variant(sojourn, folder, linking):
    command = [os.path.join(folder, "library_calls"),
               *(os.path.join(folder, name) for name in ("library_plugin.so", "library_array.so", "library_bare.so"))]
    environment = dict(sojourn.environment, LD_LIBRARY_PATH=folder)
    emulator = EMULATOR if "aarch64" in folder else []
    plain = subprocess.run([*emulator, *command], capture_output=True, text=True, env=environment,
                           timeout=PATIENCE_S, check=True)
    database = sojourn.path("calls.db")
    done, summary = sojourn.record(
        command, database, ["--block-ms", "10000", "--library-calls", "--module", "library_calls", "--module", "library_plugin.so",
                            "--module", "library_array.so", "--module", "library_bare.so"],
        text=True, env=environment)
    compare(folder, plain.stdout + plain.stderr, done.stdout + done.stderr)
    check(done.returncode == 0, f"{folder} ended with {done.returncode}")
    check_accounts(sojourn, database)
    check(summary["lost_calls"] == 0, f"{summary['lost_calls']} calls lost")
    told = dict(re.findall(r"^calls (.+) (\d+)$", plain.stdout, re.M))
    plugin = int(told.pop("plugin called_add"))
    program = recorded(sojourn, database, "library_calls")
    reasons = {row["name"].split("!")[1]: row["reason"] for row in sojourn.sql(database, REASONS)
               if os.path.basename(row["module"]) == "library_calls"}
    for name, calls in told.items():
        # Without a linkage table a compiler may load an address once and call it in a loop.
        if linking != "no_plt" or reasons.get(name) != TAKEN:
            check(program.get(name) == int(calls), f"{folder}: {name} {program.get(name)}, not {calls}")
    check_initialised(sojourn, database, folder, linking, plugin)
    for name in ("_setjmp", "vfork", "dlopen", "dlsym"):
        check(reasons.get(name) == TWICE, f"{folder}: {name} is left alone as {reasons.get(name)}")
        check(name not in program, f"{folder}: {name} was recorded")
    if linking == "fixed": # the address is that of the program's own linkage stub
        check(program.get("called_address") == 1, f"{folder}: called_address {program.get('called_address')}")
    else:
        check(reasons.get("called_address") == TAKEN,
              f"{folder}: called_address {reasons.get('called_address')}")
    versioned = sojourn.sql(database, "SELECT name FROM functions WHERE name LIKE 'libc.so.6!fork%'")
    check(versioned, f"{folder}: no function is named after libc")
    open_inside = sojourn.sql(database, """SELECT count(*) AS n FROM call_edges AS e
        JOIN functions AS a ON a.function_id = e.caller_function_id
        JOIN functions AS b ON b.function_id = e.callee_function_id
        WHERE a.name LIKE '%!called_back' AND b.name LIKE 'deeper%'""")[0]["n"]
    check(open_inside > 0 or (linking == "no_plt" and reasons.get("called_back") == TAKEN), f"{folder}: callbacks are not inside of the call that makes them")
    print(f"{os.path.basename(folder)} ({linking}): {sum(program.values())} calls into libraries", flush=True)
    os.unlink(database)


def every_kind_of_import(sojourn, folder):
    """Tests imports that are bound lazily: weak imports without a definition, imports that a resolver chooses, of a
    named version or, if none is named, of the oldest, and imports that only a plugin's scope has. Imports of data
    and thread-local data are beside them."""
    command = [os.path.join(folder, "library_imports"), os.path.join(folder, "plugin.so")]
    environment = dict(sojourn.environment, LD_LIBRARY_PATH=folder)
    plain = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE_S, check=True)
    database = sojourn.path("imports.db")
    done, _ = sojourn.record(command, database, ["--block-ms", "10000", "--library-calls", "--libs"], text=True,
                             env=environment)
    compare(folder, plain.stdout + plain.stderr, done.stdout + done.stderr)
    check(done.returncode == 0, f"{folder} ended with {done.returncode}")
    check_accounts(sojourn, database)
    for module, name, calls in re.findall(r"^calls (\S+) (\S+) (\d+)$", plain.stdout, re.M):
        found = recorded(sojourn, database, module).get(name)
        check(found == int(calls), f"{folder}: {module} called {name} {found} times, not {calls}")
    never = {os.path.basename(row["module"]): row["reason"] for row in sojourn.sql(database, REASONS)
             if row["name"].endswith("!imports_never")}
    check(never == {"liblibrary.so": UNDEFINED, "plugin.so": UNDEFINED}, f"{folder}: imports_never is {never}")
    os.unlink(database)


def judges_with_libraries(sojourn):
    """Records programs of the system and their C++ libraries, all modules and all calls between them."""
    commands = [[build_sample(sojourn, "record/hello.cpp", "-O2", compiler="g++")]]
    if os.environ.get("SJ_LONG"):
        commands += [["php", "-r", "echo json_encode(array_map('strrev', ['ab', 'cd'])), PHP_EOL;"],
                     ["xmllint", "--version"]]
    for command in commands:
        plain = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        database = sojourn.path("judge.db")
        done, _ = sojourn.record(command, database, ["--library-calls", "--libs", "--block-ms", "10000"], text=True)
        compare(command[0], plain.stdout + plain.stderr, done.stdout + done.stderr)
        check((plain.returncode, done.returncode) == (0, 0), f"{command[0]} ended with {done.returncode}")
        check_accounts(sojourn, database)
        calls = sum(row["calls"] for row in sojourn.sql(database, COUNTS))
        check(calls > 10, f"{command[0]} made {calls} calls into libraries")
        os.unlink(database)


def real_programs(sojourn):
    """Programs of the system behave the same with all their library calls recorded."""
    lua = "for i=1,2000 do local t={} for j=1,9 do t[j]=tostring(j)..i end table.sort(t) end print(pcall(error,'x'))"
    python = ("import json,re,threading;t=[threading.Thread(target=lambda:json.dumps({'a':1})) for _ in range(5)];"
              "[x.start() for x in t];[x.join() for x in t];print(re.sub('a+','b','caaat'))")
    for command in (["lua5.4", "-e", lua], ["/usr/bin/python3.11", "-c", python],
                    ["perl", "-MPOSIX", "-e", "print join(',', map { POSIX::floor($_ * 1.5) } 1..9), qq{\\n}"],
                    ["git", "--version"], ["fdfind", "--max-depth", "1", ".", "/etc/apt"]):
        plain = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        database = sojourn.path("real.db")
        # perl's libraries are patched as well. A library call that reaches a patched function ends when that function
        # is entered.
        libraries = ["--libs"] if command[0] == "perl" else []
        done, _ = sojourn.record(command, database, ["--library-calls", *libraries, "--block-ms", "10000"], text=True)
        compare(command[0], plain.stdout + plain.stderr, done.stdout + done.stderr)
        check(plain.returncode == done.returncode, f"{command[0]} ended with {done.returncode}")
        check_accounts(sojourn, database)
        orphans = sojourn.sql(database, "SELECT count(*) AS n FROM gaps WHERE reason = 'orphan'")[0]["n"]
        check(orphans == 0, f"{command[0]}: {orphans} exits of calls that are not open")
        calls = sum(row["calls"] for row in sojourn.sql(database, COUNTS))
        check(calls > 20, f"{command[0]} made {calls} calls into libraries")
        print(f"{command[0]}: {calls} calls into libraries", flush=True)
        os.unlink(database)


def attach_records_all_but_library_calls(sojourn, folder):
    """In a program that is attached to, everything else is recorded. Library calls that are not recorded are
    reported with the reason, whether the first policy or a later one asks for them."""
    target = Target([os.path.join(folder, "library_policy"), os.path.join(folder, "library_plugin.so")]).ready()
    database = sojourn.path("attached.db")
    recorder = start_attach(sojourn, target.pid, database, ["--library-calls"])
    answer = set_policy(sojourn, target.pid, "--library-calls")
    check("library_calls: only in programs that `sojourn record` started" in str(answer["not_applied"]),
          f"a policy for an attached program: {answer}")
    sojourn.run(["detach", str(target.pid)], check=True, stdout=subprocess.DEVNULL)
    check(target.finish() == (0, "mistakes 0\n"), "the attached program")
    _, errors = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0 and "library_calls: only in programs that `sojourn record` started" in errors,
          f"attach says {errors}")
    told = [row["not_applied"] for row in sojourn.sql(database, "SELECT not_applied FROM policies ORDER BY number")]
    check(len(told) == 2 and all("modules.library_calls: only in" in text for text in told), f"policies: {told}")
    named = sojourn.sql(database, "SELECT count(*) AS n FROM functions WHERE name LIKE '%!%'")[0]["n"]
    calls = sojourn.sql(database, "SELECT sum(calls) AS n FROM function_stats")[0]["n"]
    check(named == 0 and calls > 0, f"{named} imports, {calls} calls")


def order(process, letters):
    for letter in letters:
        process.stdin.write(letter)
        process.stdin.flush()
        check(process.stdout.readline() == "done\n", f"the program did not do {letter}")


def start_recorded(sojourn, folder, database, options, words=("library_policy", "library_plugin.so")):
    """Starts a program that reads commands, under `record`. Returns the recorder and the program's pid."""
    recorder = subprocess.Popen(
        [sojourn.program, "record", "-q", "-o", database, *options, "--", *(os.path.join(folder, word) for word in words)],
        env=dict(sojourn.environment, LD_LIBRARY_PATH=folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    check(recorder.stdout.readline() == "ready\n", f"{folder}: the program did not start")
    return recorder, children(recorder.pid)[0]


def policies_bind_and_unbind(sojourn, folder, linking):
    """A policy for a running recording binds calls into libraries and restores them. The slots were never used, or
    belong to later modules or children, or other threads call through them."""
    database = sojourn.path("policy.db")
    own = ["--module", "library_policy", "--module", "library_plugin.so"]
    recorder, pid = start_recorded(sojourn, folder, database, own)
    order(recorder, "rw")  # before the policy: not recorded
    answer = set_policy(sojourn, pid, *own, "--library-calls")
    check(answer["hooked"] > 5 and answer["not_applied"] == ['"library_plugin.so" matches no function so far'], f"{folder}: {answer}")
    order(recorder, "rwvl")
    answer = set_policy(sojourn, pid, *own)
    check(answer["freed"] > 5 and not answer["not_applied"], f"{folder}: {answer}")
    order(recorder, "rwvlf")
    for i in range(20): # while two threads call
        answer = set_policy(sojourn, pid, *own, *(["--library-calls"] if i % 2 == 0 else []))
        check(answer["hooked"] + answer["freed"] > 5 and not answer["not_applied"], f"{folder}: {answer}")
    set_policy(sojourn, pid, *own, "--library-calls")
    order(recorder, "rwvlf")
    output, _ = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0 and output == "mistakes 0\n", f"{folder}: {recorder.returncode} {output}")
    check_accounts(sojourn, database)
    program = recorded(sojourn, database, "library_policy")
    plugin = recorded(sojourn, database, "library_plugin.so")
    taken = {row["name"].split("!")[1] for row in sojourn.sql(database, REASONS) if row["reason"] == TAKEN}
    for name, calls in (("called_many", 300), ("called_variadic", 200)):
        if linking != "no_plt" or name not in taken:
            check(program.get(name) == calls, f"{folder}: {name} {program.get(name)}, not {calls}")
    check(program.get("called_add", 0) > 1000 or "called_add" in taken, f"{folder}: {program}")
    check(program.get("called_back", 0) >= 2 or "called_back" in taken, f"{folder}: {program}")
    check(plugin.get("called_add") == 204 or "called_add" in taken, f"{folder}: the plugin {plugin}")
    print(f"{os.path.basename(folder)}: bound and given back, {sum(program.values())} calls", flush=True)
    os.unlink(database)


def library_calls_without_a_clock_are_reported(sojourn, folder):
    """In modes that count calls without a clock, a policy that asks for calls into libraries reports that they are
    not recorded."""
    database = sojourn.path("counted.db")
    own = ["--module", "library_policy"]
    recorder, pid = start_recorded(sojourn, folder, database, [*own, "--clock", "adaptive"])
    answer = set_policy(sojourn, pid, *own, "--library-calls")
    check("modules.library_calls: calls into libraries are not recorded" in str(answer["not_applied"]), f"told: {answer}")
    output, _ = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0 and output == "mistakes 0\n", f"{recorder.returncode} {output}")
    os.unlink(database)


def stub_bytes(pid):
    """Returns the size of the agent's stubs: executable memory that belongs to no file."""
    total = 0
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        for line in file:
            fields = line.split()
            if len(fields) == 5 and "x" in fields[1]:
                low, high = fields[0].split("-")
                total += int(high, 16) - int(low, 16)
    return total


def calls_to_patched_functions_are_not_bound(sojourn, folder):
    """A later policy does not bind calls of functions that were patched without knowing their callers, because such
    calls would be counted as unwound. The reason is reported, and repeated policies do not allocate more stubs."""
    database = sojourn.path("patched.db")
    own = ["--module", "library_policy", "--module", "libcalled.so"]
    recorder, pid = start_recorded(sojourn, folder, database, own)
    sizes = set()
    for _ in range(4):
        answer = set_policy(sojourn, pid, *own, "--library-calls")
        check(answer["hooked"] > 2, f"{folder}: {answer}")
        order(recorder, "rw")
        set_policy(sojourn, pid, *own)
        sizes.add(stub_bytes(pid))
    check(len(sizes) == 1, f"{folder}: stubs of {sizes} bytes")
    output, _ = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0 and output == "mistakes 0\n", f"{folder}: {recorder.returncode} {output}")
    check_accounts(sojourn, database)
    rows = sojourn.sql(database, "SELECT (SELECT count(*) FROM gaps WHERE reason = 'orphan') AS orphans, "
                                 "(SELECT count(*) FROM calls WHERE ending = 'unwound') AS unwound")
    check(rows == [{"orphans": 0, "unwound": 0}], f"{folder}: {rows}")
    called = recorded(sojourn, database, "library_policy")
    check("called_many" not in called and sum(called.values()) > 0, f"{folder}: {called}")
    left = {row["name"] for row in sojourn.sql(database, REASONS) if row["reason"] == NOT_BOUND}
    check("!called_many" in left, f"{folder}: {left}")
    os.unlink(database)


def a_call_bound_during_a_load_is_reported(sojourn, folder):
    """A thread that binds a call while a module is loaded may overwrite its hook afterwards. The possibility is
    reported, and the next policy, which selects the same, hooks it again."""
    database = sojourn.path("waits.db")
    own = ["--module", "near.so"]
    recorder, pid = start_recorded(sojourn, folder, database, own, ("library_waits", "far.so", "near.so", "slow.so"))
    order(recorder, "hb")
    answer = set_policy(sojourn, pid, *own, "--library-calls")
    check("a thread waits for another that loads a module" in str(answer["not_applied"]), f"told: {answer}")
    order(recorder, "gr")
    answer = set_policy(sojourn, pid, *own, "--library-calls")
    check(answer["hooked"] == 1 and not answer["not_applied"], f"made good: {answer}")
    order(recorder, "r")
    answer = set_policy(sojourn, pid, *own, "--library-calls")
    check(answer["hooked"] == 0 and not answer["not_applied"], f"nothing to do: {answer}")
    output, _ = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0 and output == "mistakes 0\n", f"{recorder.returncode} {output}")
    check_accounts(sojourn, database)
    calls = recorded(sojourn, database, "near.so")
    check(calls.get("far_call") == 100, f"{calls} after the second policy")
    os.unlink(database)


def test(sojourn, _):
    sojourn.environment["XDG_RUNTIME_DIR"] = sojourn.folder
    samples = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests/samples")
    for compiler, linking in EVERY if IS_LONG else DEFAULT:
        one_variant(sojourn, os.path.join(samples, f"library-{compiler}-{linking}"), linking)
    for compiler, linking in [*CHANGED, ("gcc", "no_plt")] if IS_LONG else CHANGED:
        policies_bind_and_unbind(sojourn, os.path.join(samples, f"library-{compiler}-{linking}"), linking)
    every_kind_of_import(sojourn, os.path.join(samples, "library-imports"))
    judges_with_libraries(sojourn)
    calls_to_patched_functions_are_not_bound(sojourn, os.path.join(samples, "library-gcc-lazy"))
    library_calls_without_a_clock_are_reported(sojourn, os.path.join(samples, "library-gcc-lazy"))
    a_call_bound_during_a_load_is_reported(sojourn, os.path.join(samples, "library-waits"))
    attach_records_all_but_library_calls(sojourn, os.path.join(samples, "library-gcc-lazy"))
    for linking in ("lazy", "now") if IS_LONG else ("lazy",):
        one_variant(sojourn, os.path.join(samples, f"library-aarch64-{linking}"), linking)
    real_programs(sojourn)


if __name__ == "__main__":
    main(test)
