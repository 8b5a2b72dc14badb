#!/usr/bin/env python3
"""Checks that comments and messages are plain English. plain.py PATH... lists what it finds below each path.

It finds comments that begin without a subject, words that the project does not use, sentences of more than
25 words in headers and messages, and names of files, symbols, members and parameters that no longer exist.
"""
import functools
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
MAX_WORDS = 25
# Records of former measurements, with the words of their time.
HISTORY = "tests/bench/history/"
C_LIKE = (".c", ".h", ".S", ".cpp", ".m", ".ts", ".tsx", ".mjs", ".proto")
MANUAL = (".1", ".7", ".8")
ENDINGS = (*C_LIKE, *MANUAL, ".py", ".sh", ".sql", ".cmake", ".md")

HEADLESS = re.compile(r"(Of|Those|That of|What|Who|Whose|Whoever|Likewise|As the next|The same|Nobody|Somebody"
                      r"|None|Neither|But for|By way of|With which|In which|On which|Which|of (?:the|an?))\b")
UNUSED = re.compile(r"\b(likewise|somebody|nobody|whoever|custod(?:y|ian|ies)|doors?|excus(?:e|es|ed)|hurr(?:y|ies|ied)"
                    r"|laid|led|odd|told|rooms?|lands|landed|but for|no less|go(?:es)? on|went on|put(?:s|ting)? in(?! [a-z]+ing)"
                    r"|(?<!there )(?<!There )(?:is|are|was|were) no(?! longer| more|t))\b")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
NAMED_FILE = re.compile(r"(?<![\w/.*-])[\w./-]*\w\.(?:c|h|S|py|tsx?|sql|mjs)\b(?![\w(*])")
# A name with capital letters stands for many files: NNNN_x.sql, FILE.h.
ANY_FILE = re.compile(r"(\w*_)?(x|x_test|x_table|a|b|foo)\.\w+|\w*[A-Z]+(_\w+)?\.\w+")
NAMED_MEMBER = re.compile(r"`([a-z_][a-z0-9_]{2,})(?:\(\))?`")
NAMED_SYMBOL = re.compile(r"\bsj_[a-z0-9_]*[a-z0-9]\b(?![*_])")


def listed(paths):
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *paths], cwd=ROOT,
                          capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines()
            if name.endswith(ENDINGS) and not name.startswith(HISTORY) and os.path.exists(os.path.join(ROOT, name))]


@functools.lru_cache(maxsize=None)
def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def split_c(text):
    """Returns ([(line, comment)], the text with comments blanked). Adjacent line comments count as one."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)
    comments, last_end = [], -1

    def blank(found):
        nonlocal last_end
        whole = found[0]
        if not whole.startswith(("//", "/*")):
            return whole
        line = text.count("\n", 0, found.start()) + 1
        plain = re.sub(r"^\s*(/\*+|\*+/|\*(?=\s|$)|//+)|\*+/$", "", whole, flags=re.MULTILINE)
        if whole.startswith("//") and comments and not text[last_end:found.start()].strip() \
                and text.count("\n", last_end, found.start()) == 1 and text[last_end - 2:last_end] != "*/":
            comments[-1] = (comments[-1][0], comments[-1][1] + "\n" + plain)
        else:
            comments.append((line, plain))
        last_end = found.end()
        return re.sub(r"[^\n]", " ", whole)

    return comments, token.sub(blank, text)


def split_hash(text, mark):
    """Does the same for comments that run from `mark` to the end of the line, and for Python's docstrings."""
    comments, code, last = [], [], -2
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(rf"(\s*){mark}(?!!)(.*)", line)
        code.append("" if found else line)
        if found and last == number - 1:
            comments[-1] = (comments[-1][0], comments[-1][1] + "\n" + found[2])
        elif found:
            comments.append((number, found[2]))
        last = number if found else last
    body = "\n".join(code)
    for found in re.finditer(r'^\s*"""(.*?)"""', body, re.DOTALL | re.MULTILINE):
        comments.append((body.count("\n", 0, found.start()) + 1, found[1]))
    return comments, re.sub(r'^\s*"""(.*?)"""', lambda found: "\n" * found[0].count("\n"), body, flags=re.DOTALL | re.MULTILINE)


def split_manual(text):
    """Returns ([(line, text)], "") for the lines of a manual page on which a sentence begins."""
    text = re.sub(r"^\.Bd.*?^\.Ed", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    lines, begins = [], True
    for number, line in enumerate(text.split("\n"), 1):
        if line and not line.startswith(".") and begins:
            lines.append((number, line))
        begins = line.endswith((".", ":")) or re.match(r"\.(Sh|Ss|Pp|It|Bl|El|Nd|Ed)\b|$", line) is not None
    return lines, ""


@functools.lru_cache(maxsize=None)
def split(name):
    text = read(name)
    if name.endswith(MANUAL):
        return split_manual(text)
    if name.endswith(".md"):
        text = re.sub(r"```.*?```", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
        return [(number, line) for number, line in enumerate(text.split("\n"), 1)
                if line.strip() and not line.startswith("#")], ""
    if name.endswith(C_LIKE):
        return split_c(text)
    return split_hash(text, "--" if name.endswith(".sql") else "#")


@functools.lru_cache(maxsize=None)
def known():
    """Returns (base names of all files, identifiers in the code of all files)."""
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True,
                          check=True)
    names = [name for name in done.stdout.splitlines() if os.path.exists(os.path.join(ROOT, name))]
    symbols = set()
    for name in names:
        if name.endswith((*C_LIKE, ".py", ".txt", ".cmake", ".map", ".in")) and not name.endswith(".md"):
            code = split(name)[1] if name.endswith(C_LIKE) else read(name)
            symbols.update(re.findall(r"\bsj_\w+", code))
            symbols.update("sj_" + word for word in re.findall(r"##(_?\w+)|(\w+)##", code) for word in word if word)
    return {os.path.basename(name) for name in names}, symbols


def sentences(text):
    text = re.sub(r"`[^`\n]*`", "x", text)
    return re.split(r"(?<=[.!?:;])\s+|\n\s*\n|\n\s*[-*|] ", text)


def without_quotes(comment):
    """Returns the comment without its quotations: code, options, examples."""
    return re.sub(r"`[^`\n]*`|\"[^\"\n]*\"|'[^'\n]{2,}'", "x", comment)


def wording(comment):
    """Yields the problems with the words of a comment."""
    start = re.sub(r"^[\s*#>|-]*", "", comment)
    if HEADLESS.match(start) and not start.split("\n\n")[0].rstrip().endswith("?"):
        yield "begins without its subject"
    for found in UNUSED.finditer(without_quotes(comment)):
        yield f"uses '{found[0]}'"


def length(text):
    """Returns the words of the longest sentence. Deeper indented lines describe a format and do not count."""
    text = re.sub(r"^\s{3,}.*$", "", text, flags=re.MULTILINE)
    return max((len(sentence.split()) for sentence in sentences(text)), default=0)


STATUS_FUNCTION = re.compile(r"/\*.*?\*/|\n[ \t]*\n|^(?!typedef)[\w ]*\bsj_status\s+(\w+)\(", re.DOTALL | re.MULTILINE)
NAMES_ERRORS = re.compile(r"\bSJ_E[A-Z]+\b|\b(?:errors?|status|fails?)\b", re.IGNORECASE)


def nameless_errors(text):
    """Returns the functions of a header that return sj_status, but whose errors no comment names.

    The comment directly above a group of functions counts for all of them, the header's first comment for all
    functions of the header.
    """
    first = re.match(r"\s*/\*.*?\*/", text, re.DOTALL)
    if first and re.search(r"\bSJ_E[A-Z]+\b|\berrors?\b", without_quotes(first[0])):
        return []
    comment, found = "", []
    for part in STATUS_FUNCTION.finditer(text):
        if part[1] is None:
            comment = part[0]
        elif not NAMES_ERRORS.search(without_quotes(comment)):
            found.append(part[1])
    return found


def stale(comment):
    files, symbols = known()
    for found in NAMED_FILE.finditer(comment):
        base = os.path.basename(found[0])
        if "*" not in base and base not in files and not ANY_FILE.fullmatch(base) \
                and "/usr/" not in found[0] and "<" not in comment[max(0, found.start() - 1):found.start()]:
            yield f"names the file {found[0]}, which does not exist"
    for found in NAMED_SYMBOL.finditer(comment):
        if found[0] not in symbols and not any(symbol.startswith(found[0] + "_") for symbol in symbols):
            yield f"names {found[0]}, which does not exist"


@functools.lru_cache(maxsize=None)
def words_of_component(folder):
    """Returns the words in the code of the files of a folder and of its folders for machines."""
    names = [name for name in listed([folder]) if os.path.dirname(name).split("/arch/")[0] == folder]
    return {word for name in names for word in re.findall(r"\w+", split(name)[1])}


def gone_names(name):
    """Yields (line, problem) for names in backquotes in a header's comments: members, parameters and functions.

    Each must be a word in the code of the header's component or of the headers that it includes.
    """
    words = words_of_component(os.path.dirname(name).split("/arch/")[0])
    for included in re.findall(r'#include "([^"]+\.h)"', read(name)):
        if os.path.exists(os.path.join(ROOT, included)):
            words = words | set(re.findall(r"\w+", split(included)[1]))
    for line, comment in split(name)[0]:
        yield from ((line, f"names `{found[1]}`, which its component does not have")
                    for found in NAMED_MEMBER.finditer(comment) if found[1] not in words)


def check_file(name):
    comments, code = split(name)
    if name.endswith(".h"):
        yield from (f"{name}:{line}: {problem}" for line, problem in gone_names(name))
    for line, comment in comments:
        short = " ".join(comment.split())[:70]
        problems = list(wording(comment)) + list(stale(comment))
        if (name.endswith(".h") or name.endswith(".md")) and length(comment) > MAX_WORDS and "|" not in comment[:3]:
            problems.append(f"has a sentence of {length(comment)} words")
        yield from (f"{name}:{line}: {problem}: {short}" for problem in problems)
    if name.endswith((".c", ".h", ".ts", ".tsx")) and not name.startswith("tests/"):
        for number, line in enumerate(code.split("\n"), 1):
            for found in STRING.finditer(line):
                if len(found[1].split()) > MAX_WORDS and length(found[1]) > MAX_WORDS and "SELECT" not in found[1]:
                    yield f"{name}:{number}: has a message with a sentence of {length(found[1])} words: {found[1][:60]}"


def problems_below(paths):
    return [problem for name in listed(paths) for problem in check_file(name)]


SUBJECT = re.compile(r"[a-z0-9][\w ,./+-]*: [a-z`'\"].*")


def subject_problems(subjects):
    return [f"commit: {subject}: write `component: imperative phrase`, at most 72 characters"
            for subject in subjects if len(subject) > 72 or not SUBJECT.match(subject)]


if __name__ == "__main__":
    found = problems_below(sys.argv[1:])
    print("\n".join(found))
    print(f"{len(found)} problems", file=sys.stderr)
    sys.exit(1 if found else 0)
