"""Validates JSON against schema/commands.schema.json with a validator that is not part of Sojourn."""
from jsonschema import Draft202012Validator


def problem(value, schema, place):
    """Returns what is wrong with a value, or None if it is valid."""
    errors = list(Draft202012Validator(schema).iter_errors(value))
    return f"{place}: {errors[0].json_path}: {errors[0].message[:400]}" if errors else None
