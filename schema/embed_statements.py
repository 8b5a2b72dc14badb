#!/usr/bin/env python3
"""Generates C headers from the SQL statements of schema/queries/COMPONENT/*.sql.

    embed_statements.py [--cached] OUTPUT_FOLDER FILE.sql...

A file holds statements. Each begins with these lines, and ends before the next one:

    -- name: path_put
    -- bind: histogram blob, parent_path_id optional
    -- row: path_id, name text

Other comment lines explain the statement. `bind` names the types of the parameters that are not
int64_t; `row` names all columns, with their types:

    int (the default), real (a column), count (uint64_t; as a parameter cut to INT64_MAX), text, optional (a column
    or a parameter that may be NULL), blob,
    optional_blob (a parameter: NULL without data), device_text (a parameter: bytes that may not be
    UTF-8)

`-- part: NAME(A, B)` begins a text for other statements of the same run. They insert it with
{NAME(X, Y)}, which replaces {A} and {B} in it. Arguments end at commas outside of parentheses; the only
argument of a part may have such commas.

Each file becomes OUTPUT_FOLDER/FILE.h: for each statement its text `sj_NAME_sql`, and the types of
its parameters and rows. With --cached, all files become one OUTPUT_FOLDER/statements.inc: a table
of texts, with typed functions for sj_statements (statements.h of the store)."""
import os
import re
import sys

HEAD = re.compile(r"^-- (name|part|bind|row|open_row|engine): (.*)$")
PARAMETER = re.compile(r"(?<![\w:]):([a-z_][a-z_0-9]*)")
PIECES = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|--[^\n]*|\s+|[^'"\s-]+|-""")
INSERTED = re.compile(r"\{([a-z_0-9]+)(?:\(([^{}]*)\))?\}")
FIELDS = {  # type: (C type of the field, the kind that binds it)
    "int": ("int64_t ", "INT"),
    "count": ("uint64_t ", "COUNT"),
    "text": ("const char *", "TEXT"),
    "blob": ("sj_slice ", "BLOB"),
    "device_text": ("sj_slice ", "DEVICE_TEXT"),
    "optional": ("const int64_t *", "OPTIONAL"),
    "optional_blob": ("sj_slice ", "OPTIONAL_BLOB"),
    "real": ("double ", None),
}
WIDTH = 92


class Fault(Exception):
    """A statement that the generator cannot read."""


class Statement:
    """One statement or part, as its file has it."""

    types_known = FIELDS

    def __init__(self, kind, head):
        self.is_part = kind == "part"
        found = re.fullmatch(r"([a-z][a-z_0-9]*)(?:\(([a-z_0-9, ]+)\))?", head)
        if found is None or (found[2] and not self.is_part):
            raise Fault(f"{head}: not a name")
        self.name = found[1]
        self.arguments = [a.strip() for a in (found[2] or "").split(",") if a.strip()]
        self.types, self.row, self.sql = {}, [], ""

    def read_types(self, kind, text):
        """Reads a `bind` or `row` line."""
        for entry in filter(None, (e.strip() for e in text.split(","))):
            name, _, word = entry.partition(" ")
            word = word or "int"
            if word not in self.types_known:
                raise Fault(f"{self.name}: unknown type {word}")
            if kind == "row":
                self.row.append((name, word))
            else:
                self.types[name] = word


def read_file(path, make=Statement, clean=None):
    """Returns the statements of a file, each made by `make`. `clean` removes the comments of a text."""
    found = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            head = HEAD.match(line)
            if head and head[1] in ("name", "part"):
                found.append(make(head[1], head[2].strip()))
            elif head and found:
                found[-1].read_types(head[1], head[2])
            elif found:
                found[-1].sql += line
    for statement in found:
        statement.sql = (clean or squeeze)(statement.sql)
        if not statement.sql:
            raise Fault(f"{path}: {statement.name} has no text")
    return found


def squeeze(sql):
    """Removes comments, and makes each run of spaces outside of quotes one space."""
    text = ""
    for piece in PIECES.findall(sql):
        text += " " if piece.isspace() or piece.startswith("--") else piece
    return re.sub(r"('(?:[^']|'')*')|\s+", lambda m: m[1] or " ", text).strip()


def without_comments(sql):
    """Removes the lines that are comments."""
    return "\n".join(line for line in sql.split("\n") if not line.startswith("--")).strip()


def split_arguments(text):
    """Splits at the commas outside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def insert_parts(sql, parts):
    """Replaces each {NAME(...)} by the text of the part."""
    def one(match):
        part = parts.get(match[1])
        if part is None:
            raise Fault(f"there is no part {match[1]}")
        values = [] if match[2] is None else [match[2]] if len(part.arguments) == 1 else split_arguments(match[2])
        if len(values) != len(part.arguments):
            raise Fault(f"{{{match[0]}}}: {part.name} takes {len(part.arguments)} texts")
        text = part.sql
        for name, value in zip(part.arguments, values):
            text = text.replace("{" + name + "}", value)
        return text

    while True:
        found = INSERTED.search(sql)
        if found is None:
            return sql
        sql = sql[:found.start()] + one(found) + sql[found.end():]


def parameters(statement):
    """Returns the (name, type) of each parameter, in the order in which SQLite numbers them."""
    names = list(dict.fromkeys(PARAMETER.findall(re.sub(r"'(?:[^']|'')*'", "''", statement.sql))))
    unknown = [name for name in statement.types if name not in names]
    if unknown:
        raise Fault(f"{statement.name}: the text has no :{unknown[0]}")
    return [(name, statement.types.get(name, "int")) for name in names]


def c_string(text):
    """Returns the text as lines of C string literals."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    lines = []
    while text:
        cut = text.rfind(" ", 0, WIDTH) + 1 if len(text) > WIDTH else len(text)
        cut = cut or WIDTH + text[WIDTH:].find(" ") + 1 or len(text)
        lines.append(f'    "{text[:cut]}"')
        text = text[cut:]
    return "\n".join(lines)


def struct(name, fields):
    """Returns a struct with one member a field."""
    members = "".join(f"    {FIELDS[word][0]}{field};\n" for field, word in fields)
    return f"typedef struct {name} {{\n{members}}} {name};\n"


def binder(name, fields):
    """Returns the function that turns a struct of parameters to sj_sql_binds."""
    table = "".join(f"        {{SJ_BIND_{FIELDS[word][1]}, offsetof(sj_{name}_binds, {field})}},\n"
                    for field, word in fields)
    return (struct(f"sj_{name}_binds", fields) +
            f"static inline sj_sql_binds sj_bind_{name}(const sj_{name}_binds *values)\n{{\n"
            f"    static const sj_sql_field fields[] = {{\n{table}    }};\n"
            f"    return (sj_sql_binds){{fields, {len(fields)}, values}};\n}}\n")


def reader(name, row):
    """Returns the function that reads a row to a struct."""
    text, fields = "", []
    for i, (field, word) in enumerate(row):
        if word == "optional":
            fields.append(f"    bool has_{field};\n")
            text += f"        .has_{field} = sqlite3_column_type(row, {i}) != SQLITE_NULL,\n"
        value = {
            "text": f"(const char *)sqlite3_column_text(row, {i})",
            "blob": f"sj_sql_blob(row, {i})",
            "real": f"sqlite3_column_double(row, {i})",
            "count": f"(uint64_t)sqlite3_column_int64(row, {i})",
        }.get(word, f"sqlite3_column_int64(row, {i})")
        fields.append(f"    {FIELDS['int' if word == 'optional' else word][0]}{field};\n")
        text += f"        .{field} = {value},\n"
    return (f"typedef struct sj_{name}_row {{\n{''.join(fields)}}} sj_{name}_row;\n"
            f"static inline sj_{name}_row sj_read_{name}(sqlite3_stmt *row)\n{{\n"
            f"    return (sj_{name}_row){{\n{text}    }};\n}}\n")


def cached_functions(statement, fields):
    """Returns the functions that run a statement of sj_statements."""
    name, which = statement.name, f"SJ_SQL_{statement.name.upper()}"
    taken = f"const sj_{name}_binds *values, " if fields else ""
    binds = f"sj_bind_{name}(values)" if fields else "(sj_sql_binds){0}"

    def function(verb, between, body):
        return (f"SJ_MUST_CHECK static inline sj_status sj_{verb}_{name}(sj_statements *sql, "
                f"{taken}{between}sj_error *error)\n{{\n{body}}}\n")

    start = function("start", "", f"    return sj_sql_bind(sql, {which}, {binds}, error);\n")
    if not statement.row:
        run = function("run", "", f"    return sj_sql_run(sql, {which}, {binds}, error);\n")
        return start + run
    if [word for _, word in statement.row] == ["int"]:
        start += function("get", "int64_t *number, ",
                          f"    return sj_sql_get_number(sql, {which}, {binds}, number, error);\n")
    text = start + (f"SJ_MUST_CHECK static inline sj_status sj_next_{name}(sj_statements *sql, "
             f"sj_{name}_row *row, sj_error *error)\n{{\n"
             f"    SJ_TRY(sj_sql_step(sql, {which}, error));\n"
             f"    *row = sj_read_{name}(sql->prepared[{which}]);\n    return SJ_OK;\n}}\n")
    is_borrowed = any(word in ("text", "blob") for _, word in statement.row)
    reset = "" if is_borrowed else f"    sj_sql_reset(sql, {which});\n"
    given = "values, " if fields else ""
    return text + function(
        "find", f"sj_{name}_row *row, ",
        f"    SJ_TRY(sj_start_{name}(sql, {given}error));\n"
        f"    SJ_TRY(sj_next_{name}(sql, row, error));\n{reset}    return SJ_OK;\n")


def check_names(statements):
    """Raises a Fault if two statements or two parts have one name."""
    names = [(statement.is_part, statement.name) for statement in statements]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise Fault(f"there are two texts {twice[0][1]}")


def describe(statement, is_cached):
    """Returns the C text of one statement."""
    fields = parameters(statement)
    text = f"\n/* {statement.name} */\n"
    if not is_cached:
        text += f"static const char sj_{statement.name}_sql[] =\n{c_string(statement.sql)};\n"
    if fields:
        text += binder(statement.name, fields)
    if statement.row:
        text += reader(statement.name, statement.row)
    return text + (cached_functions(statement, fields) if is_cached else "")


def write(path, text):
    """Writes a file if its text changed."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def main(arguments):
    """Generates the headers."""
    is_cached = arguments[0] == "--cached"
    output, *paths = arguments[1:] if is_cached else arguments
    files = {path: read_file(path) for path in paths}
    every = [statement for file in files.values() for statement in file]
    parts = {part.name: part for part in every if part.is_part}
    check_names(every)
    for statement in every:
        if not statement.is_part:
            statement.sql = insert_parts(statement.sql, parts)
    if is_cached:
        texts = "".join(f"static const char sj_{s.name}_sql[] =\n{c_string(s.sql)};\n"
                        for s in every if not s.is_part)
        table = "".join(f"    [SJ_SQL_{s.name.upper()}] = sj_{s.name}_sql,\n"
                        for s in every if not s.is_part)
        numbers = "".join(f"    SJ_SQL_{s.name.upper()},\n" for s in every if not s.is_part)
        write(os.path.join(output, "statement_numbers.h"), numbers)
        write(os.path.join(output, "statement_texts.inc"),
              texts + f"static const char *const texts[SJ_SQL_STATEMENTS] = {{\n{table}}};\n")
        write(os.path.join(output, "statement_functions.h"),
              "".join(describe(s, True) for s in every if not s.is_part))
        return
    for path, file in files.items():
        if all(statement.is_part for statement in file):
            continue
        stem = os.path.splitext(os.path.basename(path))[0]
        write(os.path.join(output, stem + ".h"),
              f"/* Generated from {os.path.relpath(path)}. */\n#pragma once\n"
              '#include "collector-server/store/sql.h"\n' +
              "".join(describe(s, False) for s in file if not s.is_part))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Fault as fault:
        sys.exit(f"embed_statements.py: {fault}")
