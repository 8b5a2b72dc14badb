#!/usr/bin/env python3
"""Runs one page of docs/ as a reader would: its shell blocks, in order, in one shell and in an empty folder
that has the files of docs/examples.

pages.py BUILD_FOLDER PAGE.md

The words behind a fence say what a block is:
  sh             commands; every one has to end with 0
  sh exit=N      commands; the last one has to end with N
  text           what the block before it prints, compared loosely
  LANGUAGE NAME  a file that the commands find
  console        commands that need another machine or root: collector-server.cli.examples parses them

Each line of a text block has to be among the lines that the commands print. Names and counts have to be the
same. Times, percentages, sizes, dates, addresses and ids may be others. "..." stands for anything, also for lines.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system", "support"))
from sojourn_testing import PATIENCE_S, check, main

FENCE = re.compile(r"^```(\w+)(?: +([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
END_OF_STEP = "<end of a step>\n"
NUMBER = r"[-+~]?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?"
# Each row is what may differ from run to run, and the expression that stands for it.
VARIABLE = [
    (r"\.\.\.", ".*"),
    (r", (?:about|more than) [\d.]+ times the CPU of a plain run(?: \([\d.]+ to [\d.]+\))?",
     r"(?:, (?:about|more than) [\d.]+ times the CPU of a plain run(?: \([\d.]+ to [\d.]+\))?)?"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d", r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d"),
    (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=[a-f]*\d)[0-9a-f]{32}\b", r"[0-9a-f-]+"),
    (r"\b0x[0-9a-f]+\b", r"0x[0-9a-f]+"),
    (rf"{NUMBER} ?(?:ns|us|ms|s|min|h)\b", rf"{NUMBER} ?(?:ns|us|ms|s|min|h)"),
    (rf"{NUMBER} ?(?:%|bytes\b|[kMG]i?B\b)", rf"{NUMBER} ?(?:%|bytes|[kMG]i?B)"),
    (r"[-+~]?\d+\.\d+", NUMBER),
    (r"\s*[\u2581-\u258f]+", r"(?:\s*[\u2581-\u258f]+)?"),
    (r"(?<=127\.0\.0\.1:)\d+", r"\d+"),
    (r"(?<=by thread )\d+|(?<=\()\d{3,}(?=\))|\b\d{7,}\b", r"\d+"),
    (r"(?<!\S)/\S+", r"/\S+"),
]
ANY_VARIABLE = re.compile("|".join(f"(?P<v{number}>{found})" for number, (found, _) in enumerate(VARIABLE)))


def pattern_of(line):
    """Returns a regular expression for a line that a page shows."""
    parts = []
    end = 0
    for match in ANY_VARIABLE.finditer(line):
        parts += [re.escape(line[end:match.start()]), VARIABLE[int(match.lastgroup[1:])][1]]
        end = match.end()
    text = "".join([*parts, re.escape(line[end:])])
    return re.sub(r"(?:\\ )+", r"\\s+", text.strip())


def check_shown(command, shown, printed):
    """Each line of `shown` has to be printed, each printed line counts once."""
    left = [line.strip() for line in printed.splitlines()]
    for line in shown.splitlines():
        if line.strip() in ("", "..."):
            continue
        pattern = re.compile(pattern_of(line.strip()))
        found = next((number for number, other in enumerate(left) if pattern.fullmatch(other)), None)
        check(found is not None, f"{command}\ndoes not print this line of the page:\n{line}\nbut:\n{printed}")
        del left[found]


def read_page(text):
    """Returns the files of a page, and its steps: [commands, exit code, the output that the page shows]."""
    files, steps = {}, []
    for kind, words, content in FENCE.findall(text):
        if kind == "sh":
            expected = re.fullmatch(r"(?:exit=(\d+))?", words)
            check(expected is not None, f"unknown words behind a fence: {words}")
            steps.append([content, int(expected[1] or 0), ""])
        elif kind == "text":
            check(steps and steps[-1][2] == "", f"output without commands:\n{content}")
            steps[-1][2] = content
        elif words:
            files[words] = content
    check(steps, "the page has no commands")
    return files, steps


def with_free_ports(text):
    """Returns the page with free ports in place of those that it names, so that two pages can run at once."""
    for port in sorted(set(re.findall(r"(?:127\.0\.0\.1:|--port |-p )(\d{4})\b", text))):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            text = re.sub(rf"\b{port}\b", str(found.getsockname()[1]), text)
    return text


def end_group(group):
    """Ends the processes that a page has left running."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_steps(steps, environment):
    """Runs all steps in one shell. Returns what each printed, with a line for each command that failed."""
    script = ["trap 'code=$?; echo \"<failed $code> $BASH_COMMAND\"' ERR"]
    for commands, _, _ in steps:
        script += [commands, f"echo '{END_OF_STEP.strip()}'"]
    with open("page.log", "w+", encoding="utf-8") as log:  # a pipe would be held open by what a page leaves running
        with subprocess.Popen(["bash", "-c", "\n".join(script)], stdin=subprocess.DEVNULL, stdout=log,
                              stderr=subprocess.STDOUT, env=environment, start_new_session=True) as shell:
            try:
                shell.wait(PATIENCE_S)
            finally:
                end_group(shell.pid)
        log.seek(0)
        return log.read().split(END_OF_STEP)


def lay_out(folder, source, files):
    """Makes the folder that the commands of a page run in."""
    os.mkdir(folder)
    os.chdir(folder)
    for name in os.listdir(source):
        shutil.copy(os.path.join(source, name), name)
    for name, content in files.items():
        with open(name, "w", encoding="utf-8") as file:
            file.write(content)


def run_page(sojourn, page):
    """Returns the steps of a page and what each of them printed."""
    with open(page, encoding="utf-8") as file:
        files, steps = read_page(with_free_ports(file.read()))
    docs = os.path.dirname(os.path.abspath(page))
    lay_out(sojourn.path("page"), os.path.join(docs, "examples"), files)
    path = f"{os.path.dirname(sojourn.program)}:{os.environ['PATH']}"
    build = os.path.dirname(os.path.dirname(sojourn.program))
    package = {"PYTHONPATH": os.path.join(docs, "..", "collector-server", "python"), "PYTHONDONTWRITEBYTECODE": "1",
               "SOJOURN_EXTENSION": os.path.join(build, "lib", "libsojourn-sqlite.so")}
    outputs = run_steps(steps, {**sojourn.environment, **package, "PATH": path, "HOME": os.getcwd(), "LC_ALL": "C.UTF-8"})
    check(len(outputs) == len(steps) + 1, f"the shell ended early:\n{''.join(outputs)}")
    return steps, outputs


def test(sojourn, arguments):
    for (commands, expected, shown), printed in zip(*run_page(sojourn, arguments[0])):
        failed = re.findall(r"^<failed (\d+)> ", printed, re.MULTILINE)
        codes = [int(code) for code in failed]
        check(codes == ([expected] if expected else []), f"{commands}\nended with {codes}, not {expected}:\n{printed}")
        check_shown(commands, shown, re.sub(r"^<failed .*\n", "", printed, flags=re.MULTILINE))


if __name__ == "__main__":
    main(test)
