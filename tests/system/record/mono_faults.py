"""Faults beside a Mono program: exceptions through native frames, other profilers, and a killed program. The
recorder is slow, stopped, or killed while the program waits for its reply about a method. SJ_LONG=1: each engine
with the runtime's own functions, killed at 50 moments."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import IS_LONG, PATIENCE_S, check, check_accounts, children, main, stop_all_threads, wait_for

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "mono")
CALLS = """SELECT f.name, sum(s.calls) AS calls FROM function_stats s JOIN functions f USING (function_id)
           GROUP BY 1"""
THROWN = """SELECT f.name, a.value AS type, count(*) AS calls FROM arguments a JOIN calls c USING (session_id, call_id)
            JOIN functions f USING (function_id) WHERE a.kind = 'thrown' AND f.name LIKE 'Natives:%' GROUP BY 1, 2"""


def compile_sample(sojourn, name, output, options=()):
    subprocess.run(["mcs", *options, os.path.join(SAMPLES, name), f"-out:{sojourn.path(output)}"], check=True,
                   timeout=PATIENCE_S)
    return sojourn.path(output)


def counts(sojourn, database):
    return {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS)}


def record_and_compare_counts(sojourn, command, name, options=()):
    """Records a program that counts its own calls. Returns the database."""
    database = sojourn.path(name)
    alone = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE_S)
    done, _ = sojourn.record(command, database, options)
    check((done.returncode, done.stdout) == (alone.returncode, alone.stdout), f"{name}: it did otherwise: {done}")
    check_accounts(sojourn, database)
    told = dict(line.split(" ", 1)[1].rsplit(" ", 1) for line in alone.stdout.decode().splitlines()
                if line.startswith("COUNT "))
    found = counts(sojourn, database)
    wrong = {key: (count, found.get(key)) for key, count in told.items() if found.get(key) != int(count)}
    check(told and not wrong, f"{name}: told and recorded: {wrong}")
    return database


def exceptions_through_native_frames(sojourn):
    """Runs in both engines, and with the runtime's functions that unwind."""
    program = compile_sample(sojourn, "Natives.cs", "Natives.exe")
    engines = ((), ("--mono-engine", "in_place", "--libs"))
    for options in (*engines, ("--libs",), ("--mono-engine", "in_place")) if IS_LONG else engines:
        database = record_and_compare_counts(sojourn, ["mono", program], f"natives{len(options)}.db", options)
        rows = sojourn.sql(database, """SELECT f.name, c.ending, count(*) AS calls FROM calls c
            JOIN functions f USING (function_id) WHERE f.name LIKE 'Natives:%' AND c.ending <> 'returned'
            GROUP BY 1, 2""")
        ended = {row["name"]: (row["ending"], row["calls"]) for row in rows}
        check(ended == {"Natives:Failing(intptr,intptr)": ("unwound", 251), "Natives:Throw()": ("unwound", 251),
                        "Natives:Sort(Natives/Compare,int)": ("unwound", 251)}, f"{options}: ended by {ended}")
        left = {row["name"]: (row["type"], row["calls"]) for row in sojourn.sql(database, THROWN)}
        check(left == {name: ("System.InvalidOperationException", 251) for name in ended}, f"{options}: left by {left}")


def beside_other_profilers(sojourn):
    program = compile_sample(sojourn, "Counts.cs", "Counts.exe", ["-r:System.Core"])
    for profiler in ("log:calls", "coverage"):
        output = sojourn.path("profile")
        option = f"--profile={profiler}{',' if ':' in profiler else ':'}output={output}"
        record_and_compare_counts(sojourn, ["mono", option, program], f"beside_{profiler[:3]}.db")
        check(os.path.getsize(output) > 1000, f"{profiler} wrote nothing")
        os.unlink(output)


def a_full_ring_delays_no_garbage_collection(sojourn):
    """Garbage collections stop all threads, also threads that wait for space in the ring."""
    program = sojourn.path("Natives.exe")
    alone = subprocess.run(["mono", program], capture_output=True, check=False, timeout=PATIENCE_S)
    for how in ("drop", "block"):
        database = sojourn.path(how + ".db")
        recorder = subprocess.Popen(
            [sojourn.program, "record", "--quiet", "-o", database, "--buffer", "1", "--when-full", how, "--", "mono",
             program], stdout=subprocess.PIPE, env=sojourn.environment)
        # The recorder stops now and then, so that the rings fill up.
        while recorder.poll() is None:
            recorder.send_signal(signal.SIGSTOP)
            os.sched_yield()
            recorder.send_signal(signal.SIGCONT)
            try:
                recorder.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
        check((recorder.returncode, recorder.stdout.read()) == (8, alone.stdout), f"{how}: ended with "
              f"{recorder.returncode}")
        check_accounts(sojourn, database)


def has_socket(pid):
    """True if a request to the recorder is under way. The agent has a socket open only during a request."""
    for entry in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{entry}").startswith("socket:"):
                return True
        except FileNotFoundError:
            continue
    return False


def ask(process, library):
    process.stdin.write(library + "\n")
    process.stdin.flush()


def killed_while_asked(sojourn, engine, questions, first):
    """Kills the recorder while the program waits for its reply to the second of `questions`. The recording then has
    one call of `first`."""
    database = sojourn.path(engine + "_killed.db")
    recorder = subprocess.Popen(
        [sojourn.program, "record", "--quiet", "-o", database, "--mono-engine", engine, "--", "mono",
         sojourn.path("Waits.exe")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=sojourn.environment)
    check(recorder.stdout.readline() == "ready\n", "the program does not run")
    pid = wait_for("the program", lambda: children(recorder.pid))[0]
    for number, (question, answer) in enumerate(questions):
        if number == 1:
            stop_all_threads(recorder.pid)
        ask(recorder, question)
        if number == 1:
            wait_for("the program asks the recorder", lambda: has_socket(pid))
            recorder.send_signal(signal.SIGKILL)
            recorder.wait()
        check(recorder.stdout.readline() == answer, f"{engine}: the answer to question {number}")
    recorder.stdin.close()
    check(recorder.stdout.read() == "", "it said more")
    wait_for("the program ends", lambda: not os.path.exists(f"/proc/{pid}"))
    done = sojourn.run(["flush"], capture_output=True, text=True)
    check(done.returncode == 0 and "1 session finished" in done.stdout, f"flush: {done}")
    check_accounts(sojourn, database)
    check(counts(sojourn, database).get(first) == 1, f"{engine}: recorded {counts(sojourn, database)}")


def a_recorder_killed_during_a_request_harms_no_program(sojourn):
    """The recorder is killed and does not reply. The program continues, and the recording until then is kept. The
    request is about an assembly, or about the code of a method while it is compiled."""
    compile_sample(sojourn, "Waits.cs", "Waits.exe")
    libraries = [compile_sample(sojourn, "Victim.cs", name, ["-target:library"]) for name in ("A.dll", "B.dll", "C.dll")]
    killed_while_asked(sojourn, "callbacks", [(library, "134\n") for library in libraries], "Victim:Run(int)")
    killed_while_asked(sojourn, "in_place", [(libraries[0] + "!First", "8\n"), (libraries[0] + "!Third", "14\n"),
                                             (libraries[0] + "!Fourth", "6\n")], "Victim:First(int)")


def the_program_is_killed(sojourn):
    """The program is killed at moments of its own progress, with both engines in turn. The session ends, and its
    totals agree."""
    program = compile_sample(sojourn, "Busy.cs", "Busy.exe", ["-r:System.Core"])
    for number, rounds in enumerate(range(0, 3000, 60) if os.environ.get("SJ_LONG") else (0, 40)):
        engine = ("callbacks", "in_place")[number % 2]
        database = sojourn.path("program.db")
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(database + suffix):
                os.unlink(database + suffix)
        recorder = subprocess.Popen(
            [sojourn.program, "record", "--quiet", "-o", database, "--mono-engine", engine, "--", "mono", program],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=sojourn.environment)
        check(recorder.stdout.readline() == "ready\n", "the program does not run")
        done = 0
        while done < rounds:
            recorder.stdin.write("?")
            recorder.stdin.flush()
            done = int(recorder.stdout.readline())
        os.kill(children(recorder.pid)[0], signal.SIGKILL)
        check(recorder.wait(PATIENCE_S) == 128 + 9, f"the recorder ended with {recorder.returncode}")
        check_accounts(sojourn, database)
        states = [row["state"] for row in sojourn.sql(database, "SELECT state FROM sessions")]
        check(states == ["killed"], f"{engine}, after {rounds} rounds: {states}")
        # Main calls Round 20 times before it is ready. The content of the last chunk may be on its way.
        check(counts(sojourn, database).get("Busy:Round(int)", 0) >= 20, f"{counts(sojourn, database)}")


def test(sojourn, _arguments):
    exceptions_through_native_frames(sojourn)
    beside_other_profilers(sojourn)
    a_full_ring_delays_no_garbage_collection(sojourn)
    a_recorder_killed_during_a_request_harms_no_program(sojourn)
    the_program_is_killed(sojourn)


if __name__ == "__main__":
    main(test)
