"""Finds long SQL statements in C and TypeScript. They belong in schema/queries, the one home of questions.

Also finds hand-written loops over rows, and functions that a header of another folder declares than the one that defines them.
"""
import os
import re

import reach

MOST_LINES = 3
STATEMENT = re.compile(r"[\s,(;%s]*(?:SELECT|WITH|INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ATTACH|FROM|WHERE|AND|"
                       r"JOIN|(?:LEFT|CROSS) JOIN|UNION|ORDER BY|GROUP BY)\b")
LITERAL = r'"(?:\\.|[^"\\\n])*"'
PIECE = re.compile(rf"/\*.*?\*/|//[^\n]*|{LITERAL}|'(?:\\.|[^'\\\n])*'", re.S)
# Spaces, ends of lines, and macros with their arguments may stand between the parts of one literal.
BETWEEN = re.compile(r"(?:\s|\\\n|\b[A-Z][A-Z0-9_]*\b|PRI[a-zA-Z0-9]+|[()])*")
SCRIPT_LITERAL = re.compile(rf"`(?:\\.|[^`\\])*`|(?:{LITERAL}|'(?:\\.|[^'\\\n])*')"
                            rf"(?:\s*\+\s*(?:{LITERAL}|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`))*")
# The only files with a loop that calls sqlite3_step, once each.
ROW_LOOPS = {
    "collector-server/store/sql.c": "sj_sql_scan: all other code calls it, or a function that does",
    "collector-server/cli/tree_values.c": "steps two statements side by side",
    "collector-server/export/function_txt.c": "ends at each wanted row, because the rows of many statements are merged",
}
ROW_LOOP = re.compile(r"\b(?:while|for) \((?:[^{}]|\n)*?\bsqlite3_step\((?:[^{}]|\n)*?\{")
DECLARED = re.compile(r"^(?!static |typedef |#|\s|\}|/)[A-Za-z_][^;{}=]*?\b(sj_\w+)\([^;{}]*\)[^;{}()]*;", re.M)


def c_literals(text):
    """Yields (line, lines, string) of each literal of C, which may have several parts."""
    begin = end = None
    parts = []
    for piece in PIECE.finditer(text):
        if not piece[0].startswith('"'):
            continue
        if parts and not BETWEEN.fullmatch(re.sub(r"/\*.*?\*/", "", text[end:piece.start()], flags=re.S)):
            yield begin, text.count("\n", begin, end) + 1, "".join(parts)
            parts = []
        begin = piece.start() if not parts else begin
        end = piece.end()
        parts.append(piece[0][1:-1])
    if parts:
        yield begin, text.count("\n", begin, end) + 1, "".join(parts)


def script_literals(text):
    """Yields (place, lines, string) of each literal of TypeScript, or sum of literals."""
    for found in SCRIPT_LITERAL.finditer(text):
        yield found.start(), found[0].count("\n") + 1, found[0].strip("`\"'")


def statement_problems(name, text):
    """Returns the problems of one file of C or TypeScript."""
    literals = c_literals(text) if name.endswith((".c", ".h")) else script_literals(text)
    return [f"{name}:{text.count(chr(10), 0, place) + 1}: SQL of {lines} lines, for schema/queries"
            for place, lines, string in literals if lines > MOST_LINES and STATEMENT.match(string)]


def loop_problems(texts, known=frozenset(ROW_LOOPS)):
    """Returns the files of {file: text} with more loops over rows than they may have."""
    problems = []
    for name, text in texts.items():
        loops = len(ROW_LOOP.findall(text)) if name.endswith(".c") else 0
        if loops > (name in known):
            problems.append(f"{name}: a loop calls sqlite3_step, which can take an error for the end of the rows: "
                            "use sj_sql_each, sj_sql_each_row or sj_sql_scan (collector-server/store/sql.h)")
    return problems


def definition_problems(texts):
    """Returns the functions of {file: text} that another folder's header declares than their own."""
    defined = {}
    for name, text in texts.items():
        if name.endswith(".c"):
            for function, is_static, _ in reach.functions_of(reach.without_comments(text).splitlines()):
                if not is_static:
                    defined.setdefault(function, set()).add(os.path.dirname(name))
    problems = []
    for name, text in texts.items():
        for function in DECLARED.findall(reach.without_comments(text)) if name.endswith(".h") else ():
            folder, homes = os.path.dirname(name), defined.get(function, set())
            if homes and not any(home == folder or home.startswith(folder + "/") for home in homes):
                problems.append(f"{name}: {function} is defined in {', '.join(sorted(homes))}; declare it there")
    return problems
