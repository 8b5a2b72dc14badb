"""Whether a value has the shape that schema/commands.schema.json says."""
import re

from sojourn_testing import check

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
