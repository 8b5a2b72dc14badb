#!/usr/bin/env python3
"""Generates the tables and columns of schema/README.md from the comments of schema/migrations/*.sql.

A comment above a table, a view or a column describes it. The last part of a view's comment lists its columns:
`- NAME TYPE: meaning`.

schema_readme.py [--write]   without --write it lists the differences, and fails if there are any

A section of the README is generated from its heading to the end of the table of columns. The text behind that
table and all other sections are written by hand.
"""
import glob
import os
import re
import sqlite3
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
README = os.path.join(ROOT, "schema", "README.md")
MIGRATIONS = os.path.join(ROOT, "schema", "migrations")
HEAD = "| Column | Type | Meaning |\n|---|---|---|\n"
BEGIN = re.compile(r"(?P<indent> *)(?P<what>CREATE TABLE|CREATE VIEW|ALTER TABLE) (?P<name>\w+)(?: ADD COLUMN (?P<column>\w+))?")
COLUMN = re.compile(r"    (\w+) [A-Z]")


class Comment:
    """The comment that is being read: its lines without `--`. A line with only `--` begins a paragraph."""

    def __init__(self):
        self.paragraphs = [[]]

    def add(self, text):
        if text:
            self.paragraphs[-1].append(text)
        else:
            self.paragraphs.append([])

    def texts(self):
        return [lines for lines in self.paragraphs if lines]


def listed_columns(lines):
    """Returns the columns that a view's comment lists: [[name, type, meaning]]."""
    columns = []
    for line in lines:
        found = re.match(r"- (\w+) ([A-Z]+): (.*)", line)
        if found:
            columns.append(list(found.groups()))
        elif columns:
            columns[-1][2] += " " + line.strip()
    return columns


def read_comments(sql, tables):
    """Adds the descriptions of one migration to `tables`: {name: (description, {column: (type, meaning)})}."""
    comment, table = Comment(), None
    for line in sql.splitlines():
        stripped = line.strip()
        if stripped.startswith("--"):
            comment.add(stripped[2:].removeprefix(" ").rstrip())
            continue
        begin, column = BEGIN.match(line), COLUMN.match(line)
        texts = comment.texts()
        if begin and begin["column"]:
            tables[begin["name"]][1][begin["column"]] = ("", " ".join(sum(texts, [])))
        elif begin and begin["what"] != "ALTER TABLE":
            columns = listed_columns(texts.pop()) if begin["what"] == "CREATE VIEW" and texts else []
            tables[begin["name"]] = ("\n\n".join(" ".join(lines) for lines in texts),
                                     {name: (kind, meaning) for name, kind, meaning in columns})
            table = begin["name"] if begin["what"] == "CREATE TABLE" else None
        elif column and table and column[1] not in ("PRIMARY", "UNIQUE", "CHECK", "FOREIGN"):
            tables[table][1][column[1]] = ("", " ".join(sum(texts, [])))
        elif stripped.startswith(")"):
            table = None
        comment = Comment()


def read_migrations(texts):
    """Returns (tables as the comments describe them, {name: [(column, type)]} as SQLite knows them)."""
    tables, known = {}, {}
    database = sqlite3.connect(":memory:")
    for text in texts:
        database.executescript(text)
        read_comments(text, tables)
    names = [row[0] for row in database.execute(
        "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY rowid")]
    for name in names:
        known[name] = [(row[1], row[2]) for row in database.execute(f"PRAGMA table_info({name})")]
    return tables, known


def section_of(name, tables, known, problems):
    """Returns the generated part of a section, without its heading."""
    description, columns = tables.get(name, ("", {}))
    if not description:
        problems.append(f"{name}: no comment above it says what it is")
    text = f"\n{description}\n\n{HEAD}"
    for column, kind in known[name]:
        said_kind, meaning = columns.pop(column, ("", ""))
        if not meaning:
            problems.append(f"{name}.{column}: no comment says what it is")
        text += f"| `{column}` | {said_kind or kind} | {meaning.replace('|', '&#124;')} |\n"
    problems.extend(f"{name}.{column}: a comment describes it, and it is not there" for column in columns)
    return text


def generate(readme, texts):
    """Returns (the README as it must be, problems of the comments)."""
    tables, known = read_migrations(texts)
    problems, after = [], None
    parts = re.split(r"(?m)^(?=## )", readme)
    for name in known:
        made = f"## {name}\n" + section_of(name, tables, known, problems)
        places = [place for place, part in enumerate(parts) if part.startswith(f"## {name}\n")]
        if places:
            after = places[0]
            rest = parts[after].partition(HEAD)[2]
            parts[after] = made + re.sub(r"\A(\|.*\n)*", "", rest)
        else:
            after = len(parts) if after is None else after + 1
            parts.insert(after, made + "\n")
    return "".join(parts), problems


def read_files():
    """Returns (the README, the migrations in ascending sequence)."""
    texts = []
    for path in [README, *sorted(glob.glob(os.path.join(MIGRATIONS, "*.sql")))]:
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    return texts[0], texts[1:]


def find_problems():
    readme, texts = read_files()
    made, problems = generate(readme, texts)
    if made != readme:
        was = set(readme.splitlines())
        problems += [f"schema/README.md lacks: {line}" for line in made.splitlines() if line not in was]
        problems.append("schema/README.md is not what the comments say: run tests/lint/schema_readme.py --write")
    return problems


def main():
    if "--write" in sys.argv[1:]:
        made, problems = generate(*read_files())
        if not problems:
            with open(README, "w", encoding="utf-8") as file:
                file.write(made)
    else:
        problems = find_problems()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
