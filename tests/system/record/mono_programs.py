"""Records every method of Debian's Mono programs and of the framework: the compiler on a large source, the
disassembler, the interactive shell and xbuild. The programs behave as without Sojourn."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, main

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "mono")
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mcs_version_function.txt")
CALLS = """SELECT f.name, sum(s.calls) AS calls FROM function_stats s JOIN functions f USING (function_id)
           WHERE s.calls > 0 AND f.name LIKE '%:%' GROUP BY 1"""
MANAGED = ["--module", "*.exe", "--module", "*.dll", "--profile"]
PROJECT = """<Project DefaultTargets="Build" xmlns="http://schemas.microsoft.com/developer/msbuild/2003">
<ItemGroup><Part Include="one;two;three"/></ItemGroup>
<Target Name="Build"><WriteLinesToFile File="$(Out)" Lines="@(Part->'%(Identity).made')" Overwrite="true"/>
<Exec Command="cat $(Out)"/><Message Text="made @(Part)"/></Target></Project>
"""


def large_source(path, classes):
    with open(path, "w", encoding="utf-8") as file:
        for number in range(classes):
            file.write(f"public class C{number}<T> {{ int n = {number}; public System.Func<int, int> M(int a) {{\n"
                       "for (int i = 0; i < a; i++) { n += i % 7 == 3 ? i : -1; } return x => x + n; } }\n")
        calls = " + ".join(f"new C{number}<string>().M({number})(2)" for number in range(classes))
        file.write(f"static class Program {{ static void Main() {{ System.Console.WriteLine({calls}); }} }}\n")


def both(sojourn, name, command, options=("--libs",), normalise=lambda text: text):
    """Runs the command alone and recorded. Returns the calls by method."""
    database = sojourn.path(name + ".db")
    alone = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
                           stdin=subprocess.DEVNULL)
    done, _ = sojourn.record(command, database, options, text=True, stdin=subprocess.DEVNULL)
    check((done.returncode, normalise(done.stdout)) == (alone.returncode, normalise(alone.stdout)),
          f"{name} did otherwise: {done.stdout}{done.stderr}\nand alone: {alone.stdout}{alone.stderr}")
    check_accounts(sojourn, database)
    return {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS)}


def the_compiler(sojourn):
    source, program = sojourn.path("Large.cs"), sojourn.path("Large.exe")
    large_source(source, 120 if os.environ.get("SJ_LONG") else 4)
    found = both(sojourn, "mcs", ["mcs", source, f"-out:{program}"], MANAGED)
    check(found.get("Mono.CSharp.Driver:Compile()") == 1 and len(found) > 3000, f"mcs: {len(found)} methods")
    check(any(name.startswith("System.Collections.Generic.") for name in found), "none of the framework")
    made = subprocess.run(["mono", program], capture_output=True, check=True, timeout=PATIENCE_S)
    subprocess.run(["mcs", source, f"-out:{program}"], check=True, timeout=PATIENCE_S)
    again = subprocess.run(["mono", program], capture_output=True, check=True, timeout=PATIENCE_S)
    check(made.stdout == again.stdout, f"what it made says {made.stdout}, not {again.stdout}")


def the_compilers_version_line_by_line(sojourn):
    """Compares function.txt of `mcs --version` with a stored copy. Times are replaced."""
    database, option = sojourn.path("golden.db"), "Mono.CSharp.CommandLineParser:ParseOptionUnix"
    options = ["--function", "Mono.CSharp.*", "--allow-unmatched", "--value", f"{option}(1:string)", "--value",
               f"{option}(result:object)"]
    done, _ = sojourn.record(["mono", "/usr/lib/mono/4.5/mcs.exe", "--version"], database, options, text=True)
    check(done.stdout == "Mono C# compiler version 6.8.0.105\n", f"the golden file is of Mono 6.8.0.105: {done.stdout}")
    text = sojourn.run(["export", database], capture_output=True, text=True).stdout
    times = [(int(s), int(n)) for s, n in re.findall(r"^\d+\[(\d+),(\d{1,9})\]", text, re.M)]
    found = re.sub(r"^(\d+)\[\d+,\d+\]", r"\1[SECONDS,NANOSECONDS]", text, flags=re.M)
    found = re.sub(r" tid:\d+$", "", found, flags=re.M).splitlines()
    with open(GOLDEN, encoding="utf-8") as file:
        golden = file.read().splitlines()
    differ = next((pair for pair in zip(golden, found) if pair[0] != pair[1]), None)
    check(differ is None and len(found) == len(golden), f"{len(found)} lines of {len(golden)}; first other: {differ}")
    check(len(times) == len(golden) and times == sorted(times), "its times do not rise")


def the_disassembler_has_no_managed_methods(sojourn):
    """The disassembler is a native program. It contains the runtime's reader of assemblies and has no managed
    methods."""
    program = sojourn.path("Counts.exe")
    subprocess.run(["mcs", "-r:System.Core", os.path.join(SAMPLES, "Counts.cs"), f"-out:{program}"], check=True,
                   timeout=PATIENCE_S)
    both(sojourn, "monodis", ["monodis", program], ())


def the_shell(sojourn):
    """The shell compiles its input into assemblies that are in no file."""
    text = "var all = new System.Collections.Generic.List<int> { 3, 1, 2 }; all.Sort(); string.Join(\"+\", all);"
    found = both(sojourn, "csharp", ["csharp", "-e", text], MANAGED)
    check(found.get("Mono.CSharpShell:Evaluate(string)", 0) > 0 or
          any(name.startswith("Mono.CSharp.Evaluator:") for name in found), "its evaluator was not recorded")


def the_builder(sojourn):
    project, out = sojourn.path("App.proj"), sojourn.path("made.txt")
    with open(project, "w", encoding="utf-8") as file:
        file.write(PROJECT)
    found = both(sojourn, "xbuild", ["xbuild", f"/p:Out={out}", project], MANAGED,
                 lambda text: re.sub(r"\d[\d/:. ]*(AM|PM)?|Time Elapsed.*", "", text))
    with open(out, encoding="utf-8") as file:
        check(file.read().split() == ["one.made", "two.made", "three.made"], "xbuild wrote something else")
    check(found.get("Microsoft.Build.Tasks.WriteLinesToFile:Execute()") == 1, "its task was not recorded")


def test(sojourn, _arguments):
    the_compiler(sojourn)
    the_compilers_version_line_by_line(sojourn)
    the_disassembler_has_no_managed_methods(sojourn)
    the_shell(sojourn)
    the_builder(sojourn)


if __name__ == "__main__":
    main(test)
