"""Assemblies and methods come and go: they are in unloaded application domains, loaded from bytes, emitted, dynamic
and freed. Each is recorded as often as it was called, and never as another method that had its address before."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, main

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "mono")
ROUNDS = 4
CALLS = """SELECT m.path, f.name, count(*) AS calls FROM calls c JOIN functions f USING (function_id)
           JOIN modules m USING (module_id) GROUP BY 1, 2"""
SUMS = """SELECT m.path, f.name, s.calls FROM function_stats s JOIN functions f USING (function_id)
          JOIN modules m USING (module_id) WHERE s.calls > 0"""


def compile_all(sojourn):
    program, first, second = (sojourn.path(name) for name in ("Domains.exe", "First.dll", "Second.dll"))
    plugin = os.path.join(SAMPLES, "Plugin.cs")
    for words in ([os.path.join(SAMPLES, "Domains.cs"), f"-out:{program}"],
                  ["-target:library", plugin, f"-out:{first}"],
                  ["-target:library", "-define:SECOND", plugin, f"-out:{second}"]):
        subprocess.run(["mcs", *words], check=True, timeout=PATIENCE_S)
    return program, first, second


def expected(program, first, second):
    """Returns the expected calls by module and method. One file is loaded by its path and called twice, and by its
    bytes and called three times.
    """
    made = {(program, "Domains:Main(string[])"): 1, (program, "Domains:InDomain(string,bool,int)"): 4 * ROUNDS,
            (program, "Worker:.ctor()"): 4 * ROUNDS, (program, "Worker:Work(string,bool,int)"): 4 * ROUNDS,
            (program, "Worker:Here()"): 10 * ROUNDS, (program, "Domains:Dynamic(int)"): 30 * ROUNDS,
            (program, "Domains:Emitted(string)"): ROUNDS}
    for path, name, more in ((first, "First", ()), (second, "Second", ("Base:Second()",))):
        for method in ("Plugin:Answer(int)", "Plugin:Twice(int)", "Base:get_Number()", *more):
            made[(path, method)] = 2 * ROUNDS
            made[("mono:" + name, method)] = 3 * ROUNDS
    for number in range(3):
        made[("mono:mscorlib", f"object:Dynamic{number}(int)")] = 20 * ROUNDS
    for number in range(ROUNDS):
        made[(f"mono:Made{number}", f"Made{number}Type:Three()")] = 1
    return made


def counted(sojourn, database, query):
    return {(row["path"], row["name"]): row["calls"] for row in sojourn.sql(database, query)}


def test(sojourn, _arguments):
    program, first, second = compile_all(sojourn)
    command = ["mono", program, first, second]
    alone = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE_S)
    database = sojourn.path("domains.db")
    done, _ = sojourn.record(command, database)
    check((done.returncode, done.stdout) == (4, alone.stdout), f"it did otherwise: {done}")
    check_accounts(sojourn, database)
    wanted = expected(program, first, second)
    for query in (CALLS, SUMS):
        found = counted(sojourn, database, query)
        wrong = {key: (found.get(key), wanted.get(key)) for key in {*found, *wanted}
                 if found.get(key) != wanted.get(key)}
        check(not wrong, f"recorded and wanted: {wrong}")


if __name__ == "__main__":
    main(test)
