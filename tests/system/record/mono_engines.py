"""Compares the two engines: callbacks of the runtime, and code hooked in place. The program behaves the same, and
both engines record the calls that it counts. Each entered call ends in the right way. Stack traces and calling
assemblies are the same as without Sojourn."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, main

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "mono")
ENGINES = ("callbacks", "in_place")
CALLS = """SELECT f.name, sum(s.calls) AS calls FROM function_stats s JOIN functions f USING (function_id)
           GROUP BY 1 HAVING sum(s.calls) > 0"""
ENDINGS = """SELECT f.name, c.ending, count(*) AS calls FROM calls c JOIN functions f USING (function_id)
             WHERE c.ending <> 'returned' GROUP BY 1, 2"""
THROWN = """SELECT f.name, a.value AS type, count(*) AS calls FROM arguments a JOIN calls c USING (session_id, call_id)
            JOIN functions f USING (function_id) WHERE a.kind = 'thrown' GROUP BY 1, 2"""
ABORT = "System.Threading.ThreadAbortException"
LEFT = {("Counts:Throw(int)", "Failure"): 960, ("Counts:Wait()", ABORT): 1, ("Counts:Aborted()", ABORT): 1}
UNHOOKED = """SELECT f.name FROM unhooked_functions u JOIN functions f USING (function_id)
              WHERE u.reason <> 'an abstract or native method' AND f.name LIKE '%:%'"""


def recorded(sojourn, command, engine, number, **options):
    """Returns the result of the program, and its database."""
    database = sojourn.path(f"{engine}{number}.db")
    done, summary = sojourn.record(command, database, ["--mono-engine", engine, "--block-ms", "10000"], **options)
    check_accounts(sojourn, database)
    gaps = sojourn.sql(database, "SELECT * FROM gaps WHERE reason <> 'waited'")
    check(not gaps and summary["orphan_exits"] == 0 and summary["torn"] == 0, f"{engine}: {gaps} {summary}")
    return done, database


def counts(sojourn, database):
    return {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS)}


def counts_equal_those_of_the_program(sojourn, number, program):
    alone = subprocess.run(["mono", program], capture_output=True, check=False, timeout=PATIENCE_S)
    told = {name: int(count) for name, count in (line.split(" ", 1)[1].rsplit(" ", 1) for line in
                                                 alone.stdout.decode().splitlines() if line.startswith("COUNT "))}
    endings, found, refused = {}, {}, {}
    for engine in ENGINES:
        done, database = recorded(sojourn, ["mono", program], engine, number)
        check((done.returncode, done.stdout) == (alone.returncode, alone.stdout), f"{engine} did otherwise: {done}")
        found[engine] = counts(sojourn, database)
        wrong = {name: (count, found[engine].get(name)) for name, count in told.items()
                 if found[engine].get(name) != count}
        check(len(told) > 15 and not wrong, f"{engine}: told and recorded {wrong}")
        endings[engine] = {(row["name"], row["ending"]): row["calls"] for row in sojourn.sql(database, ENDINGS)}
        thrown = {(row["name"], row["type"]): row["calls"] for row in sojourn.sql(database, THROWN)}
        check(thrown == LEFT, f"{engine}: left by {thrown}")
        refused[engine] = {row["name"] for row in sojourn.sql(database, UNHOOKED)}
        os.unlink(database)
    check(endings["callbacks"] == endings["in_place"] and len(endings["in_place"]) == 3, f"endings {endings}")
    check(not refused["callbacks"], f"callbacks left out {refused}")
    # Methods that cannot be hooked are listed. All others were called equally often in both.
    differ = {name for name in {*found["callbacks"], *found["in_place"]} - refused["in_place"]
              if found["callbacks"].get(name) != found["in_place"].get(name)}
    # The machine of an async method is set only if its task has not ended yet, which depends on timing.
    differ = {name for name in differ if ":SetStateMachine(" not in name}
    check(not differ, f"the engines differ in { {name: [found[e].get(name) for e in ENGINES] for name in differ} }")


def checks_of_the_program_pass(sojourn, number, program):
    """The program itself checks stack traces, calling assemblies, traps, aborts and results, also during garbage
    collections."""
    for engine in ENGINES:
        done, database = recorded(sojourn, ["mono", program], engine, number, stdin=subprocess.DEVNULL)
        check((done.returncode, done.stdout) == (6, b"ready\n0 wrong\n"), f"{engine}: {done}")
        found = counts(sojourn, database)
        # A round makes each of these checks once. Every sixteenth round collects garbage.
        rounds = found.get("Busy:Round(int)", 0)
        check(rounds >= 40, f"{engine}: {rounds} rounds")
        for name in ("Busy:Caller()", "Busy:IsCalledByUs()", "Busy:Traps(object,int)", "Busy:Catch(int)"):
            check(found.get(name) == rounds, f"{engine}: {name} {found.get(name)} of {rounds}")
        check(found.get("Busy:Deep(int)") == 7 * rounds, f"{engine}: Deep {found.get('Busy:Deep(int)')}")
        os.unlink(database)


def test(sojourn, _arguments):
    programs = {}
    for name in ("Counts", "Busy"):
        programs[name] = sojourn.path(name + ".exe")
        subprocess.run(["mcs", "-r:System.Core", os.path.join(SAMPLES, name + ".cs"), f"-out:{programs[name]}"],
                       check=True, timeout=PATIENCE_S)
    for number in range(50 if os.environ.get("SJ_LONG") else 2):
        counts_equal_those_of_the_program(sojourn, number, programs["Counts"])
        checks_of_the_program_pass(sojourn, 1000 + number, programs["Busy"])


if __name__ == "__main__":
    main(test)
