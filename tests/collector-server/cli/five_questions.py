#!/usr/bin/env python3
"""The five questions of QUESTIONS.md, asked of redis-server under load and of a Python program: its commands
are run as they stand, and their answers are right.

five_questions.py BUILD_FOLDER QUESTIONS
"""
import os
import re
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system", "support"))
from sojourn_testing import check, main

# For each command of a section, in order, what its output has to show; None: nothing in particular.
REDIS = [None, None, [r"\n +share .*\n +[0-9.]+ %", r"functions; --all"], [r"\n +1[0-9]{3} .* processCommand"],
         [r"addReplyBulkCBuffer\n", r"  addListRangeReply\n", r"    lrangeCommand\n"],
         [r"threads worked [1-9]\d* %, waited \d+ %", r"working +waiting"], None, None,
         [r"\n *[0-9.]+ % +[0-9.]+ .?s +[1-9][0-9.]* .?s +[0-9.]+ .?s processCommand"],
         None, [r"\n> .* processCommand", r"\n\^ .*  main\n"], None,
         [r"A: name:yesterday \(4 sessions\)  B: name:today \(4 sessions\)", r"lpSeek|quicklistNext|__quicklistCompress"]]
PYTHON = [None, [r"_PyEval_EvalFrameDefault"],
          [r"threads worked \d+ %, waited [1-9]\d* %", r"\n *[0-9.]+ % +[0-9.]+ .?s +[0-9.]+ .?s +[1-9][0-9.]* m?s .*Py_BytesMain"],
          [r"\n *[0-9.]+ % +[0-9.]+ .?s +0 ns +[1-9][0-9.]* m?s .*!clock_nanosleep"],
          [r"working +waiting  function", r"!clock_nanosleep"],
          [r"!clock_nanosleep\n.*  python"], None, [r"\n> .*!clock_nanosleep", r"\n\^ .*Py_BytesMain"], None, None,
          [r"A: name:yesterday \(4 sessions\)  B: name:today \(4 sessions\)", r"\bmore\b"],
          [r"Too few sessions \(1 and 1\)"]]


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def commands_of(section):
    """Lines of shell; a loop is one."""
    lines = "".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL)).splitlines()
    while lines:
        command = lines.pop(0)
        if command.startswith("for "):
            while not command.endswith("done"):
                command += "\n" + lines.pop(0)
        yield command


def run_section(environment, section, answers):
    """One shell, as somebody would type it; a line of its own ends each answer."""
    script = "".join(f"{command}\necho \"<$?>\"\n" for command in commands_of(section))
    done = subprocess.run(["sh"], input=script, env=environment, capture_output=True, text=True, check=False)
    given = re.split(r"<(\d+)>\n", done.stdout)
    outputs, codes = given[0:-1:2], given[1::2]
    check(len(outputs) == len(answers), f"{len(outputs)} answers to {len(answers)} questions:\n{done.stdout}\n{done.stderr}")
    for command, output, code, patterns in zip(commands_of(section), outputs, codes, answers):
        check(code == "0", f"{command}: {code}\n{output}\n{done.stderr}")
        for pattern in patterns or []:
            check(re.search(pattern, "\n" + output), f"{command}\nhas no {pattern}:\n{output}")


def test(sojourn, arguments):
    with open(arguments[0], encoding="utf-8") as file:
        text = file.read().replace("7781", str(free_port()))
    os.chdir(sojourn.path("."))
    for name, content in re.findall(r"```file (\S+)\n(.*?)```", text, re.DOTALL):
        with open(name, "w", encoding="utf-8") as file:
            file.write(content)
    environment = {**sojourn.environment, "PATH": f"{os.path.dirname(sojourn.program)}:{os.environ['PATH']}"}
    redis, python = text.split("## A Python program")
    run_section(environment, redis, REDIS)
    run_section(environment, python, PYTHON)


if __name__ == "__main__":
    main(test)
