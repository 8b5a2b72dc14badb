"""Programs that embed the runtime, linked or opened later, are recorded like `mono`, in one tree with their native
code. They can be attached to. Programs whose runtime lacks a function are recorded as native code, and the reason is
reported. SJ_LONG=1: counts of the linked program, too."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import start_attach
from sojourn_testing import IS_LONG, PATIENCE_S, check, check_accounts, main

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "mono")
CHOSEN = "SELECT function_id FROM functions WHERE name LIKE 'Guest:%' OR name LIKE 'embedder_%'"
TREE = f"""SELECT f.name, p.name AS parent, c.ending FROM calls c JOIN functions f USING (function_id)
           LEFT JOIN calls d ON d.session_id = c.session_id AND d.call_id = c.parent_id
           LEFT JOIN functions p ON p.function_id = d.function_id
           WHERE c.function_id IN ({CHOSEN}) ORDER BY c.call_id"""
BACK, ANSWER, FAILS = "Guest:Back(int)", "embedder_answer", "Guest:Fails(int)"
MAIN = "Guest:Main(string[])"
WANTED = [("embedder_call", "main", "returned"), (BACK, "embedder_call", "returned"),
          (ANSWER, BACK, "returned"), (BACK, ANSWER, "returned"), (ANSWER, BACK, "returned"),
          (BACK, ANSWER, "returned"), (ANSWER, BACK, "returned"), (MAIN, "main", "returned"),
          (FAILS, MAIN, "unwound"), *[(FAILS, FAILS, "unwound")] * 4]
# The symbols that a runtime exports, and the reason why its methods are not recorded.
OLDER = {"JIT_END": "mono_profiler_install_jit_end", "WITH_OPT": "mono_jit_compile_method",
         "BY_NAME": "mono_jit_compile_method", "SLOT": "mono_compile_method", "NEW": "profiler interface", "NONE": "nothing"}
REFUSED = """SELECT payload ->> 'reason' AS reason, payload ->> 'missing' AS missing FROM reports
             WHERE monitor = 'mono' AND kind = 'refused'"""
COUNTS = "SELECT f.name, s.calls FROM function_stats s JOIN functions f USING (function_id)"


def compile_all(sojourn):
    libraries = subprocess.run(["pkg-config", "--libs", "monosgen-2"], capture_output=True, text=True, check=True)
    source = os.path.join(SAMPLES, "embedder.c")
    for name, options in (("linked", libraries.stdout.split()), ("late", ["-DLATE"])):
        subprocess.run(["cc", "-O2", source, "-o", sojourn.path(name), *options], check=True, timeout=PATIENCE_S)
    for name, options in (("Guest", []), ("Counts", ["-r:System.Core"]), ("Attached", [])):
        subprocess.run(["mcs", *options, os.path.join(SAMPLES, name + ".cs"), f"-out:{sojourn.path(name + '.exe')}"],
                       check=True, timeout=PATIENCE_S)


def recorded(sojourn, command, name, options=()):
    alone = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE_S)
    done, _ = sojourn.record(command, sojourn.path(name), options)
    check((done.returncode, done.stdout) == (alone.returncode, alone.stdout), f"{name}: it did otherwise: {done}")
    check_accounts(sojourn, sojourn.path(name))
    return alone


def native_and_managed_calls_make_one_tree(sojourn, embedder):
    for options in ((), ("--libs",)):
        name = f"{embedder}{len(options)}.db"
        alone = recorded(sojourn, [sojourn.path(embedder), sojourn.path("Guest.exe"), "a"], name, options)
        check((alone.returncode, alone.stdout) == (9, b"at the end\n1\n"), f"{embedder} alone: {alone}")
        rows = sojourn.sql(sojourn.path(name), TREE)
        found = [(row["name"], row["parent"], row["ending"]) for row in rows]
        # With --libs, functions of the runtime lie between them.
        wanted = WANTED if not options else [(name, None, ending) for name, _, ending in WANTED]
        found = found if not options else [(name, None, ending) for name, _, ending in found]
        check(found == wanted, f"{embedder} {options}: {found}")


def counts_equal_those_of_the_program(sojourn, embedder):
    alone = recorded(sojourn, [sojourn.path(embedder), sojourn.path("Counts.exe")], embedder + "_counts.db")
    told = dict(line.split(" ", 1)[1].rsplit(" ", 1) for line in alone.stdout.decode().splitlines()
                if line.startswith("COUNT "))
    check(len(told) > 12, f"it told {told}")
    found = {}
    for row in sojourn.sql(sojourn.path(embedder + "_counts.db"), COUNTS):
        found[row["name"]] = found.get(row["name"], 0) + row["calls"]
    wrong = {name: (count, found.get(name)) for name, count in told.items() if found.get(name) != int(count)}
    check(not wrong, f"{embedder}: told and recorded: {wrong}")


def attached(sojourn, embedder):
    process = subprocess.Popen([sojourn.path(embedder), sojourn.path("Attached.exe")], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)

    def tell(line):
        process.stdin.write(line + "\n")
        process.stdin.flush()
        said = process.stdout.readline()
        check(said == line + "\n", f"{line}: {said}")

    check(process.stdout.readline() == "ready\n", f"{embedder} did not start")
    tell("early 2")
    database = sojourn.path(embedder + "_attached.db")
    recorder = start_attach(sojourn, process.pid, database)
    tell("early 3")
    tell("late 2")
    recorder.send_signal(signal.SIGINT)
    output, errors = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0, f"attach ended with {recorder.returncode}: {output}{errors}")
    tell("early 1")
    process.stdin.close()
    check(process.wait(PATIENCE_S) == 5, f"{embedder} ended with {process.returncode}")
    check_accounts(sojourn, database)
    found = {row["name"]: row["calls"] for row in sojourn.sql(database, COUNTS)}
    check((found.get("Work:Early(int)"), found.get("Work:Late(int)")) == (4, 3), f"{embedder} attached: {found}")


def unsupported_runtimes_are_reported(sojourn):
    source = os.path.join(SAMPLES, "older.c")
    for exports, reason in OLDER.items():
        program, name = sojourn.path("older_" + exports), f"older_{exports}.db"
        subprocess.run(["cc", "-O1", "-rdynamic", f"-D{exports}", source, "-o", program], check=True, timeout=PATIENCE_S)
        alone = recorded(sojourn, [program], name)
        check((alone.returncode, alone.stdout) == (4, b"55\n"), f"{exports} alone: {alone}")
        rows = sojourn.sql(sojourn.path(name), REFUSED)
        check(len(rows) == 1 and reason in rows[0]["reason"] and rows[0]["missing"] == "mono_profiler_create",
              f"{exports}: {rows}")
        calls = {row["name"]: row["calls"] for row in sojourn.sql(sojourn.path(name), COUNTS)}
        check(calls.get("older_work") == 177, f"{exports}: {calls}")
    complete = sojourn.sql(sojourn.path("linked0.db"), REFUSED)
    check(not complete, f"Mono {complete}")


def test(sojourn, _arguments):
    compile_all(sojourn)
    for embedder in ("linked", "late"):
        native_and_managed_calls_make_one_tree(sojourn, embedder)
        if IS_LONG or embedder == "late":
            counts_equal_those_of_the_program(sojourn, embedder)
        attached(sojourn, embedder)
    unsupported_runtimes_are_reported(sojourn)


if __name__ == "__main__":
    main(test)
