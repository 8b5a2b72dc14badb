"""A Mono program forks, and finalises objects in the runtime's own thread. In both engines the recorded calls of both
processes equal what the program and its child count."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, main

SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "mono", "Forks.cs")
CALLS = """SELECT f.name, sum(s.calls) AS calls FROM function_stats s JOIN functions f USING (function_id)
           GROUP BY 1"""
CHILD = 130  # 30 calls, and one that counts as 100


def test(sojourn, _arguments):
    program = sojourn.path("Forks.exe")
    subprocess.run(["mcs", SAMPLE, f"-out:{program}"], check=True, timeout=PATIENCE_S)
    alone = subprocess.run(["mono", program], capture_output=True, check=False, timeout=PATIENCE_S)
    check(alone.returncode == CHILD, f"alone: {alone}")
    told = dict(line.split(" ", 1)[1].rsplit(" ", 1) for line in alone.stdout.decode().splitlines())
    for engine in ("callbacks", "in_place"):
        database = sojourn.path(engine + ".db")
        done, _ = sojourn.record(["mono", program], database, ["--mono-engine", engine])
        check((done.returncode, done.stdout) == (CHILD, alone.stdout), f"{engine}: it did otherwise: {done}")
        check_accounts(sojourn, database)
        found = {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS)}
        wrong = {name: (count, found.get(name)) for name, count in told.items() if found.get(name) != int(count)}
        check(len(told) == 6 and not wrong, f"{engine}: told and recorded {wrong}")
        processes = sojourn.sql(database, "SELECT count(*) AS n FROM processes")[0]["n"]
        check(processes == 2, f"{engine}: {processes} processes")
        orphans = sojourn.sql(database, "SELECT * FROM gaps WHERE reason <> 'waited'")
        check(not orphans, f"{engine}: gaps {orphans}")


if __name__ == "__main__":
    main(test)
