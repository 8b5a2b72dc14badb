"""Changes the policy of a running Mono program: methods that are compiled already are recorded from then on, others
no longer. The program is launched or attached to, and compiled at run time or ahead of it."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import set_policy, start_attach
from sojourn_testing import PATIENCE_S, check, check_accounts, children, main

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "mono")
CALLS = """SELECT f.name, sum(s.calls) AS calls FROM function_stats s JOIN functions f USING (function_id)
           GROUP BY 1 HAVING sum(s.calls) > 0"""
EARLY, LATE, BOTH = (["--function", f"Work:{name}*"] for name in ("Early", "Late", "[EL]a*"))


def tell(process, what, times):
    process.stdin.write(f"{what} {times}\n")
    process.stdin.flush()
    said = process.stdout.readline()
    check(said == f"{what} {times}\n", f"{what} {times}: {said}")


def changes(sojourn, process, pid, options=()):
    """Each line of work calls its method once more than the line says."""
    tell(process, "early", 3)
    tell(process, "late", 2)
    answer = set_policy(sojourn, pid, *options, *LATE)
    check(answer["not_applied"] == [] and answer["processes"] == 1, f"late: {answer}")
    tell(process, "early", 30)
    tell(process, "late", 4)
    tell(process, "throw", 5)
    answer = set_policy(sojourn, pid, *options, *BOTH)
    check(answer["not_applied"] == [], f"both: {answer}")
    tell(process, "early", 6)
    tell(process, "late", 7)
    answer = set_policy(sojourn, pid, *options, *EARLY)
    check(answer["not_applied"] == [], f"early: {answer}")
    tell(process, "early", 8)
    tell(process, "late", 90)
    return {"Work:Early(int)": 4 + 7 + 9, "Work:Late(int)": 5 + 8}


def check_recorded(sojourn, database, wanted, how):
    check_accounts(sojourn, database)
    found = {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS)}
    check(found == wanted, f"{how}: wanted {wanted}, recorded {found}")


def launched(sojourn, program):
    for engine in ("callbacks", "in_place"):
        how = ["--mono-engine", engine]
        database = sojourn.path(f"{engine}.db")
        recorder = subprocess.Popen([sojourn.program, "record", "-q", "-o", database, *how, "--allow-unmatched",
                                     *EARLY, "--", "mono", program], env=sojourn.environment,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        check(recorder.stdout.readline() == "ready\n", "the program did not start")
        wanted = changes(sojourn, recorder, children(recorder.pid)[0], how)
        recorder.stdin.close()
        check(recorder.wait(PATIENCE_S) == 5, f"it ended with {recorder.returncode}")
        check_recorded(sojourn, database, wanted, engine)


def attached(sojourn, program, how):
    process = subprocess.Popen(["mono", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    check(process.stdout.readline() == "ready\n", "the program did not start")
    tell(process, "early", 1)
    tell(process, "late", 1)
    database = sojourn.path(how + ".db")
    recorder = start_attach(sojourn, process.pid, database, EARLY)
    wanted = changes(sojourn, process, process.pid)
    recorder.send_signal(signal.SIGINT)
    recorder.communicate(timeout=PATIENCE_S)
    process.stdin.close()
    check(process.wait(PATIENCE_S) == 5, f"it ended with {process.returncode}")
    check_recorded(sojourn, database, wanted, how)


def test(sojourn, _arguments):
    program = sojourn.path("Attached.exe")
    subprocess.run(["mcs", os.path.join(SAMPLES, "Attached.cs"), f"-out:{program}"], check=True, timeout=PATIENCE_S)
    launched(sojourn, program)
    attached(sojourn, program, "attached")
    subprocess.run(["mono", "--aot", program], check=True, capture_output=True, timeout=PATIENCE_S)
    attached(sojourn, program, "ahead")


if __name__ == "__main__":
    main(test)
