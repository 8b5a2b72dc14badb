"""Map files: a map of another build is refused with a message that names the line, for each linker's format. Static
functions get the names of their sections. Code that no map, symbol or unwind table names is reported."""
import itertools
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import SAMPLES, build_sample, check, json_rows, main


def built(sojourn, name, command, *options):
    """Builds a stripped program. Returns it and its maps."""
    program, linker_map = sojourn.path(name), sojourn.path(f"{name}.map")
    build_sample(sojourn, "record/mapped.c", *command[1:], *options, f"-Wl,-Map,{linker_map}", program=program, compiler=command[0])
    listing = sojourn.path(f"{name}.nm")
    with open(listing, "wb") as file:
        subprocess.run(["nm", "-S", program], check=True, stdout=file)
    strip = command[0].replace("gcc", "strip") if command[0] != "clang" else "strip"
    subprocess.run([strip, program], check=True)
    return program, [linker_map, listing]


def globals_are_listed(sojourn):
    """Every kind of map gives the globals with their lengths, and none of them is a function. Maps of other builds
    are refused."""
    for name, command in {"gnu": ["gcc", "-O2"], "gold": ["gcc", "-O2", "-fuse-ld=gold"],
                          "mold": ["gcc", "-O2", "-fuse-ld=mold"],
                          "lld": ["clang", "-O2", "-fuse-ld=lld"]}.items():
        program, maps = built(sojourn, f"globals-{name}", command, "-DTABLE")
        for path in maps:
            done = sojourn.run(["functions", "--globals", "--json", "--map", path, program],
                               capture_output=True, text=True)
            check(done.returncode == 0, f"{path}: {done.stderr}")
            found = {row["name"]: row["size"] for row in json_rows(done.stdout)}
            check(found.get("sink", 0) >= 4 and found.get("table", 0) >= 100 and "alpha" not in found,
                  f"{path}: {found}")
        _, others = built(sojourn, f"globals-other-{name}", command, "-DADDED")
        done = sojourn.run(["functions", "--globals", "--map", others[0], program],
                           capture_output=True, text=True)
        check(done.returncode == 1 and "another build" in done.stderr, f"{name}: {done}")


def globals_are_stored_by_module(sojourn):
    """The globals are stored by module, as `functions --globals` lists them and nm locates them. They may take more
    than one report."""
    many = 9000
    with open(sojourn.path("variables.c"), "w", encoding="utf-8") as file:
        file.writelines(f"int variable_{'x' * 20}_{i} = {i};\n" for i in range(many))
    program, (own, listing) = built(sojourn, "kept", ["gcc", "-O2", "-no-pie"], "-DTABLE", f'-DMORE="{file.name}"')
    database = sojourn.path("kept.db")
    for path in (own, listing):
        done, _ = sojourn.record([program], database, ["--map", path])
        check(done.returncode == 0, f"{path}: {done}")
    listed = json_rows(sojourn.run(["functions", "--globals", "--json", "--map", own, program],
                                    check=True, capture_output=True).stdout)
    with open(listing, encoding="utf-8") as file:
        places = {words[3]: int(words[0], 16) for words in map(str.split, file) if len(words) == 4}
    for session in (1, 2):
        rows = sojourn.sql(database, "SELECT g.name, g.offset, g.size_bytes, m.path FROM globals g JOIN modules m "
                                     f"USING (module_id) WHERE g.session_id = {session}")
        kept = {row["name"]: row for row in rows}
        check(sum(name.startswith("variable_") for name in kept) == many, f"{len(rows)} rows")
        check(kept["table"]["size_bytes"] >= 100 and kept["table"]["path"] == program, f"{kept['table']}")
        check(all(kept[name]["offset"] == places[name] for name in ("table", "sink", f"variable_{'x' * 20}_7")),
              f"{kept['sink']}")
        check("alpha" not in kept, "a function is listed")
        if session == 1:
            check({(row["name"], row["offset"], row["size_bytes"]) for row in rows} ==
                  {(row["name"], row["offset"], row["size"]) for row in listed}, "not as listed")
    reports = sojourn.sql(database, "SELECT count(*) AS n, max(length(payload)) AS most, "
                                    "sum(payload ->> 'left_out') AS left_out FROM reports WHERE monitor = 'map'")
    check(reports[0]["n"] >= 4 and reports[0]["most"] <= 256 * 1024 and reports[0]["left_out"] == 0, f"{reports}")


def maps_of_other_builds_are_refused(sojourn):
    compilers = {"gnu": ["gcc", "-O2"], "lld": ["clang", "-O2", "-fuse-ld=lld"],
                 "gold": ["gcc", "-O2", "-fuse-ld=gold"], "mold": ["gcc", "-O2", "-fuse-ld=mold"],
                 "static": ["gcc", "-O1", "-static"], "aarch64": ["aarch64-linux-gnu-gcc", "-O2"]}
    for name, command in compilers.items():
        builds = [built(sojourn, f"{name}{number}", command, *options)
                  for number, options in enumerate(([], ["-DADDED"]))]
        for (program, own), (_, other) in itertools.permutations(builds):
            for path in own:
                done = sojourn.run(["functions", "--map", path, program], capture_output=True, text=True)
                check(done.returncode == 0 and "alpha" in done.stdout, f"{path}: {done.stderr}")
            for path in other:
                done = sojourn.run(["functions", "--map", path, program], capture_output=True, text=True)
                check(done.returncode == 1, f"{path} is believed of {program}: {done.stdout}")
                check(re.search(r"is of another build: line \d+ has ", done.stderr), done.stderr)


def static_functions_have_names(sojourn):
    """Maps of GNU ld and gold list no static functions, but their sections, if each function has one. A section of
    cold parts names no function."""
    long_name = "a_function_with_a_name_that_does_not_fit_into_its_column"
    for linker in ("bfd", "gold", "mold"):
        program, (own, listing) = built(sojourn, f"static-{linker}", ["gcc", "-O2", f"-fuse-ld={linker}"],
                                        "-ffunction-sections", "-DLINKAGE=static", f"-Dalpha={long_name}")
        rows = {}
        for path in (own, listing):
            shown = sojourn.run(["functions", "--json", "--map", path, program], check=True, capture_output=True)
            rows[path] = {row["name"]: (row["offset"], row["size"]) for row in json_rows(shown.stdout)[0]["functions"]
                          if row["name"] in ("beta", "main", long_name)}
        check(len(rows[listing]) == 3 and rows[own] == rows[listing], f"{linker}: {rows}")


def recording_is_refused_before_the_start(sojourn):
    program, (own, _) = built(sojourn, "one", ["gcc", "-O2"])
    _, (other, _) = built(sojourn, "two", ["gcc", "-O2"], "-DADDED")
    database = sojourn.path("one.db")
    done, _ = sojourn.record([program], database, ["--map", other])
    check(done.returncode == 125 and b"of another build" in done.stderr, f"it ran: {done}")
    check(not os.path.exists(database), "a database was made")
    done, _ = sojourn.record([program], database, ["--map", own])
    check(done.returncode == 0, f"its own map is refused: {done}")
    rows = sojourn.sql(database, "SELECT f.name, s.calls FROM function_stats s JOIN functions f "
                                 "USING (function_id) WHERE f.name = 'beta'")
    check(rows == [{"name": "beta", "calls": 1000}], f"named {rows}")
    done = sojourn.run(["attach", "--map", other, str(os.getpid())], capture_output=True, text=True)
    check(done.returncode == 1 and "of another build" in done.stderr, f"attach: {done}")


def unknown_code_is_reported(sojourn):
    dark = os.path.join(SAMPLES, "record", "dark.S")
    program = build_sample(sojourn, "record/mapped.c", "-O2", "-s", dark, program=sojourn.path("dark"))
    summary = sojourn.path("dark.json")
    done = sojourn.run(["record", "-o", sojourn.path("dark.db"), "--summary", summary, "--", program],
                       capture_output=True, text=True)
    check(re.search(r"code +9\d % of the code of .*dark is in no known function; .*--map",
                    done.stderr), f"said {done.stderr}")
    done, told = sojourn.record([program], sojourn.path("dark2.db"))
    check(told["unknown_text_bytes"] >= 3 * 4096, f"{told}")
    listed = sojourn.run(["functions", program], capture_output=True, text=True).stdout
    check("in no known function: its debug package, or --map" in listed, listed)
    plain, _maps = built(sojourn, "plain", ["gcc", "-O2"])
    done = sojourn.run(["record", "-o", sojourn.path("plain.db"), "--", plain], capture_output=True,
                       text=True)
    check("no known function" not in done.stderr, f"a small program: {done.stderr}")


def each_part_of_the_cost_is_reported(sojourn):
    """Each part of the cost is there. Hooking costs CPU time of the program, so it is never more than the whole."""
    program, _maps = built(sojourn, "cost", ["gcc", "-O2"])
    summary = sojourn.path("cost.json")
    done = sojourn.run(["record", "-o", sojourn.path("cost.db"), "--summary", summary, "--", program],
                       capture_output=True, text=True)
    check(re.search(r"cost +tracing took [\d.]+ [num]?s of CPU.*: [\d.]+ [num]?s in probes, [\d.]+ [num]?s hooking, [\d.]+ [num]?s starting.*; "
                    r"waits: [\d.]+ [num]?s for plans, [\d.]+ [num]?s for buffer space; recorder: [\d.]+ [num]?s of CPU", done.stderr), done.stderr)
    _, told = sojourn.record([program], sojourn.path("cost2.db"))
    check(0 < told["hook_ns"] <= told["traced_cpu_ns"], f"hooking: {told}")
    check(0 < told["start_ns"], f"starting: {told}")
    check(told["plan_ns"] > 0 and told["drain_cpu_ns"] > 0 and told["estimated_probe_ns"] > 0, f"{told}")


def test(sojourn, _arguments):
    each_part_of_the_cost_is_reported(sojourn)
    maps_of_other_builds_are_refused(sojourn)
    static_functions_have_names(sojourn)
    globals_are_listed(sojourn)
    globals_are_stored_by_module(sojourn)
    recording_is_refused_before_the_start(sojourn)
    unknown_code_is_reported(sojourn)


if __name__ == "__main__":
    main(test)
