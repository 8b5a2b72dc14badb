"""Attaches to a running Mono program repeatedly. Its methods are recorded, it behaves as without Sojourn, and two
pages of the agent stay mapped."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import mappings, set_policy, start_attach
from sojourn_testing import PATIENCE_S, check, check_accounts, function_lines, main, sample_text

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "mono")
CALLS = """SELECT f.name, c.ending, count(*) AS calls FROM calls c JOIN functions f USING (function_id)
           WHERE f.name LIKE 'Work:%' GROUP BY 1, 2"""
THROWN = """SELECT f.name, a.value AS type, count(*) AS calls FROM arguments a JOIN calls c USING (session_id, call_id)
            JOIN functions f USING (function_id) WHERE a.kind = 'thrown' GROUP BY 1, 2"""


class Program:
    """The sample, which replies to each line of its input."""

    def __init__(self, program, options=()):
        self.process = subprocess.Popen(["mono", *options, program], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        check(self.process.stdout.readline() == "ready\n", "the program did not start")

    def tell(self, what, times, answer=None):
        self.process.stdin.write(f"{what} {times}\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        check(said == f"{what} {times if answer is None else answer}\n", f"{what} {times}: {said}")

    def finish(self):
        self.process.stdin.close()
        check(self.process.wait(PATIENCE_S) == 5, f"it ended with {self.process.returncode}")


def leave(recorder):
    recorder.send_signal(signal.SIGINT)
    output, errors = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0, f"attach ended with {recorder.returncode}: {output}{errors}")
    return errors


def recorded(sojourn, database):
    check_accounts(sojourn, database)
    return {(row["name"], row["ending"]): row["calls"] for row in sojourn.sql(database, CALLS)}


def check_left(pid, rounds):
    ours = [path for _, _, _, path in mappings(pid) if "libsojourn" in path or ".arena" in path]
    check(not ours, f"mapped after round {rounds}: {ours}")


def count_of_pages(pid):
    """Returns the number of trampoline pages that stay: executable pages that belong to no file."""
    return sum(high - low for low, high, protection, path in mappings(pid)
               if path == "" and protection.startswith("r-x")) // 4096


def generated_code(pid):
    """Returns the mappings with code that the runtime has compiled. They are writable and executable."""
    with open(f"/proc/{pid}/mem", "rb") as memory:
        code = {}
        for low, high, protection, _ in mappings(pid):
            if protection.startswith("rwx"):
                memory.seek(low)
                code[low] = memory.read(high - low)
        return code


def recording(sojourn, program, name, lines, options=()):
    """Attaches, sends each line to the program, and detaches."""
    database = sojourn.path(name)
    recorder = start_attach(sojourn, program.pid, database, options)
    for line in lines:
        program.tell(*line)
    leave(recorder)
    check_left(program.pid, name)
    check(count_of_pages(program.pid) == 1, f"{count_of_pages(program.pid)} pages stay")
    return recorded(sojourn, database)


def methods_compiled_earlier_are_found(sojourn, program):
    """The second recording finds methods that were compiled with probes for the first recording."""
    program.tell("early", 2)
    program.tell("throw", 2)
    for round_, (early, late, throws) in enumerate(((5, 4, 3), (3, 6, 2), (7, 1, 5))):
        lines = [("early", early), ("late", late), ("throw", throws), ("collect", 1)]
        found = recording(sojourn, program, f"round{round_}.db", lines)
        wanted = {("Work:Early(int)", "returned"): early + 1, ("Work:Late(int)", "returned"): late + 1,
                  ("Work:Clean()", "returned"): throws, ("Work:Throws(int)", "unwound"): throws + 1}
        check(found == wanted, f"round {round_} recorded {found}")
        left = [tuple(row.values()) for row in sojourn.sql(sojourn.path(f"round{round_}.db"), THROWN)]
        check(left == [("Work:Throws(int)", "Lost", throws + 1)], f"round {round_}: left by {left}")
        program.tell("late", 9)


def values_of_methods_in_place(sojourn, program):
    """Records methods that were compiled before the attach, and one that is compiled during the recording."""
    values = ["Work:Early(1:int)", "Work:Early(result:int)", "Work:Name(1:string)", "Work:Name(2:double)",
              "Work:Name(3:object)", "Work:Name(result:string)"]
    options = [part for value in values for part in ("--value", value)]
    found = recording(sojourn, program, "values.db", [("early", 2), ("name", 3)], options)
    check(found.get(("Work:Name(string,double,Mood)", "returned")) == 1, f"recorded {found}")
    text = sojourn.run(["export", sojourn.path("values.db")], capture_output=True, text=True).stdout
    said = [line for line in function_lines(text) if ":Work:" in line]
    wanted = [f"enter:Work:Early({n})" for n in (2, 1, 0)]
    wanted += [f"leave:Work:Early({n})ret:{n}" for n in (0, 1, 2)]
    wanted += ['enter:Work:Name("three",1.5,Good)', 'leave:Work:Name("three",1.5,Good)ret:"three3"']
    check(said == wanted, f"function.txt has {text}")


def generated_code_is_restored(sojourn, program):
    before = generated_code(program.pid)
    found = recording(sojourn, program, "same.db", [("early", 4), ("throw", 2)])
    check(found.get(("Work:Early(int)", "returned")) == 5, f"recorded {found}")
    after = generated_code(program.pid)
    for low, code in before.items():
        places = [i for i in range(len(code)) if code[i] != after.get(low, b"")[i:i + 1][0]]
        check(not places, f"{len(places)} bytes at {low:#x} differ, first {places[:1]}")


# Wraps endless work that an exception ends; %s is the body of the handler.
SHAPES = ("try { while (true) Take(); } catch (Lost) { %s }",
          "try { while (true) Take(); } catch (Lost e) { %s Seen(e); }",
          "try { while (true) Take(); } catch (Exception e) when (Is(e)) { %s }",
          "try { try { while (true) Take(); } finally { %s } } catch (Lost) { }",
          "try { try { while (true) Take(); } catch (Lost) { %s throw; } } catch (Exception) { }",
          "for (int i = 0; i < 2; i++) try { if (i == 0) while (true) Take(); } catch (Lost) { %s }")
HANDLERS = ("", "caught++;", "x = 5;", "x = 5; caught++;", "caught = caught * 2 + x;", "Seen(null);")
ENDS = (("void", ""), ("int", "return 7;"), ("int", "return x;"), ("long", "return x * 0x123456789L;"),
        ("double", "return x;"), ("string", "return null;"), ("int", "return caught > 0 ? Is(null) ? 1 : 2 : 3;"))


def methods_are_not_recorded_with_counted_calls(sojourn, program):
    database = sojourn.path("counted.db")
    recorder = start_attach(sojourn, program.pid, database, ["--clock", "adaptive"])
    program.tell("early", 3)
    set_policy(sojourn, program.pid, "--function", "*")
    program.tell("early", 2)
    errors = leave(recorder)
    check("methods of mono are not recorded with --clock adaptive" in errors, f"not reported: {errors}")
    check(recorded(sojourn, database) == {}, f"recorded {recorded(sojourn, database)}")
    check_left(program.pid, "counted.db")


def write_shapes(path):
    """Writes methods of many shapes, with handlers and exits of many lengths. Each method notes how it ended."""
    methods, calls = [], []
    for number, (shape, handler, (type_, end)) in enumerate((shape, handler, end) for shape in SHAPES
                                                            for handler in HANDLERS for end in ENDS):
        methods.append(f"static {type_} M{number}(int x) {{ {shape % handler} {end} }}")
        call = f"M{number}(3)"
        calls.append(f"caught = 0; left = 3; {f'{call};' if type_ == 'void' else f'done.Append({call});'} done.Append(caught);")
    with open(path, "w", encoding="utf-8") as file:
        source = sample_text("mono/Shapes.cs")
        file.write(source.replace("/* methods */", "\n    ".join(methods)).replace("/* calls */", "\n            ".join(calls)))


def shapes_of_exceptions(sojourn):
    """Handlers, filters and finally blocks lie between hooked exits. The test runs them in a launched program, and
    in one that it attaches to and detaches from."""
    source, path = sojourn.path("Shapes.cs"), sojourn.path("Shapes.exe")
    write_shapes(source)
    subprocess.run(["mcs", "-warn:0", source, f"-out:{path}"], check=True, timeout=PATIENCE_S)
    told = subprocess.run(["mono", path], input="all 1\n", text=True, capture_output=True, check=False, timeout=PATIENCE_S)
    done, _ = sojourn.record(["mono", path], sojourn.path("shapes.db"), ["--mono-engine", "in_place"],
                             input="all 1\n", text=True)
    check((done.returncode, done.stdout) == (told.returncode, told.stdout) == (5, told.stdout), f"launched: {done.stdout[:200]}")
    check_accounts(sojourn, sojourn.path("shapes.db"))
    answer = told.stdout.splitlines()[1].split(" ")[1]
    program = Program(path)
    program.tell("all", 1, answer)
    found = recording(sojourn, program, "attached_shapes.db", [("all", 1, answer)] * 2, ["--function", "Shapes:M*"])
    check(found == {}, f"recorded {found}")
    calls = sojourn.sql(sojourn.path("attached_shapes.db"), """SELECT count(DISTINCT f.name) AS methods, count(*) AS calls
        FROM calls JOIN functions f USING (function_id) WHERE f.name LIKE 'Shapes:M%(%'""")[0]
    methods = len(SHAPES) * len(HANDLERS) * len(ENDS)
    check(calls["methods"] > methods * 3 // 4 and calls["calls"] == 2 * calls["methods"], f"of {methods} methods {calls}")
    program.tell("all", 1, answer)
    program.finish()


def attach_and_detach_under_load(sojourn):
    """Threads throw, trap, are aborted and run the garbage collector while the agent attaches and detaches."""
    path = sojourn.path("Busy.exe")
    subprocess.run(["mcs", "-r:System.Core", os.path.join(SAMPLES, "Busy.cs"), f"-out:{path}"],
                   check=True, timeout=PATIENCE_S)
    program = Program(path)
    for round_ in range(100 if os.environ.get("SJ_LONG") else 4):
        database = sojourn.path("load.db")
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(database + suffix):
                os.unlink(database + suffix)
        recorder = start_attach(sojourn, program.pid, database)
        program.process.stdin.write("a?")
        program.process.stdin.flush()
        check(int(program.process.stdout.readline()) > 0, "it stands still")
        leave(recorder)
        check_accounts(sojourn, database)
        calls = sojourn.sql(database, "SELECT count(*) AS calls FROM calls")[0]["calls"]
        check(calls > 0, f"round {round_}: nothing was recorded")
        check_left(program.pid, round_)
    output, _ = program.process.communicate(timeout=PATIENCE_S)
    check((program.process.returncode, output) == (6, "0 wrong\n"), f"under load: {output}")


def test(sojourn, _arguments):
    path = sojourn.path("Attached.exe")
    subprocess.run(["mcs", os.path.join(SAMPLES, "Attached.cs"), f"-out:{path}"], check=True, timeout=PATIENCE_S)
    program = Program(path)
    methods_compiled_earlier_are_found(sojourn, program)
    values_of_methods_in_place(sojourn, program)
    generated_code_is_restored(sojourn, program)
    methods_are_not_recorded_with_counted_calls(sojourn, program)
    program.finish()
    shapes_of_exceptions(sojourn)
    attach_and_detach_under_load(sojourn)


if __name__ == "__main__":
    main(test)
