#!/usr/bin/env python3
"""Generates the questions of the dashboard from schema/queries/web/*.sql, for the server and for TypeScript.

    embed_questions.py TABLE.inc QUESTIONS.ts FILE.sql...

The files are written as embed_statements.py says, with these differences:

  - A parameter of several questions gets its type in the `bind` line of a part, unless it is a whole number.
  - More types: optional_text, optional_real, optional_id (may be NULL), id (an integer that may exceed
    2^53, which the API then gives as a string), any.
  - `-- open_row:` names some of the columns; the statement may have more.
  - `-- engine: cluster` marks a statement of a cluster.
  - Statements keep their lines, because the SQL console shows them.

TABLE.inc is the server's table, sorted by name. QUESTIONS.ts has the types of all parameters and rows."""
import re
import sys

import embed_statements
from embed_statements import Fault, write

# type: its type in TypeScript
TYPES = {
    "int": "number", "real": "number", "text": "string", "id": "number | string", "any": "unknown",
    "optional": "number | null", "optional_real": "number | null", "optional_text": "string | null",
    "optional_id": "number | string | null",
}
PARAMETERS = {"int": "number | string", "real": "number | string", "text": "string"}
LIMIT = re.compile(r" LIMIT ([0-9]+)\s*$")
OPTIONAL = "optional"
MOST_PARAMETERS = 12  # SJ_WEB_PARAMETERS of web_questions.h


class Question(embed_statements.Statement):
    """A statement, or a part of statements, as its file has it."""

    types_known = TYPES

    def __init__(self, kind, head):
        super().__init__(kind, head)
        self.is_open = False
        self.engine = ""

    def read_types(self, kind, text):
        if kind == "engine":
            self.engine = text
            return
        self.is_open |= kind == "open_row"
        super().read_types("row" if kind == "open_row" else kind, text)


def plain_kind(word):
    """Returns the type of a parameter without `optional`: int, real or text."""
    kind = word.removeprefix(OPTIONAL).removeprefix("_") or "int"
    if kind not in PARAMETERS:
        raise Fault(f"a parameter cannot be {word}")
    return kind


def parameters(question, shared):
    """Returns the (name, type) of each parameter."""
    found = embed_statements.parameters(question)
    return [(name, word if name in question.types else shared.get(name, word)) for name, word in found]


def c_lines(text):
    """Returns the text as lines of C string literals."""
    lines = text.replace("\\", "\\\\").replace('"', '\\"').split("\n")
    return "\n".join(f'     "{line}\\n"' for line in lines)


def c_entry(question, shared):
    """Returns one row of the server's table."""
    binds = parameters(question, shared)
    if len(binds) > MOST_PARAMETERS:
        raise Fault(f"{question.name}: more than {MOST_PARAMETERS} parameters")
    kinds = ", ".join(f'{{"{name}", SJ_WEB_{plain_kind(word).upper()}, {str(word.startswith(OPTIONAL)).lower()}}}'
                      for name, word in binds)
    columns = ",".join(name for name, _ in question.row)
    return (f'    {{"web.{question.name}",\n{c_lines(question.sql)},\n     {{{kinds or "{0}"}}},\n     {len(binds)},\n'
            f'     "{columns}", {str(question.is_open).lower()}, {str(question.engine == "cluster").lower()}}},\n')


def script_entry(question, shared):
    """Returns the types of one question."""
    values = "".join(f" {name}{'?' if word.startswith(OPTIONAL) else ''}: {PARAMETERS[plain_kind(word)]};"
                     for name, word in parameters(question, shared))
    row = "".join(f" {name}: {TYPES[word]};" for name, word in question.row)
    return f'    "web.{question.name}": {{ values: {{{values} }}; row: {{{row} }} }};\n'


def script(questions, shared):
    """Returns the types of all questions, and the greatest number of rows of those that have a LIMIT."""
    limits = "".join(f'    "web.{q.name}": {found[1]},\n' for q in questions if (found := LIMIT.search(q.sql)))
    return ("// Made by embed_questions.py from schema/queries/web.\nexport interface Questions {\n" +
            "".join(script_entry(q, shared) for q in questions) +
            f"}}\n\nexport const rowLimits: Partial<Record<keyof Questions, number>> = {{\n{limits}}};\n")


def main(table, types, *paths):
    """Generates both files."""
    every = [q for path in paths for q in embed_statements.read_file(path, Question, embed_statements.without_comments)]
    parts = {part.name: part for part in every if part.is_part}
    shared = {name: word for part in parts.values() for name, word in part.types.items()}
    questions = sorted((q for q in every if not q.is_part), key=lambda q: q.name)
    embed_statements.check_names(every)
    for question in questions:
        question.sql = embed_statements.insert_parts(question.sql, parts)
    write(table, "static const sj_web_question questions[] = {\n" +
          "".join(c_entry(q, shared) for q in questions) + "};\n")
    write(types, script(questions, shared))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Fault as fault:
        sys.exit(f"embed_questions.py: {fault}")
