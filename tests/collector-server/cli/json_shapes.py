#!/usr/bin/env python3
"""What each command writes with --json has the shape that schema/commands.schema.json says, and every
command with --json is in it.

json_shapes.py BUILD_FOLDER SCHEMA_FILE
"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system",
                                "support"))
from sojourn_testing import check, main

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
         "number": (int, float), "null": type(None)}


def is_of_type(value, name):
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, TYPES[name])


def problem(value, schema, place):
    """What is wrong with a value; None: nothing. As much of JSON Schema as the file uses."""
    known = {"type", "properties", "required", "additionalProperties", "items", "pattern", "const",
             "anyOf", "title", "version"}
    check(set(schema) <= known, f"{place}: this test does not know {set(schema) - known}")
    if "anyOf" in schema:
        found = [problem(value, one, place) for one in schema["anyOf"]]
        return None if None in found else "; or ".join(found)
    if "const" in schema:
        return None if value == schema["const"] else f"{place}: {value!r} is not {schema['const']!r}"
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(is_of_type(value, name) for name in names):
        return f"{place}: {value!r} is no {' or '.join(names)}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return f"{place}: {value!r} is unlike {schema['pattern']}"
    parts = []
    if isinstance(value, dict) and "properties" in schema:
        missing = set(schema["required"]) - set(value)
        more = set(value) - set(schema["properties"])
        if missing or (more and not schema["additionalProperties"]):
            return f"{place}: without {missing}, with {more}"
        parts = [(value[name], schema["properties"][name], f"{place}.{name}") for name in value]
    elif isinstance(value, list) and "items" in schema:
        parts = [(item, schema["items"], f"{place}[{number}]") for number, item in enumerate(value)]
    return next((found for found in (problem(*part) for part in parts) if found), None)


def commands_with_json(sojourn):
    listed = sojourn.run(["help"], capture_output=True, text=True).stdout
    for name in re.findall(r"^  ([a-z]+)  ", listed, re.MULTILINE):
        shown = sojourn.run([name, "--help"], capture_output=True, text=True).stdout
        if re.search(r"^ +(-., )?--json\b", shown, re.MULTILINE):
            yield name


def test(sojourn, arguments):
    with open(arguments[0], encoding="utf-8") as file:
        shapes = json.load(file)["$defs"]
    check(all(isinstance(shape["version"], int) for shape in shapes.values()), "no version")
    found = set(commands_with_json(sojourn))
    check(found == set(shapes), f"not in both: {found ^ set(shapes)}")
    samples = os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests", "samples")
    database = sojourn.path("run.db")
    for command in ([os.path.join(samples, "ends")], [os.path.join(samples, "gcc-O2", "s_threads")]):
        _, summary = sojourn.record(command, database)
        check(summary is not None, "nothing was recorded")
    mistakes = sojourn.path("mistakes.db")
    sojourn.run(["record", "-q", "--zombies", "heap", "-o", mistakes, "--",
                 os.path.join(samples, "zombies", "gcc-O0", "heap"), "1", "2"], capture_output=True)
    for name, words in {"report": [database], "tree": ["--all", database], "replay": [database],
                        "sessions": [database], "devices": [database],
                        "diff": ["--all", "1", "2", database], "zombies": ["-d", mistakes],
                        "functions": [os.path.join(samples, "ends")], "doctor": [],
                        "sql": ["SELECT * FROM calls LIMIT 20", database]}.items():
        done = sojourn.run([name, "--json", *words], capture_output=True, text=True)
        check(done.returncode in (0, 1) and done.stdout, f"{name}: {done}")
        written = json.loads(done.stdout)
        check(written, f"{name} has nothing to look at")
        wrong = problem(written, shapes[name], name)
        check(wrong is None, wrong)


if __name__ == "__main__":
    main(test)
