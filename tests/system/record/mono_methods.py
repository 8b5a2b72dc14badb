"""The recorded calls of Mono programs equal the calls that the programs count, with and without everything else that
Mono runs. The programs behave the same."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, function_lines, main

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "mono")
CALLS = "SELECT f.name, s.calls FROM function_stats s JOIN functions f USING (function_id)"
ENDINGS = """SELECT f.name, c.ending, count(*) AS calls FROM calls c JOIN functions f USING (function_id)
             WHERE c.ending <> 'returned' GROUP BY 1, 2"""
TREE = """SELECT DISTINCT p.name AS parent, f.name AS name FROM calls c
          JOIN functions f USING (function_id)
          LEFT JOIN calls d ON d.session_id = c.session_id AND d.call_id = c.parent_id
          LEFT JOIN functions p ON p.function_id = d.function_id
          WHERE f.name IN ('Counts:Throw(int)', 'Counts:Catch()', 'Counts:Matches()',
                           'Counts:Cleanup()', 'Hidden:Two()')"""


def compile_samples(sojourn):
    program, hidden = sojourn.path("Counts.exe"), sojourn.path("Hidden.dll")
    subprocess.run(["mcs", "-r:System.Core", os.path.join(SAMPLES, "Counts.cs"), f"-out:{program}"],
                   check=True, timeout=PATIENCE_S)
    subprocess.run(["mcs", "-target:library", os.path.join(SAMPLES, "Hidden.cs"), f"-out:{hidden}"],
                   check=True, timeout=PATIENCE_S)
    return program, hidden


def told_counts(output):
    lines = [line.split(" ", 1)[1].rsplit(" ", 1)
             for line in output.splitlines() if line.startswith("COUNT ")]
    return {name: int(count) for name, count in lines}


def recorded(sojourn, command, name, options=(), may_have=()):
    database = sojourn.path(name)
    done, _ = sojourn.record(command, database, options)
    check_accounts(sojourn, database)
    gaps = {row["reason"] for row in sojourn.sql(database, "SELECT reason FROM gaps")}
    check(not gaps - {"waited", *may_have}, f"{name}: gaps of {gaps}")
    return database, done


def check_counts(sojourn, database, told):
    found = {}
    for row in sojourn.sql(database, CALLS):
        found[row["name"]] = found.get(row["name"], 0) + row["calls"]
    for name, count in told.items():
        check(found.get(name) == count, f"{name} counted {count}, recorded {found.get(name)}")


def check_endings(sojourn, database):
    """Throw fails at 6 times the depth for each of 160. After an abort, the program continues behind the handler."""
    ended = {row["name"]: (row["ending"], row["calls"]) for row in sojourn.sql(database, ENDINGS)}
    check(ended == {"Counts:Throw(int)": ("unwound", 960), "Counts:Wait()": ("unwound", 1),
                    "Counts:Aborted()": ("unwound", 1)}, f"calls ended by {ended}")


def check_tree(sojourn, database):
    edges = {(row["parent"], row["name"]) for row in sojourn.sql(database, TREE)}
    wanted = {("Counts:Catch()", "Counts:Throw(int)"), ("Counts:Throw(int)", "Counts:Throw(int)"),
              ("Counts:Work()", "Counts:Catch()"), ("Counts:Catch()", "Counts:Cleanup()"),
              ("Counts:Aborted()", "Counts:Cleanup()"), ("Hidden:Answer(int)", "Hidden:Two()")}
    # A filter runs in the call that threw, before anything is unwound.
    check(wanted <= edges, f"missing calls {wanted - edges}, there are {edges}")
    check(edges - wanted == {("Counts:Throw(int)", "Counts:Matches()")}, f"more calls: {edges - wanted}")


def methods_are_recorded(sojourn):
    program, hidden = compile_samples(sojourn)
    command = ["mono", program, hidden]
    alone = subprocess.run(command, capture_output=True, timeout=PATIENCE_S)
    check(alone.returncode == 3, f"alone it ended with {alone.returncode}")
    told = told_counts(alone.stdout.decode())
    check(len(told) > 15, f"it told {told}")
    database, done = recorded(sojourn, command, "own.db")
    check((done.returncode, done.stdout) == (3, alone.stdout), f"it did otherwise: {done}")
    check_counts(sojourn, database, told)
    check_endings(sojourn, database)
    check_tree(sojourn, database)
    # The runtime calls a finally block from its own functions, whose frames lie above calls that have ended. These
    # functions return after the block has replaced them.
    everything, done = recorded(sojourn, command, "all.db", ["--libs"])
    check((done.returncode, done.stdout) == (3, alone.stdout), f"--libs: it did otherwise: {done}")
    check_counts(sojourn, everything, told)
    check_counts(sojourn, everything, {"System.Threading.Thread:Abort()": 1})


def only_selected_methods_are_recorded(sojourn):
    program = sojourn.path("Counts.exe")
    database, done = recorded(sojourn, ["mono", program], "fib.db", ["--function", "Counts:Fib*"])
    told = told_counts(done.stdout.decode())
    names = {row["name"] for row in sojourn.sql(database, CALLS + " WHERE s.calls > 0")}
    check(names == {"Counts:Fib(int)"}, f"recorded {names}")
    check_counts(sojourn, database, {"Counts:Fib(int)": told["Counts:Fib(int)"]})


def names_under(sojourn, policy):
    path, database = sojourn.path("policy.json"), sojourn.path("policy.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, **policy}, file)
    recorded(sojourn, ["mono", sojourn.path("Counts.exe")], "policy.db", ["--policy", path])
    return {row["name"] for row in sojourn.sql(database, CALLS + " WHERE s.calls > 0")}


def a_policy_chooses_by_class_and_method(sojourn):
    names = names_under(sojourn, {"mono": {"subclasses_of": ["Shape"]}})
    check(names == {"Shape:.ctor()", "Square:.ctor()", "Square:Area(int)"}, f"Shapes: {names}")
    names = names_under(sojourn, {"mono": {"selectors": ["Fib", "Throw"]}})
    check(names == {"Counts:Fib(int)", "Counts:Throw(int)"}, f"selectors: {names}")
    names = names_under(sojourn, {"mono": {"classes": ["Box*"], "exclude": ["*/Inner"]}})
    check(len(names) == 3 and all(name.startswith("Box`1:") for name in names), f"Box: {names}")
    names = names_under(sojourn, {"modules": {"include": ["mscorlib.dll"]},
                                  "mono": {"classes": ["System.Threading.Thread"]}})
    check("System.Threading.Thread:Abort()" in names, f"a class of the framework: {names}")


ECMA_KEY = bytes.fromhex("00000000000000000400000000000000")


def classes_under(sojourn, library, options):
    """Records only methods of some classes of a library that is loaded by its path."""
    database = sojourn.path("spaces.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    done, _ = sojourn.record(["mono", sojourn.path("Waits.exe")], database, ["--allow-unmatched", *options],
                             input=(library + "\n").encode())
    check(done.stdout == b"ready\n105\n", f"{options}: it said {done}")
    check_accounts(sojourn, database)
    names = [row["name"] for row in sojourn.sql(database, CALLS + " WHERE s.calls > 0")]
    return {name.split(":")[0] for name in names if not name.startswith("Waits:")}


def system_assemblies_are_left_out(sojourn):
    """Selects assemblies by the key that they are signed with, and by prefixes, which can be changed."""
    source, key = os.path.join(SAMPLES, "Spaces.cs"), sojourn.path("ecma.pub")
    with open(key, "wb") as file:
        file.write(ECMA_KEY)
    signed, plain = sojourn.path("Signed.dll"), sojourn.path("Spaces.dll")
    for command in ([f"-out:{sojourn.path('Waits.exe')}", os.path.join(SAMPLES, "Waits.cs")],
                    ["-target:library", f"-out:{plain}", source],
                    ["-target:library", f"-keyfile:{key}", "-delaysign+", f"-out:{signed}", source]):
        subprocess.run(["mcs", *command], check=True, timeout=PATIENCE_S)
    own, system = {"Victim", "Acme.Game.Npc", "Acme.Game.Troll"}, {"System.Acme.Inner"}
    for library, options, wanted in (
            (plain, [], own), (plain, ["--libs", "--module", "Spaces.dll"], own | system),
            (plain, ["--mono-system", "Acme.*"], {"Victim"} | system),
            (plain, ["--mono-class", "Acme.*"], own - {"Victim"}),
            (plain, ["--mono-subclasses-of", "Acme.Game.Npc"], own - {"Victim"}),
            (plain, ["--mono-subclasses-of", "Acme.Game.Troll"], {"Acme.Game.Troll"}),
            (signed, [], set()), (signed, ["--module", "Signed.dll"], own | system)):
        found = classes_under(sojourn, library, options)
        check(found == wanted, f"{os.path.basename(library)} {options}: recorded {found}")


VALUES = ["Npc:Hit(1:int)", "Npc:Hit(2:string)", "Npc:Hit(result:int)", "Npc:Join(1:string)",
          "Npc:Join(2:string)", "Npc:Join(result:string)", "Npc:Scale(1:double)", "Npc:Scale(2:float)",
          "Npc:Scale(result:double)", "Npc:Wide(1:long)", "Npc:Wide(2:bool)", "Npc:Wide(3:int)",
          "Npc:Wide(4:int)", "Npc:Paint(1:object)", "Npc:Paint(2:object)", "Npc:Paint(3:object)",
          "Npc:Paint(result:object)", "Npc:Meet(1:object)", "Npc:Meet(2:object)", "Npc:Meet(3:object)",
          "Npc:Meet(result:object)", "Npc:Plain(1:object)", "Npc:Plain(2:object)",
          "Npc:Plain(3:object)", "Npc:Plain(result:object)", "Npc:Swap(1:int)", "Npc:Take(1:int)", "Npc:Fail(1:int)", "Npc:Fail(result:int)"]
# Returns the text in the brackets and the result, once for each exit.
FUNCTION_TXT = [
    ("Npc:.ctor()", "-"),
    ('Npc:Hit(30,"J\u00f6rg \\"\u20ac\\"")', "70"),
    ("Npc:Hit(-5,null)", "75"),
    ('Npc:Join("one","' + "x" * 64 + '...")', '"one' + "x" * 61 + '..."'),
    ("Npc:Scale(1.5,2.0)", "3.0"),
    ("Npc:Wide(1099511627776,1,-3,250)", "-"),
    ('Npc:Paint(Green,{X=2,Y=-2.25,C=Red,Name="a"},System.Int32[3]{0,0,0})', "Green"),
    ("Npc:Paint(7,{X=0,Y=0x7e37e43c8800759c,C=0,Name=null},System.Int32[0]{})", "Red"),
    ("Npc:Meet(Npc@ID,null,System.Double[6]{0.0,0.0,0.0,0.0,...})", "null"),
    ("Npc:Plain(-5,true,18446744073709551615)", "'y'"),
    ("Npc:Swap(41)", "-"),
    ("Npc:Take(0)", "-"), # the register's value at the entry
    ("Npc:Fail(7)", "!System.InvalidOperationException"),
]


def wanted_lines():
    lines = [("enter", "Values:Main()")]
    for name, result in FUNCTION_TXT:
        lines += [("enter", name), ("leave", f"{name}ret:{result}")]
    return lines + [("enter", "Values:Guard()"), ("enter", "Values:Deep()"),
                    ("leave", "Values:Deep()ret:!System.ArgumentException"), ("enter", "Npc:Fail(1)"),
                    ("leave", "Npc:Fail(1)ret:!System.InvalidOperationException"),
                    ("leave", "Values:Guard()ret:!System.ArgumentException"), ("leave", "Values:Main()ret:-")]


def values_are_in_function_txt(sojourn):
    program = sojourn.path("Values.exe")
    subprocess.run(["mcs", os.path.join(SAMPLES, "Values.cs"), f"-out:{program}"], check=True,
                   timeout=PATIENCE_S)
    options = [part for rule in VALUES for part in ("--value", rule)]
    database, done = recorded(sojourn, ["mono", program], "values.db", options)
    check(done.stdout == b"42\n", f"it said {done.stdout}")
    exported = sojourn.run(["export", database], capture_output=True, timeout=PATIENCE_S)
    lines = exported.stdout.decode().splitlines()
    said = [re.sub("@[0-9a-f]+", "@ID", line) for line in function_lines(exported.stdout.decode())]
    check([tuple(line.split(":", 1)) for line in said] == wanted_lines(),
          "function.txt has\n" + "\n".join(lines))
    check([line.split("[")[0] for line in lines] == [str(i + 1) for i in range(len(lines))],
          "its lines are not numbered")


def rules_about_missing_parameters_use_no_slot(sojourn):
    """There are more rules than slots of a method. Rules for parameters that the method does not have use no slot,
    so its result has one."""
    rules = [f"Npc:*({position}:int)" for position in range(1, 9)] + ["Npc:*(result:int)"]
    database, done = recorded(sojourn, ["mono", sojourn.path("Values.exe")], "crowded.db",
                              [part for rule in rules for part in ("--value", rule)])
    check(b"other rules use the space" not in done.stderr, f"values found no place: {done.stderr}")
    exported = sojourn.run(["export", database], capture_output=True, timeout=PATIENCE_S)
    said = [line for line in function_lines(exported.stdout.decode()) if line.startswith("leave:Npc:Hit(")]
    check(said and not any(line.endswith("ret:-") for line in said), f"results that were not recorded: {said}")


# These methods have their values in registers, or have none.
IN_PLACE = ("Npc:Hit", "Npc:Join", "Npc:Scale", "Npc:Wide", "Npc:Meet", "Npc:Plain", "Npc:Swap", "Npc:Take", "Npc:Fail",
            "Values:Guard", "Values:Deep")


def values_of_code_hooked_in_place(sojourn):
    """The lines are the same, and the database has the address of each method's code."""
    program, options = sojourn.path("Values.exe"), ["--mono-engine", "in_place"]
    for rule in VALUES:
        options += ["--value", rule] if rule.split("(")[0] in IN_PLACE else []
    database, done = recorded(sojourn, ["mono", program], "in_place.db", options)
    check(done.stdout == b"42\n", f"it said {done.stdout}")
    exported = sojourn.run(["export", database], capture_output=True, timeout=PATIENCE_S)
    said = [re.sub("@[0-9a-f]+", "@ID", line) for line in function_lines(exported.stdout.decode())]
    found = [line for line in said if line.split(":", 1)[1].startswith(IN_PLACE)]
    wanted = [":".join(line) for line in wanted_lines() if line[1].startswith(IN_PLACE)]
    check(found == wanted, "in place:\n" + "\n".join(found))
    rows = sojourn.sql(database, """SELECT f.name, count(*) AS places, min(c.size_bytes) AS size FROM method_code c
        JOIN functions f USING (function_id) WHERE c.address > 0 AND c.process_number = 1 GROUP BY 1""")
    named = {row["name"].split("(")[0] for row in rows if row["places"] == 1 and row["size"] > 10}
    check(named >= {*IN_PLACE, "Values:Main"}, f"code of {rows}")


def a_compiler_that_was_compiled_ahead_of_time(sojourn):
    source, output = os.path.join(SAMPLES, "Counts.cs"), sojourn.path("made.exe")
    command = ["mcs", "-r:System.Core", source, f"-out:{output}"]
    database, done = recorded(sojourn, command, "mcs.db",
                              ["--allow-unmatched", "--function", "Mono.CSharp.*"])
    check(done.returncode == 0, f"mcs said {done}")
    check(subprocess.run(["mono", output], capture_output=True, timeout=PATIENCE_S).returncode == 3,
          "what it compiled does not run")
    rows = sojourn.sql(database, CALLS + " WHERE f.name = 'Mono.CSharp.Driver:Compile()'")
    check(rows and rows[0]["calls"] == 1, f"Compile: {rows}")
    check(len(sojourn.sql(database, CALLS + " WHERE s.calls > 0")) > 500, "few methods of mcs")


def test(sojourn, _arguments):
    methods_are_recorded(sojourn)
    only_selected_methods_are_recorded(sojourn)
    a_policy_chooses_by_class_and_method(sojourn)
    system_assemblies_are_left_out(sojourn)
    values_are_in_function_txt(sojourn)
    rules_about_missing_parameters_use_no_slot(sojourn)
    values_of_code_hooked_in_place(sojourn)
    a_compiler_that_was_compiled_ahead_of_time(sojourn)


if __name__ == "__main__":
    main(test)
