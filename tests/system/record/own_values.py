#!/usr/bin/env python3
"""Java and Mono: a rule that only names methods records all their arguments and results by their own types. The values
equal those that the programs print. Other rules of the same methods keep their kinds.

own_values.py BUILD_FOLDER
"""
import json
import os
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from java_programs import sample_classes
from sojourn_testing import PATIENCE_S, check, check_accounts, function_lines, main

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "samples", "mono")
VALUES = """SELECT call_id, position, kind, value FROM arguments JOIN calls USING (session_id, call_id)
            JOIN functions USING (function_id) WHERE name LIKE '%' || ? || '%' ORDER BY call_id, position"""
HELPERS = re.compile(r"^Own[^(]*[.:](print|random|main|objects|mixed|\$values|values|\.?c?ctor|<.*)\(", re.IGNORECASE)


def record(sojourn, command, name, options):
    database = sojourn.path(name)
    done, summary = sojourn.record(command, database, ["--block-ms", "10000", *options], text=True)
    check(done.returncode == 0, f"{name}: {done}")
    check_accounts(sojourn, database)
    check(summary["orphan_exits"] == 0 and summary["torn"] == 0, f"{name}: {summary}")
    return done, database


def exported_calls(sojourn, database):
    """Returns the calls of function.txt with their values, without those of the sample's helpers."""
    text = sojourn.run(["export", database], capture_output=True, text=True, timeout=PATIENCE_S).stdout
    lines = [line.split("leave:", 1)[1] for line in function_lines(text) if "leave:Own" in line]
    return [line for line in lines if not HELPERS.match(line) and not line.startswith("Own$Color")]


def real_of(bits):
    return struct.unpack("<d", struct.pack("<q", int(bits)))[0]


def values_of(sojourn, database, method):
    """Returns the values of each call of a method, the result first."""
    query = VALUES.replace("?", f"'{method}'")
    calls = {}
    for row in sojourn.sql(database, query):
        value = int(row["value"]) if row["kind"] == "long" else row["value"]  # JSON has large numbers as texts
        calls.setdefault(row["call_id"], []).append((row["kind"], value))
    return list(calls.values())


def check_random(sojourn, database, method, output, real):
    """Compares the values of the calls with random numbers. `real` reads a number as the program prints it."""
    printed = [line.split("\t")[1:] for line in output.splitlines() if line.startswith("mixed\t")]
    wanted = [[("double", real(result)), ("int", int(number)), ("long", int(big)), ("double", real(twice)),
               ("string", text)] for number, big, twice, text, result in printed]
    found = values_of(sojourn, database, method)
    check(len(wanted) == 500 and found == wanted,
          f"random numbers: {[pair for pair in zip(found, wanted) if pair[0] != pair[1]][:3]} of {len(found)}")


def check_printed(sojourn, database, output, name):
    wanted = [line for line in output.splitlines() if line.startswith("Own")]
    found = exported_calls(sojourn, database)
    check(sorted(found) == sorted(wanted), f"{name}: only printed {sorted(set(wanted) - set(found))}, only recorded "
                                           f"{sorted(set(found) - set(wanted))}")


def java_methods(sojourn, classes):
    for mode in (["-Xint"], ["-Xcomp", "-XX:TieredStopAtLevel=1"]):
        done, database = record(sojourn, ["java", *mode, "-Xverify:all", "-cp", classes, "Own"], f"java{mode[0]}.db",
                                ["--value", "Own.*"])
        check_printed(sojourn, database, done.stdout, f"Java {mode}")
        check_random(sojourn, database, "Own.mixed(", done.stdout, float)


def mono_methods(sojourn):
    program = sojourn.path("Own.exe")
    subprocess.run(["mcs", f"-out:{program}", os.path.join(SAMPLES, "Own.cs")], check=True, timeout=PATIENCE_S)
    done, database = record(sojourn, ["mono", program], "mono.db", ["--value", "Own*:*"])
    check_printed(sojourn, database, done.stdout, "Mono")
    check_random(sojourn, database, "Own:Mixed(", done.stdout, real_of)
    done, database = record(sojourn, ["mono", program], "in_place.db",
                            ["--mono-engine", "in_place", "--value", "Own:Mixed"])
    check_random(sojourn, database, "Own:Mixed(", done.stdout, real_of)


def other_rules_keep_their_kinds(sojourn, classes):
    """A rule by number keeps its kind, and a condition its name. Redacted methods have no values."""
    path = sojourn.path("both.json")
    rules = [{"function": "Own.whole"}, {"function": "Own.*", "argument": 3, "as": "hex"},
             {"name": "small", "function": "Own.whole*", "argument": 1, "as": "int", "when": {"op": "<", "value": 0}},
             {"function": "Own.text"}]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": rules, "redact": {"values": ["Own.text"]}}, file)
    _, database = record(sojourn, ["java", "-cp", classes, "Own"], "both.db", ["--policy", path])
    rows = sojourn.sql(database, "SELECT position, kind, value, rule FROM arguments JOIN calls USING (session_id, call_id) "
                                 "JOIN functions USING (function_id) WHERE name LIKE 'Own.whole(%' ORDER BY 1, 4")
    found = [(row["position"], row["kind"], row["rule"]) for row in rows]
    check(found == [(0, "long", ""), (1, "int", ""), (1, "int", "small"), (2, "int", ""), (3, "hex", ""),
                    (4, "long", "")], f"both: {rows}")
    check(values_of(sojourn, database, "Own.text(") == [], "a redacted method has values")


def test(sojourn, _):
    classes = sample_classes(sojourn)
    java_methods(sojourn, classes)
    mono_methods(sojourn)
    other_rules_keep_their_kinds(sojourn, classes)


main(test)
