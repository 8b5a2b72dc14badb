"""Whether a value has the shape that schema/commands.schema.json says, in the eyes of a validator by others."""
from jsonschema import Draft202012Validator


def problem(value, schema, place):
    """What is wrong with a value; None: nothing."""
    errors = list(Draft202012Validator(schema).iter_errors(value))
    return f"{place}: {errors[0].json_path}: {errors[0].message[:400]}" if errors else None
