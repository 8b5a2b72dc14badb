#!/usr/bin/env python3
"""Runs every example of README, of the help, of the manual pages of `sojourn` and of the console blocks in docs/.
None is wrong usage, and those that need only a recording succeed.

examples.py BUILD_FOLDER SOURCE_FOLDER APP
"""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system",
                                "support"))
from sojourn_testing import check, main, wait_for

# These do not run here: other tests run them, or they start a program that is not ours.
ELSEWHERE = {
    "./check": "the suite itself",
    "./quickstart": "installs packages",
    "ssh ": "needs another machine",
    "systemctl ": "the system's own",
    "cmake --install": "system.installed",
    "apt install ./sojourn": "system.package_life",
    "gpg ": "the maintainer's own",
    "litestream ": "system.continuous_copy_store",
    "sojournd ": "system.fleet",
    "sojourn-device": "system.fleet, as a service",
    "SOJOURN_DIRECT=": "system.direct",
    "sojourn device ": "system.fleet_control, with devices",
}
# These need only a program or a recording. Others may miss a server or a device.
NEED_NOTHING_ELSE = (r"sojourn (--version|version|record|attach|bench|report|tree|replay|flame|export|"
                     r"sessions|completion|functions|verify|ps|policy check|policy show)\b")
# These end with another code than 0 here, because of the names in them: the reason, and the code.
OTHERWISE = {
    r"doctor": ({0, 1}, "what it finds depends on the machine"),
    r"sojourn mark|trigger": ({0, 1, 3}, "names a session, or a trigger, of another machine"),
    r"(diff|check) .*(device:|tag:)": ({1, 3}, "there are no such devices and tags"),
    r"--session [37]\b|export 7": ({3}, "the database has fewer sessions"),
    r"--around 274877907013": ({0, 3}, "the call may not be there"),
    r"check --baseline baseline.db": ({5}, "two runs a side are too few for a verdict"),
    r"127.0.0.1:8123": ({1}, "there is no such server"),
    r"perl -e '...'": ({255}, "three dots are an error in perl"),
    r"zombies show 1": ({3}, "the program makes no mistakes"),
    r"symbols add": ({0, 1, 3}, "there are no debug files"),
    r"--from [12].*s": ({3}, "the recording is shorter"),
    r"attach .* nginx": ({3}, "no nginx runs here"),
    r"--callers 'Perl_": ({3}, "the recording is not perl's"),
    r"detach": ({0, 3}, "an earlier example has left it already"),
    r"/var/tmp/app": ({3}, "no app has kept recordings there"),
    r"sojourn flush --discard": ({3}, "the spool has no such session"),
    r"sojourn flush": ({0, 1}, "what an earlier example had for a collector is kept"),
    r"sojourn (backup|restore) ": ({1, 3}, "there is no folder /backup"),
    r"collector:7654": ({0, 1, 125}, "there is no collector"),
}


def in_help(sojourn):
    listed = sojourn.run(["help"], capture_output=True, text=True).stdout
    for name in re.findall(r"^  ([a-z]+)  ", listed, re.MULTILINE):
        if name == "help":
            continue
        shown = sojourn.run([name, "--help"], capture_output=True, text=True).stdout
        check(re.search(r"^Examples?:", shown, re.MULTILINE), f"{name} --help has no examples")
        yield from (line[2:] for line in re.split(r"^Examples?:", shown, flags=re.MULTILINE)[1]
                    .splitlines() if line.startswith("  "))


def in_manuals(source):
    for page in glob.glob(os.path.join(source, "*", "man", "*.[178]")):
        with open(page, encoding="utf-8") as file:
            text = file.read()
        yield from re.findall(r"^\.Dl \$ (.*)$", text, re.MULTILINE)
        for block in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", text, re.MULTILINE | re.DOTALL):
            yield from (line for line in block.splitlines() if re.match(r"\$ |soj|source", line))


def in_readme(source):
    with open(os.path.join(source, "README.md"), encoding="utf-8") as file:
        text = file.read()
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        yield from re.sub(r"\n {6,}", " ", block).splitlines()
    yield from re.findall(r"^\$ (sojourn .*)$", text, re.MULTILINE)


def in_docs(source):
    """Returns the commands of console blocks. docs.* run the others."""
    for page in glob.glob(os.path.join(source, "docs", "*.md")):
        with open(page, encoding="utf-8") as file:
            for block in re.findall(r"^```console\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL):
                yield from re.findall(r"^[$#] (.*)$", block, re.MULTILINE)


def gather(sojourn, source):
    found = {}
    for line in [*in_help(sojourn), *in_manuals(source), *in_readme(source), *in_docs(source)]:
        line = re.sub(r"\s{2,}#.*$", "", line.replace("\\e", "\\")).strip()
        line = line.removeprefix("$ ").removesuffix(" ...")
        if line:
            found[line] = True
    return list(found)


class World:
    """A folder with the files of the examples, and running programs."""

    def __init__(self, sojourn, app):
        self.sojourn = sojourn
        self.folder = sojourn.path("world")
        os.mkdir(self.folder)
        self.running = []
        self.environment = dict(
            sojourn.environment, HOME=self.folder, SOJOURN_DATABASE="usual.db", XDG_RUNTIME_DIR=sojourn.path("run"),
            PATH=f"{os.path.dirname(sojourn.program)}:{os.environ['PATH']}")
        os.mkdir(sojourn.path("run"))
        for name in (".zfunc", ".config/fish/completions", "build", "old", "new"):
            os.makedirs(os.path.join(self.folder, name))
        for name in ("app", "old/app", "new/app", "input.txt"):
            shutil.copy(app, os.path.join(self.folder, name))
        shutil.copy(app, os.path.join(self.folder, "build", "app.debug"))
        for name in ("run.db", "lab.db", "new.db", "baseline.db", "app.db", "usual.db"):
            for label in ("before", "after"):
                self.must("record", "-q", "--name", label, "-o", name, "--", "./app")
        with open(os.path.join(self.folder, "nightly.json"), "w", encoding="utf-8") as file:
            file.write('{"policy": 1}')
        with open(os.path.join(self.folder, "app.map"), "w", encoding="utf-8") as file:
            subprocess.run(["nm", "-S", app], stdout=file, check=True)

    def must(self, *words):
        done = subprocess.run([self.sojourn.program, *words], cwd=self.folder, text=True,
                              env=self.environment, capture_output=True)
        check(done.returncode == 0, f"{words}: {done}")

    def start(self, *words):
        """Starts a program that runs until the end of the test, and waits until it says that it is ready."""
        child = subprocess.Popen(words, cwd=self.folder, env=self.environment, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 start_new_session=True)
        self.running.append(child)
        check(child.stdout.readline() != "", f"{words} says nothing")
        return child.pid

    def stop(self):
        for child in self.running:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            child.stdout.close()


def run_ui(world, line):
    with subprocess.Popen(["bash", "-c", f"exec {line} --no-open" if "--no-open" not in line
                           else f"exec {line}"], cwd=world.folder, env=world.environment,
                          stdout=subprocess.PIPE, text=True) as shown:
        first = shown.stdout.readline()
        shown.terminate()
    check("shows" in first and shown.returncode == 0, f"{line}: {first} {shown.returncode}")


def run_line(world, line, app):
    """Runs one example, with existing things in place of those that it names. Returns what is wrong."""
    text = line.replace("--for 30s", "--for 100ms").replace("--wait 60", "--wait 1")
    if "sojourn attach" in text and "--for" not in text:  # the command would run until Ctrl-C
        text = text.replace("sojourn attach", "sojourn attach --for 100ms")
    text = re.sub(r"--port \d+", "--port 0", text)
    text = text.replace("tcp://collector:7654", "tcp://127.0.0.1:1 --wait 0")
    text = text.replace("collector:7655", "127.0.0.1:1").replace("-n 10", "-n 2")
    text = text.replace("| jq .totals", "| python3 -m json.tool")
    text = text + " --wait 0" if text == "sojourn flush" else text
    if re.search(r"\b4711\b|pidof app", text):
        recorded = " policy " in text
        pid = world.start(*([world.sojourn.program, "record", "-q", "-o", "live.db", "--"]
                            if recorded else []), app, "serve")
        if recorded:
            pid = wait_for("the recorded program", lambda: subprocess.run(
                ["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split() or None)[0]
        text = re.sub(r"\b4711\b|\$\(pidof app\)", str(pid), text)
        if " detach " in text:
            world.must("attach", "-q", "--for", "100ms", "-o", "left.db", str(pid))
    begun = time.monotonic()
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {text}"], cwd=world.folder, text=True,
                          env=world.environment, capture_output=True, stdin=subprocess.DEVNULL)
    if os.environ.get("SJ_VERBOSE"):
        print(f"{time.monotonic() - begun:6.2f} s  {line}", flush=True)
    usual = {0} if re.match(NEED_NOTHING_ELSE, line) else {0, 1, 3}
    codes = next((codes for pattern, (codes, _) in OTHERWISE.items() if re.search(pattern, line)),
                 usual)
    if done.returncode in codes and "Usage:" not in done.stderr:
        return ""
    return (f"{line}\n({text})\nended with {done.returncode}:\n{done.stdout[-500:]}"
            f"{done.stderr[-800:]}\n")


def test(sojourn, arguments):
    source, app = arguments
    lines = gather(sojourn, source)
    check(len(lines) > 80, f"{len(lines)} examples only")
    world = World(sojourn, app)
    passed_over = set()
    wrong = ""
    try:
        for line in lines:
            elsewhere = next((start for start in ELSEWHERE if line.startswith(start)), None)
            if elsewhere is not None:
                passed_over.add(elsewhere)
            elif re.match(r"sojourn ui\b(?!.*--cluster)", line):
                run_ui(world, line)
            else:
                wrong += run_line(world, line, app)
    finally:
        world.stop()
    check(wrong == "", wrong)
    check(passed_over == set(ELSEWHERE), f"no example is {set(ELSEWHERE) - passed_over}")


if __name__ == "__main__":
    main(test)
