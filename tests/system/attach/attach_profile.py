"""One command attaches to a running, stripped program, counts the calls of each function that a map file names,
prints the counts and detaches. The program is lua from source, linked by GNU ld and lld; the map files are the
linkers' and nm's. The counts equal callgrind's for the same work."""
import collections
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, check_same, code_bytes, look, wait_until_recorded
from callgrind import count_by_name
from sojourn_testing import PATIENCE_S, check, check_accounts, main, sample_text

SCRIPT = sample_text("attach/lines.lua")
FLAGS = ["-std=gnu99", "-O1", "-DLUA_USE_LINUX", "-Dluai_makeseed(L)=42u", "-DSTRCACHE_N=1",
         "-DSTRCACHE_M=1"]


def build(sojourn, source):
    """Links lua in two ways. Returns (name, stripped program, map file) of each, and the program with symbols."""
    files = [name for name in sorted(os.listdir(source)) if name.endswith(".c") and name != "luac.c"]
    objects = sojourn.path("objects")
    os.mkdir(objects)
    subprocess.run(["gcc", *FLAGS, "-c", *(os.path.join(source, name) for name in files)],
                   cwd=objects, check=True, timeout=600)
    parts = [os.path.join(objects, name[:-2] + ".o") for name in files]
    variants = []
    for linker, option in (("ld", []), ("lld", ["-fuse-ld=lld"])):
        program, linker_map = sojourn.path(f"lua-{linker}"), sojourn.path(f"{linker}.map")
        subprocess.run(["gcc", *option, f"-Wl,-Map={linker_map}", "-o", program, *parts,
                        "-lm", "-ldl"], check=True, timeout=600)
        variants.append((linker, program + "-stripped", linker_map))
        subprocess.run(["strip", "-o", program + "-stripped", program], check=True, timeout=PATIENCE_S)
    symbols = sojourn.path("nm.map")
    with open(symbols, "w", encoding="utf-8") as file:
        subprocess.run(["nm", "-S", sojourn.path("lua-ld")], stdout=file, check=True, timeout=PATIENCE_S)
    return variants + [("nm", variants[0][1], symbols)], sojourn.path("lua-ld")


def expect(sojourn, program, script):
    """Returns the calls that one more line of input causes in lua, as callgrind counts them."""
    counts = []
    for lines in (1, 2):
        given, output = sojourn.path("lines"), sojourn.path(f"callgrind.{lines}")
        with open(given, "w", encoding="utf-8") as file:
            file.write("line\n" * lines)
        counts.append(count_by_name([program, script], given, output))
    counts[1].subtract(counts[0])
    return {name: calls for name, calls in counts[1].items() if calls > 0}


def read_report(output):
    """Returns the calls of each function of the printed report. Its columns: share, bar, calls, times, module,
    function."""
    found = collections.Counter()
    for line in output.splitlines():
        row = re.match(r"\s*[\d.]+ %\s+(?:[^\s\w.,]+\s+)?([\d,]+)\s.*\s(\S+)$", line)
        if row:
            found[row[2]] += int(row[1].replace(",", ""))
    check(found, f"no report in {output}")
    return found


def window(sojourn, name, target, linker_map, answer):
    """Returns the report of a window in which lua replies once or never. Without a reply, its calls are open all
    the time."""
    database = sojourn.path(f"{name}-{answer is None}.db")
    recorder = subprocess.Popen(
        [sojourn.program, "attach", str(target.pid), "--profile", "--map", linker_map, "-o",
         database], env=sojourn.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True)
    wait_until_recorded(sojourn, target.pid, recorder)
    if answer is not None:
        target.process.stdin.write("line\n")
        target.process.stdin.flush()
        check(target.process.stdout.readline() == answer, f"{name}: another answer while profiled")
    sojourn.run(["detach", str(target.pid)], check=True, stdout=subprocess.DEVNULL)
    output, told = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0, f"{name}: {told}")
    return read_report(output), told, database


def one_map(sojourn, name, program, linker_map, script, expected):
    """The recording ends when lua has replied."""
    target = Target([program, script]).ready()
    target.process.stdin.write("line\n")
    target.process.stdin.flush()
    answer = target.process.stdout.readline()
    before, code = look(target.pid), code_bytes(target.pid)
    standing = window(sojourn, name, target, linker_map, None)[0]
    reported, told, database = window(sojourn, name, target, linker_map, answer)
    reported.subtract(standing)
    check_same(before, look(target.pid), code, code_bytes(target.pid), f"after {name}")
    check(target.finish() == (0, ""), f"{name}: lua ended otherwise")
    check_accounts(sojourn, database)
    # GNU ld's map does not name static functions, so the report has them without names.
    reported = +reported
    found = {function: calls for function, calls in reported.items() if "+0x" not in function}
    check(len(found) == len(reported) or name == "ld", f"{name}: nameless functions {reported}")
    differing = [f"{function}: callgrind {expected.get(function, 0)}, the report {calls}"
                 for function, calls in found.items() if calls != expected.get(function, 0)]
    check(not differing, f"{name}: {len(differing)} of {len(found)} differ\n"
                         + "\n".join(differing[:20]))
    row = sojourn.sql(database, "SELECT mode, stored_blocks, traced_cpu_ns > 0 AS has_cpu FROM sessions")[0]
    check(row == {"mode": "profile", "stored_blocks": 0, "has_cpu": 1}, f"{name}: not a profile: {row}")
    check(re.search(r"in [\d.]+ m?s \([\d.]+ [mu]?s CPU\)", told), f"{name}: no CPU time in {told}")
    print(f"{name}: {len(found)} functions, {sum(found.values())} calls, equal to callgrind's")
    return set(found)


def test(sojourn, arguments):
    script = sojourn.path("work.lua")
    with open(script, "w", encoding="utf-8") as file:
        file.write(SCRIPT)
    variants, unstripped = build(sojourn, os.path.join(arguments[0], "lua-source", "src"))
    expected = expect(sojourn, unstripped, script)
    names = {name: one_map(sojourn, name, program, linker_map, script, expected)
             for name, program, linker_map in variants}
    check("luaH_getstr" in names["ld"] or "luaH_get" in names["ld"], f"no tables: {names['ld']}")
    check(names["ld"] < names["lld"] and names["lld"] == names["nm"],
          "lld's map and nm name static functions, too, and the same")
    check(len(names["nm"]) > 150, f"only {len(names['nm'])} functions were called")


if __name__ == "__main__":
    main(test)
