#!/usr/bin/env python3
"""Languages that turn machine faults into exceptions or errors catch the same hooked and unhooked: launched,
attached, during a detach and afterwards. The programs (tests/samples/faults) cause their faults once for each line
of input. SJ_LONG=1 adds languages, programs that end with a message about their stack overflow, every mode, and 20
rounds. judge_faults.py BUILD_FOLDER FOLDER_FOR_PROGRAMS [LANGUAGE [MODE...]]"""
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import start_attach
from judging import IS_LONG, REPEATS, mask, need, without_losses
from sojourn_testing import PATIENCE_S, SAMPLES, Failure, check, main

FAULTS = os.path.join(os.path.abspath(SAMPLES), "faults")
MODES = [[], ["--libs"], ["--profile"], ["--flight"], ["--library-calls"], ["--zombies", "heap"],
         ["--clock", "adaptive"]] if IS_LONG else [[]]
# Some 1 % of the overflows reach the slow path of the in-place engine. SJ_LONG causes enough of them.
LAUNCHED_MODES = [["--mono-engine", "in_place"]]
# Text that differs from run to run.
VARIES = [(r"\b0x[0-9a-f]+", "ADDRESS"), (r"\(\d+\)|\b[pt]id \d+", "NUMBER")]
LINES_WHILE_LEFT = 6
# Stacks overflow after fewer calls than with the usual limit. node needs a stack larger than 1 MiB.
STACK_BYTES = 2 << 20


def source(name):
    return os.path.join(FAULTS, name)


# Each language has what it needs, how its programs are built in the current folder, and the ways to run them. The
# second way ends by a fault that the language, except Mono, reports.
LANGUAGES = {
    "ocaml": ("ocamlopt", ["sh", "-c", 'cp "$0" . && ocamlopt faults.ml -o ocaml', source("faults.ml")], [["./ocaml"]]),
    "rust": ("/usr/bin/rustc", ["/usr/bin/rustc", "-O", "-Aunconditional_recursion", source("faults.rs"), "-o", "rust"],
             [["./rust"], ["./rust", "overflow"]]),
    "mono": ("mcs", ["sh", "-c", 'mcs -warn:0 -out:Faults.exe "$0" && mcs -warn:0 -unsafe -out:Overflows.exe "$1"',
                     source("Faults.cs"), source("Overflows.cs")], [["mono", "Faults.exe"], ["mono", "Overflows.exe"]]),
    "ruby": ("ruby", None, [["ruby", source("faults.rb")]]),
    "java": ("javac", ["javac", "-d", ".", source("Faults.java")], [["java", "-Xmx128m", "-cp", ".", "Faults"]]),
    "node": ("node", None, [["node", source("faults.js")]]),
    "ada": ("gnatmake", ["gnatmake", "-q", "-f", "-O2", source("faults.adb"), "-o", "ada"], [["./ada"]]),
    "go": ("go", ["sh", "-c", 'cp "$0" . && HOME=$PWD go build -o go faults.go', source("faults.go")],
           [["./go"], ["./go", "fault"]]),
    "pascal": ("fpc", ["fpc", "-O2", "-v0", "-FE.", "-opascal", source("faults.pas")], [["./pascal"]]),
    "lisp": ("sbcl", None, [["sbcl", "--noinform", "--no-sysinit", "--no-userinit", "--non-interactive", "--load",
                             source("faults.lisp")]]),
    "gdc": ("gdc", ["gdc", "-O2", "-fnon-call-exceptions", source("faults.d"), "-o", "gdc"], [["./gdc"]]),
    "ldc": ("ldc2", ["ldc2", "-O2", source("faults.d"), "-of=ldc"], [["./ldc"]]),
    "sigsegv": ("gcc", ["gcc", "-O2", source("faults_sigsegv.c"), "-o", "sigsegv", "-lsigsegv"], [["./sigsegv"]]),
}
# The fault ends these programs. They report it by gnulib's c-stack.
ENDED = {
    "c-stack": ("m4", [sys.executable, source("c_stack.py")], [["grep", "-E", "-f", "nested"], ["m4", "nested.m4"]]),
}
SHORT = ["ocaml", "rust", "mono", "ruby"]


def shown(code, output, errors):
    """Returns what a user sees. The stacks of goroutines differ from run to run."""
    errors = re.split(r"\n\n(?:runtime stack|goroutine )", without_losses(errors))[0]
    return code, output, mask(errors, VARIES)


def said_by(sojourn, command, lines):
    done = subprocess.run(command, cwd=sojourn.programs, env=sojourn.environment, input="\n" * lines, text=True,
                          capture_output=True, timeout=PATIENCE_S, check=False)
    return shown(128 - done.returncode if done.returncode < 0 else done.returncode, done.stdout, done.stderr)


def launched(sojourn, command, mode, plain):
    hooked = said_by(sojourn, [sojourn.program, "record", "--quiet", "-o", sojourn.path("launched.db"), "--block-ms",
                               "10000", *mode, "--", *command], LINES[launched])
    check(hooked == plain, f"launched {command} {mode}: unhooked {plain}, hooked {hooked}")
    os.remove(sojourn.path("launched.db"))


class Talk:
    """A program that causes its faults once for each line."""

    def __init__(self, sojourn, command):
        self.errors = tempfile.TemporaryFile("w+") # a pipe would fill up
        self.process = subprocess.Popen(command, cwd=sojourn.programs, env=sojourn.environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        self.output = ""

    def ask(self, lines):
        self.process.stdin.write("\n" * lines)
        self.process.stdin.flush()

    def said_of_errors(self):
        self.errors.seek(0)
        return self.errors.read()

    def hear(self, lines):
        """Reads the last line that the program prints for a line of input, for that many lines."""
        while lines > 0:
            line = self.process.stdout.readline()
            if not line:
                raise Failure(f"the program ends: {self.output} {self.said_of_errors()}")
            self.output += line
            lines -= re.match(r"(caught|handled) ", line) is not None

    def end(self):
        output, _ = self.process.communicate(timeout=PATIENCE_S)
        code = self.process.returncode
        return shown(128 - code if code < 0 else code, self.output + output, self.said_of_errors())


def attached(sojourn, command, mode, plain):
    database = sojourn.path("attached.db")
    talk = Talk(sojourn, command)
    try:
        talk.ask(1)
        talk.hear(1)
        recorder = start_attach(sojourn, talk.process.pid, database, ["--block-ms", "10000", *mode])
        talk.ask(1)
        talk.hear(1)
        talk.ask(LINES_WHILE_LEFT)
        recorder.send_signal(signal.SIGINT)
        talk.hear(LINES_WHILE_LEFT)
        _, errors = recorder.communicate(timeout=PATIENCE_S)
        check(recorder.returncode == 0, f"attached to {command} {mode}: {errors}")
        talk.ask(1)
        talk.hear(1)
        ended = talk.end()
    finally:
        talk.process.kill()
    check(ended == plain, f"attached to {command} {mode}: unhooked {plain}, hooked {ended}")
    os.remove(database)


# The number of lines of input that each way gives a program.
LINES = {launched: 2, attached: 3 + LINES_WHILE_LEFT}


def modes_of(name):
    return MODES + LAUNCHED_MODES if name == "mono" and IS_LONG else MODES


def judge(sojourn, name, modes):
    needed, build, commands = (LANGUAGES | ENDED)[name]
    ways = [launched] if name in ENDED else [launched, attached]
    need(needed)
    if build is not None:
        made = subprocess.run(build, cwd=sojourn.programs, capture_output=True, text=True, check=False)
        check(made.returncode == 0, f"{name} is not built: {made.stdout}{made.stderr}")
    failures = []
    for command in commands:
        plain = {way: said_by(sojourn, command, LINES[way]) for way in ways}
        for _ in range(REPEATS):
            for mode in modes:
                for way in ways if mode not in LAUNCHED_MODES else [launched]:
                    try:
                        way(sojourn, command, mode, plain[way])
                    except Failure as failure:
                        failures.append(f"{failure}"[:1200])
    print(f"{name}: {len(commands) * len(modes) * REPEATS * len(ways)} runs, {len(failures)} differ", flush=True)
    return failures


def test(sojourn, arguments):
    resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    sojourn.programs = os.path.abspath(arguments[0])
    os.makedirs(sojourn.programs, exist_ok=True)
    names = arguments[1:2] or ([*LANGUAGES, *ENDED] if IS_LONG else SHORT)
    chosen = [word.split() for word in arguments[2:]]
    failures = [failure for name in names for failure in judge(sojourn, name, chosen or modes_of(name))]
    check(not failures, "\n".join(failures))


if __name__ == "__main__":
    main(test)
