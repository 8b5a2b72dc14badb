#!/usr/bin/env python3
"""Common programs behave the same while their freed memory and objects are watched, in every mode, and nothing is
reported: python3, redis, the sqlite3 shell, git, nginx, gdb, the tools of GNUstep, Mono, java and a terminal under
Xvfb. SJ_LONG=1 gives them more work, samples blocks of all of them (by default of python3 and redis), and runs more
commands of git and tools of GNUstep.

zombie_judges.py BUILD_FOLDER SAMPLES [JUDGE...]
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
for place in ("support", "judges", "record"):
    sys.path.insert(0, os.path.join(FOLDER, "..", place))
import judge_nginx
from judge_git import history
from judge_sqlite import SCRIPT
from judging import IS_LONG, mask, need, without_losses
from objc_trees import gnustep_tools
from sojourn_testing import PATIENCE_S, SAMPLES, check, main, wait_for

HEAP = {
    "sampled": {"heap": {"one_in": 5000, "blocks": 512}},
    "every": {"heap": {"one_in": 1, "blocks": 16000, "stack_bytes": 1024}},
}
WHOLE = HEAP if IS_LONG else {"every": HEAP["every"]}
OBJECTS = {
    "objects": {"objc": {"system": True, "stacks": 0}},
    "history": {"objc": {"system": True, "history": True, "queue": {"objects": 5000}}},
    "both": {"objc": {"system": True}, "heap": {"one_in": 50, "blocks": 8000}},
}
GDB = ["set debuginfod enabled off", "set breakpoint pending off", "set print thread-events off",
       "info functions throw", "print nosuch", "break main", "run 3", "backtrace", "continue", "print 6 * 7"]


def watching(sojourn, mode, zombies):
    policy = sojourn.path(f"{mode}.json")
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "mode": "profile", "functions": {"exclude": ["*"]}, "unmatched": "allow",
                   "zombies": zombies}, file)
    database = sojourn.path("judge.db")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(database)
    return [sojourn.program, "record", "--quiet", "-o", database, "--policy", policy, "--"], database


def check_nothing(sojourn, database, name, mode):
    """Checks that there is no report. Returns the number of processes that were watched, among those with a summary."""
    for table in ("zombies", "zombie_reports"):
        rows = sojourn.sql(database, f"SELECT * FROM {table}")
        check(rows == [], f"{name}, {mode}: {rows}")
    accounts = sojourn.sql(database, "SELECT not_watched, guarded, kept FROM zombie_accounts")
    check(accounts, f"{name}, {mode}: no account")
    return accounts


class Judge:
    """Runs a program without Sojourn, then watched, in each of some modes."""

    def __init__(self, sojourn, name, modes):
        self.sojourn, self.name, self.modes = sojourn, name, modes

    def run(self, command, patterns=(), least=0, **options):
        """Runs a command in each mode. In every mode except `sampled`, at least `least` objects or blocks are kept."""
        plain = self.once([], command, patterns, options)
        for mode, zombies in self.modes.items():
            wrapper, database = watching(self.sojourn, mode, zombies)
            watched = self.once(wrapper, command, patterns, options)
            check(watched == plain, f"{self.name}, {mode}: {watched}, by itself {plain}")
            self.see(database, mode, least)

    def see(self, database, mode, least=0):
        accounts = check_nothing(self.sojourn, database, self.name, mode)
        kept = sum(account["guarded"] + account["kept"] for account in accounts)
        why = {account["not_watched"] for account in accounts} - {""}
        check(mode == "sampled" or kept >= least or why, f"{self.name}, {mode}: {kept} kept, {accounts}")
        print(f"{self.name}, {mode}: the same; {len(accounts)} processes, {kept} kept {' '.join(why)}", flush=True)

    def once(self, wrapper, command, patterns, options):
        prepare = options.get("prepare")
        rest = {key: value for key, value in options.items() if key != "prepare"}
        if prepare is not None:
            prepare()
        done = subprocess.run([*wrapper, *command], capture_output=True, check=False, timeout=4 * PATIENCE_S,
                              env=self.sojourn.environment, **rest)
        output, errors = (mask(text.decode("utf-8", "replace"), patterns) for text in (done.stdout, done.stderr))
        return done.returncode, output, without_losses(errors)


def judge_python(sojourn, _):
    need("/usr/bin/python3")
    rounds = 4000 if IS_LONG else 150
    Judge(sojourn, "python3", HEAP).run(["/usr/bin/python3", os.path.join(SAMPLES, "zombies/judged.py"), str(rounds)], least=100)


def judge_sqlite(sojourn, _):
    need("sqlite3")
    database = sojourn.path("sqlite.db")

    def prepare():
        for end in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(database + end)

    script = SCRIPT.format(rows=20000 if IS_LONG else 400)
    Judge(sojourn, "sqlite3", WHOLE).run(["sqlite3", database], least=100, prepare=prepare, input=script.encode())


def judge_git(sojourn, _):
    need("git")
    origin, work = sojourn.path("origin.git"), sojourn.path("work")
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", origin], check=True)
    stream = "".join(history(300 if IS_LONG else 20))
    subprocess.run(["git", "-C", origin, "fast-import", "--quiet"], input=stream, text=True, check=True)

    def prepare():
        shutil.rmtree(work, ignore_errors=True)
        subprocess.run(["git", "clone", "-q", origin, work], check=True)

    commands = [["gc", "-q"], ["show", "nothing-of-this-name"]]
    if IS_LONG:
        commands += [["log", "--stat", "-p", "-n", "20"], ["fsck", "--full", "--no-progress"]]
    for words in commands:
        Judge(sojourn, f"git {words[0]}", WHOLE).run(["git", "-C", work, *words], least=20, prepare=prepare)


def judge_gdb(sojourn, samples):
    need("gdb")
    program = os.path.join(samples, "..", "gcc-O2", "throws")
    command = ["gdb", "-nx", "-batch", *(part for word in GDB for part in ("-ex", word)), program]
    Judge(sojourn, "gdb", WHOLE).run(command, [(r"process \d+", "process N"), (r"LWP \d+", "LWP N"),
                                              (r"0x7ff[0-9a-f]+", "STACK")], least=100)


@contextlib.contextmanager
def server(sojourn, wrapper, command, answers):
    """Runs a server until the block ends. Yields its exit code after SIGTERM."""
    ended = []
    with subprocess.Popen([*wrapper, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          env=sojourn.environment) as process:
        try:
            wait_for(f"{command[0]} answers", answers)
            yield ended
            process.send_signal(signal.SIGTERM)
            ended.append(process.wait(timeout=PATIENCE_S))
        finally:
            if process.poll() is None:
                process.kill()


def ask_redis(socket, *words, text=None):
    return subprocess.run(["redis-cli", "-s", socket, *words], input=text, text=True, capture_output=True,
                          timeout=PATIENCE_S, check=False).stdout


def talk_to_redis(sojourn, wrapper):
    folder = sojourn.path("redis")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    socket = os.path.join(folder, "s")
    command = ["redis-server", "--port", "0", "--unixsocket", socket, "--dir", folder, "--appendonly", "yes",
               "--save", "3600 1"]
    with server(sojourn, wrapper, command, lambda: ask_redis(socket, "PING") == "PONG\n") as ended:
        lines = [f"SET key:{i} value-{i * 7919}\nRPUSH list:{i % 5} {i}\nHSET hash f{i} {i}\nDEL key:{i - 9}\n"
                 for i in range(20000 if IS_LONG else 400)]
        told = ask_redis(socket, text="".join(lines) + "SAVE\nBGREWRITEAOF\nDBSIZE\nLRANGE list:1 0 5\n")
        told += ask_redis(socket, "EVAL", "return redis.call('HLEN', 'hash')", "0")
    return told, ended


def judge_redis(sojourn, _):
    need("redis-server", "redis-cli")
    plain = talk_to_redis(sojourn, [])
    for mode, zombies in HEAP.items():
        wrapper, database = watching(sojourn, mode, zombies)
        watched = talk_to_redis(sojourn, wrapper)
        check(watched == plain, f"redis, {mode}: {watched}, by itself {plain}")
        Judge(sojourn, "redis", HEAP).see(database, mode)


def talk_to_nginx(sojourn, wrapper):
    port = judge_nginx.free_port()
    folder = sojourn.path("nginx")
    shutil.rmtree(folder, ignore_errors=True)
    judge_nginx.prepare(folder, port)
    command = ["nginx", "-c", os.path.join(folder, "nginx.conf"), "-p", folder]

    def answers():
        with contextlib.suppress(OSError):
            return judge_nginx.fetch(port, "/middle.txt")
        return None

    with server(sojourn, wrapper, command, answers) as ended:
        told = "".join(judge_nginx.fetch(port, path, compressed) for path in
                       ("/middle.txt", "/again/middle.txt", "/moved/middle", "/gone", "/none")
                       for compressed in (False, True) for _ in range(200 if IS_LONG else 5))
    return told, ended


def judge_server(sojourn, _):
    need("nginx")
    plain = talk_to_nginx(sojourn, [])
    for mode, zombies in WHOLE.items():
        wrapper, database = watching(sojourn, mode, zombies)
        watched = talk_to_nginx(sojourn, wrapper)
        check(watched == plain, f"nginx, {mode}: {watched}, by itself {plain}")
        Judge(sojourn, "nginx", WHOLE).see(database, mode)


def judge_gnustep(sojourn, _):
    need("plparse", "defaults", "pl", "plmerge")
    tools = gnustep_tools(sojourn)
    for command, written in tools if IS_LONG else tools[:2]:
        need(command[0])

        def prepare(written=written):
            for path in written:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)

        kept = 0 if command[0] in ("gdomap", "gdnc") else 10
        Judge(sojourn, command[0], {**OBJECTS, **(HEAP if IS_LONG else {})}).run(
            command, [(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \S+\[\d+:\d+\]", "NOW"), (r"0x[0-9a-f]+", "ADDRESS")],
            least=kept, prepare=prepare)


def judge_mono(sojourn, _):
    need("mono", "mcs")
    program = sojourn.path("Counts.exe")
    source = os.path.join(FOLDER, "..", "..", "samples", "mono", "Counts.cs")
    subprocess.run(["mcs", "-r:System.Core", source, f"-out:{program}"], check=True)
    Judge(sojourn, "mono", WHOLE).run(["mono", program], least=100)


def judge_java(sojourn, _):
    need("java", "javac")
    source = os.path.join(FOLDER, "..", "judges", "programs", "Judge.java")
    subprocess.run(["javac", "-d", sojourn.folder, source], check=True)
    command = ["java", "-Xmx128m", "-cp", sojourn.folder, "Judge", "20" if IS_LONG else "1"]
    Judge(sojourn, "java", WHOLE).run(command, least=100)


@contextlib.contextmanager
def display(sojourn):
    """Starts an X server. Yields its display."""
    with subprocess.Popen(["Xvfb", "-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            yield ":" + server.stdout.readline().strip()
        finally:
            server.terminate()


def judge_x(sojourn, _):
    """Runs an application with windows: a terminal whose program prints and ends."""
    need("Xvfb", "xterm")
    program = sojourn.path("xterm")  # Debian installs it with a group of its own, so the loader would ignore the agent
    shutil.copyfile(shutil.which("xterm"), program)
    os.chmod(program, 0o755)
    said = sojourn.path("said")
    script = f"stty size > {said}; seq 1 3000; printf '\\033[31mred\\033[0m\\n'; tty >> {said}; echo done >> {said}"

    def forget():
        with contextlib.suppress(FileNotFoundError):
            os.unlink(said)

    with display(sojourn) as name:
        sojourn.environment["DISPLAY"] = name
        judge = Judge(sojourn, "xterm", WHOLE)
        told = []
        for mode, zombies in [("plain", None), *WHOLE.items()]:
            forget()
            wrapper, database = watching(sojourn, mode, zombies) if zombies else ([], None)
            done = judge.once(wrapper, [program, "-e", "sh", "-c", script], [], {})
            with open(said, encoding="utf-8") as file:
                told.append((done, mask(file.read(), [(r"/dev/pts/\d+", "TERMINAL")])))
            check(told[-1] == told[0], f"xterm, {mode}: {told[-1]}, by itself {told[0]}")
            if zombies:
                judge.see(database, mode, 100)
        check(told[0][1].endswith("TERMINAL\ndone\n"), f"xterm: {told[0]}")
        del sojourn.environment["DISPLAY"]


JUDGES = {"python3": judge_python, "sqlite3": judge_sqlite, "git": judge_git, "redis": judge_redis,
          "nginx": judge_server, "gdb": judge_gdb, "gnustep": judge_gnustep, "mono": judge_mono, "java": judge_java,
          "x": judge_x}


def test(sojourn, arguments):
    for name in arguments[1:] or JUDGES:
        JUDGES[name](sojourn, arguments[0])


if __name__ == "__main__":
    main(test)
