#!/usr/bin/env python3
"""Compares the output of commands with golden screens: on a pseudo-terminal of 60, 100 and 200 columns, and without
a terminal. Also tests colours and the pager.

screens.py BUILD_FOLDER MIGRATIONS_FOLDER GOLDEN_RECORDING (SJ_GOLDEN=write writes the screens again)
"""
import fcntl
import glob
import json
import os
import pty
import re
import sqlite3
import struct
import subprocess
import sys
import termios
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "system",
                                "support"))
from sojourn_testing import check, main

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "screens")
FUNCTION_LINE = re.compile(r"^ +[\d.]+ % .* self +\d+ calls")
END = b"\x04end of the screen\x04"
START = 1_700_000_000_000_000_000
LONG = ("boost::asio::detail::reactive_socket_service<boost::asio::ip::tcp>::implementation::"
        "async_receive_with_a_handler(boost::asio::mutable_buffers_1 const&, int, handler<int>&)")
NAMES = ["main", "start_the_server", "run_event_loop(int, char**)", "dispatch", "handle_request",
         LONG, "std::vector<int, std::allocator<int> >::operator()(int) const",
         "(anonymous namespace)::Größe::berechnen()", "painter\x1b[31m"]


def make_database(path, migrations):
    """Makes a session whose main thread is a chain of callees down to LONG, which calls the others."""
    connection = sqlite3.connect(path)
    for step in sorted(glob.glob(os.path.join(migrations, "*.sql"))):
        with open(step, encoding="utf-8") as file:
            connection.executescript(file.read())
    newest = len(glob.glob(os.path.join(migrations, "*.sql")))
    connection.executescript(f"PRAGMA application_id=0x534a4c42; PRAGMA user_version={newest}")
    insert(connection, "devices", device_id=1, uuid=b"d" * 16, name="desk",
           first_seen_realtime_ns=START, last_seen_realtime_ns=START)
    insert(connection, "sessions", session_id=1, uuid=b"s" * 16, device_id=1, state="completed",
           command="./server --port 8080 --threads 4 --verbose --configuration /etc/server.conf",
           started_realtime_ns=START, ended_realtime_ns=START + 2_500_000_000, started_ticks=0,
           tick_ns_numerator=1, tick_ns_denominator=1, lost_calls=3)
    insert(connection, "threads", thread_id=1, session_id=1, number=1, name="server", is_main=1)
    for number, steps in ((1, [[1, 2_400_000_000, 1_000_000_000, 250_000_000, 5_000_000]]),
                          (2, [[1, 1_900_000_000, 1_400_000_000, 0, 0]])):
        sums = {"cpu_ns": 250_000_000, "ready_ns": 5_000_000, "watched_ns": 1_000_000_000 if number == 1 else 2_400_000_000}
        insert(connection, "reports", session_id=1, number=number, at_ns=1_500_000_000 + number * 500_000_000,
               process_number=1, monitor="threads", kind="times", payload=json.dumps({**sums, "steps": steps}))
    insert(connection, "call_costs", session_id=1, call_id=1, function_id=7, cpu_ns=400_000_000, cpu_self_ns=400_000_000,
           is_nested=0)
    insert(connection, "modules", module_id=1, build_id=b"b", functions_digest=b"f",
           path="/usr/bin/server", first_function_id=1, function_count=40)
    for number in range(40):
        add_function(connection, number)
    connection.commit()
    connection.close()


def insert(connection, table, **row):
    marks = ",".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({','.join(row)}) VALUES ({marks})",
                       list(row.values()))


def add_function(connection, number):
    name = NAMES[number] if number < len(NAMES) else f"helper_{number}"
    leaves = [500_000_000 >> leaf for leaf in range(34)]
    total = leaves[number - 6] if number > 5 else 2_400_000_000 - 1000 * number
    own = total if number > 5 else (total - sum(leaves) if number == 5 else 1000)
    calls = number * number * 1000 + 1
    figures = {"calls": calls, "total_ns": total, "self_ns": own, "min_ns": total // calls // 2,
               "max_ns": total // calls * 2, "unwound": 0, "untrusted": number % 2}
    insert(connection, "functions", function_id=number + 1, module_id=1, offset=number * 16,
           size_bytes=16, name=name, symbol=name, symbol_key=number)
    insert(connection, "function_stats", session_id=1, function_id=number + 1, **figures)
    parent = None if number == 0 else min(number, 6)
    insert(connection, "call_paths", path_id=(1 << 32) + number + 1, session_id=1,
           parent_path_id=None if parent is None else (1 << 32) + parent,
           function_id=number + 1, depth=min(number, 6), recursive=0, state=b"", **figures)


def on_terminal(sojourn, arguments, columns, rows=20, **environment):
    """Returns what a terminal receives, and the exit code. This process keeps the terminal open and writes an end
    mark after the program, so that everything up to the mark is read."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    program = subprocess.Popen(
        [sojourn.program, *arguments], stdin=terminal, stdout=terminal, stderr=terminal,
        start_new_session=True, env={**sojourn.environment, "TERM": "xterm", "TZ": "UTC",
                                     **environment})

    def end():
        program.wait()
        os.write(terminal, END)

    ender = threading.Thread(target=end)
    ender.start()
    output = b""
    while not output.endswith(END):
        output += os.read(controller, 65536)
    ender.join()
    os.close(terminal)
    os.close(controller)
    return output[:-len(END)].decode().replace("\r\n", "\n"), program.returncode


def golden(name, screen):
    path = os.path.join(GOLDEN, name + ".txt")
    if os.environ.get("SJ_GOLDEN") == "write":
        with open(path, "w", encoding="utf-8") as file:
            file.write(screen)
    with open(path, encoding="utf-8") as file:
        check(file.read() == screen, f"{name} is now:\n{screen}")


def screens_are_golden(sojourn, database):
    for columns in (60, 100, 200):
        for command in ("report", "tree"):
            screen, code = on_terminal(sojourn, [command, database], columns, SOJOURN_PAGER="",
                                       NO_COLOR="1")
            check(code == 0, f"{command}: {code}: {screen}")
            golden(f"{command}-{columns}", screen)
            check(all(len(line) <= columns for line in screen.splitlines()),
                  f"{command} is wider than {columns} columns:\n{screen}")
            if command == "report":
                check(len(screen.splitlines()) < 20, f"more than a screen:\n{screen}")
                check(columns == 60 or "async_receive_with_a_handler" in screen, "no method name")
    for command in ("report", "tree"):
        done = sojourn.run([command, database], capture_output=True, text=True,
                           env={**sojourn.environment, "TZ": "UTC"})
        check(done.returncode == 0, f"{command}: {done.stderr}")
        golden(f"{command}-piped", done.stdout)
    for name, command in (("report-waiting", ["report", "--waiting", "--limit", "8"]),
                          ("tree-waiting", ["tree", "--waiting", "--min-percent", "5"]),
                          ("tree-callers", ["tree", "--callers", "helper_9"])):
        everywhere(sojourn, name, [*command, database])
    everywhere(sojourn, "report-self", ["report", "--sort", "self", "--limit", "3", "--columns",
                                        # in the requested order
                                        "share,self,calls,module,function", database], fits=False)


def everywhere(sojourn, name, command, fits=True, codes=(0,)):
    """Compares a command with its golden screens in every width, and without a terminal."""
    for columns in (60, 100, 200):
        screen, code = on_terminal(sojourn, command, columns, SOJOURN_PAGER="", NO_COLOR="1")
        check(code in codes, f"{name}: {code}: {screen}")
        golden(f"{name}-{columns}", screen)
        check(not fits or all(len(line) <= columns for line in screen.splitlines()), f"wider than {columns}:\n{screen}")
    done = sojourn.run(command, capture_output=True, text=True, env={**sojourn.environment, "TZ": "UTC"})
    check(done.returncode in codes, f"{name}: {done}")
    golden(f"{name}-piped", done.stdout)


def replay_is_golden(sojourn, recording):
    """Prints the calls of a stored recording, at version 1 of the schema."""
    database = sojourn.path("replay.db")
    connection = sqlite3.connect(database)
    with open(recording, encoding="utf-8") as file:
        connection.executescript(file.read())
    connection.executescript("PRAGMA application_id=0x534a4c42; PRAGMA user_version=1")
    connection.close()
    for columns in (60, 100, 200):
        screen, code = on_terminal(sojourn, ["replay", database], columns, NO_COLOR="1")
        check(code == 0, f"replay: {code}: {screen}")
        golden(f"replay-{columns}", screen)
        lines = screen.splitlines()
        check(len(lines) < 20 and all(len(line) <= columns for line in lines),
              f"replay does not fit {columns} columns and 20 lines:\n{screen}")
    done = sojourn.run(["replay", "--count", "40", database], capture_output=True, text=True)
    check(done.returncode == 0, f"replay: {done.stderr}")
    golden("replay-piped", done.stdout)


def make_comparison(path, migrations):
    """Makes eight sessions called before and eight called after. In the latter helper_9 takes three times as long."""
    make_database(path, migrations)
    connection = sqlite3.connect(path)
    for number in range(2, 18):
        name = "before" if number < 10 else "after"
        insert(connection, "sessions", session_id=number, uuid=bytes([number]) * 16, device_id=1, state="completed",
               command="./server --port 8080", name=name, started_realtime_ns=START + number * 60_000_000_000,
               ended_realtime_ns=START + number * 60_000_000_000 + 2_500_000_000, started_ticks=0,
               tick_ns_numerator=1, tick_ns_denominator=1, stored_calls=123456 * number, stored_bytes=1000 * number)
        # The path of helper_9, and the paths above it, take longer in sessions called after.
        connection.execute(
            "INSERT INTO call_paths (path_id, session_id, parent_path_id, function_id, depth, calls, total_ns, self_ns, min_ns, "
            "max_ns, unwound, untrusted, recursive, state) SELECT path_id + (?1 << 32), ?1, parent_path_id + (?1 << 32), "
            "function_id, depth, calls, total_ns + ?1 * 1000 + iif(?1 > 9 AND function_id <= 10, 150000000, 0), "
            "self_ns + ?1 * 1000 + iif(?1 > 9 AND function_id = 10, 150000000, 0), min_ns, max_ns, unwound, untrusted, "
            "recursive, state FROM call_paths WHERE session_id = 1", (number,))
    add_finding(connection)
    connection.commit()
    connection.close()


def add_finding(connection):
    """Adds a use of freed memory, with its stacks."""
    insert(connection, "reports", report_id=100, session_id=2, number=7, at_ns=900_000_000, process_number=1,
           monitor="zombies", kind="use_after_free", payload="{}")
    insert(connection, "zombies", zombie_id=1, fingerprint="f", kind="use_after_free", used_in=LONG, freed_in="handle_request",
           allocated_in="dispatch", reports=1, first_seen_realtime_ns=START, last_seen_realtime_ns=START, state="open")
    insert(connection, "zombie_reports", report_id=100, zombie_id=1, session_id=2, at_ns=900_000_000, thread_name="server",
           tid=4711, access="read", size=64, offset=8)
    for stack, functions in (("use", (LONG, "handle_request", "main")), ("free", ("handle_request", "main")),
                             ("allocation", ("dispatch", "main"))):
        for depth, function in enumerate(functions):
            insert(connection, "zombie_frames", report_id=100, stack=stack, depth=depth, tid=4711, function=function,
                   module="/usr/bin/server", offset=256 * depth, is_own=1)


def tables_are_golden(sojourn, migrations):
    """Tests sessions, devices, findings, and comparisons: of one session a side, which has no verdict, and of
    eight."""
    database = sojourn.path("compare.db")
    make_comparison(database, migrations)
    for name, command in (("sessions", ["sessions"]), ("diff-two", ["diff", "2", "10"]),
                          ("diff", ["diff", "name:before", "name:after"]), ("devices", ["devices"]),
                          ("diff-tree", ["diff", "--tree", "name:before", "name:after"]),
                          ("zombies", ["zombies"])):
        everywhere(sojourn, name, [*command, database])
    everywhere(sojourn, "zombie", ["zombies", "show", "1", database], fits=False)
    everywhere(sojourn, "check", ["check", "--baseline", "name:before", "name:after", database], codes=(4,))
    everywhere(sojourn, "sql", ["sql", "SELECT session_id, state, command FROM sessions", database], fits=False)


def replace_figures(screen):
    """Returns the output of a recording without what differs from run to run: numbers become 0, and functions'
    names are replaced."""
    # only a loaded machine prints this
    screen = re.sub(r"sojourn: waiting for .*\n( {9}\S.*\n)*(\.\.\. .*)?", "", screen)
    screen = re.sub(r"[0-9a-f]{32}", "0" * 32, re.sub(r"/\S*/", "", screen))
    screen = re.sub(r"calls  [0-9]+ (each|to [0-9]+)", "calls  0 each", screen)
    screen = re.sub(r"(calls  )[^\d\s].*", r"\1function", screen)
    screen = re.sub(r"(about|more than) +[0-9.]+ times", "about 0 times", screen)
    screen = re.sub(r"( of a plain run), between [0-9.]+ and [0-9.]+", r"\1", screen)
    screen = re.sub(r"\b(ns|us|ms)\b", "s", screen)
    return re.sub(r" *[0-9]+(\.[0-9]+)?", " 0", screen)


INDENT = " " * 13  # indents a line that continues the previous one


def unbroken(lines, columns):
    """Joins the lines that were broken because their next word did not fit."""
    whole = []
    for before, line in zip([""] + lines, lines):
        if not line.startswith(INDENT) or line[len(INDENT):len(INDENT) + 1] == " " or FUNCTION_LINE.match(line):
            whole.append(line)
            continue
        word = line[len(INDENT):].split(" ", 1)[0]
        check(len(before) + 1 + len(word) > columns, f"broken too early at {columns} columns: {before!r}, {line!r}")
        whole[-1] += " " + line[len(INDENT):]
    return whole


def recordings_are_golden(sojourn):
    """Tests the end of a recording and a bench. On a terminal, lines are broken to fit, the program's unfinished
    line stays, and there are at most 12 lines before breaking."""
    os.chdir(sojourn.path("."))
    database = "recorded.db"
    crash = ["--", "/usr/bin/perl", "-e", "print 'unended'; $| = 1; kill 11, $$"]
    fine = ["--", "/usr/bin/perl", "-e", "$x .= $_ for 1..9999"]
    for name, command in (("record", ["record", *fine]), ("record-crash", ["record", *crash]),
                          ("bench", ["bench", "-n", "2", "--name", "before", *fine])):
        for columns in (60, 100, 200):
            screen, _ = on_terminal(sojourn, [command[0], "-o", database, *command[1:]], columns, NO_COLOR="1")
            # The terminal shows only the part of a line behind the last carriage return.
            lines = [re.sub(r"\x1b\[K", "", line.rsplit("\r", 1)[-1]) for line in screen.split("\n")]
            check(all(len(line) <= columns for line in lines), f"wider than {columns}:\n{screen}")
            check("crash" not in name or screen.startswith("unended" + " " * columns + "\r\x1b[K"), f"the program's line: {screen!r}")
            golden(f"{name}-{columns}", replace_figures("\n".join(unbroken(lines, columns))))
        done = sojourn.run([command[0], "-o", database, *command[1:]], capture_output=True, text=True)
        check(sum("waiting for" not in line for line in done.stderr.splitlines()) <= 12, f"more than 12 lines:\n{done.stderr}")
        check("\x1b" not in done.stderr and "\r" not in done.stderr, f"sequences without a terminal: {done.stderr!r}")
        golden(f"{name}-piped", replace_figures(done.stderr if name != "bench" else done.stdout))


def all_rows_are_shown_on_request(sojourn, database):
    """Commands that show the most costly rows show all rows on request."""
    for options in (["--all"], ["--limit", "40"]):
        screen, _ = on_terminal(sojourn, ["report", *options, database], 100, SOJOURN_PAGER="")
        check("helper_39" in screen and "more functions" not in screen, f"not all:\n{screen}")
    unfolded, _ = on_terminal(sojourn, ["tree", "--unfold", database], 100, SOJOURN_PAGER="")
    check("dispatch" in unfolded and "levels" not in unfolded, f"folded:\n{unfolded}")


def colours_are_for_terminals(sojourn, database):
    for command in ("report", "tree"):
        screen, _ = on_terminal(sojourn, [command, database], 100, SOJOURN_PAGER="")
        check("\x1b[1;33m" in screen, f"{command}: no colours")
        check("painter\x1b" not in screen, f"{command}: a name paints the terminal")
        for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            screen, _ = on_terminal(sojourn, [command, database], 100, SOJOURN_PAGER="", **plain)
            check("\x1b" not in screen, f"{command}: colours with {plain}")


def options_and_variables_choose_the_output(sojourn, database):
    """--color and --no-pager, COLUMNS in pipes, and only ASCII in the locale C."""
    for command in ("report", "tree"):
        screen, _ = on_terminal(sojourn, [command, "--color", "never", database], 100, SOJOURN_PAGER="")
        check("\x1b" not in screen, f"{command}: colours")
        for option in (["--color=always"], ["--color", "always"]):
            done = sojourn.run([command, database, *option], capture_output=True, text=True)
            check("\x1b[1;33m" in done.stdout, f"{command}: no colours in a pipe")
        screen, _ = on_terminal(sojourn, [command, "--all", "--no-pager", database], 100, SOJOURN_PAGER="sed s/^/paged:/")
        check("helper_39" in screen and "paged:" not in screen, f"{command}: a pager\n{screen}")
        variables = {**sojourn.environment, "COLUMNS": "60"}
        done = sojourn.run([command, database], capture_output=True, text=True, env=variables)
        check(done.stdout and all(len(line) <= 60 for line in done.stdout.splitlines()), f"wider:\n{done.stdout}")
        screen, _ = on_terminal(sojourn, [command, database], 60, SOJOURN_PAGER="", NO_COLOR="1", LC_ALL="C")
        check(screen.isascii() and "*" in screen, f"{command}: {screen}")
        screen, _ = on_terminal(sojourn, [command, database], 60, SOJOURN_PAGER="", NO_COLOR="1", LANG="C.UTF-8")
        check("\u2026" in screen, f"{command}: {screen}")
    done = sojourn.run(["report", "--color", "blue", database], capture_output=True, text=True)
    check(done.returncode == 2 and "auto, always or never" in done.stderr, f"{done}")


def help_fits_narrow_terminals(sojourn):
    listed = sojourn.run(["help"], capture_output=True, text=True).stdout
    commands = re.findall(r"^  ([a-z]+)  ", listed, re.MULTILINE)
    check(len(commands) > 20, listed)
    for command in commands:
        wide = sojourn.run([command, "--help-all"], capture_output=True, text=True).stdout
        screen, code = on_terminal(sojourn, [command, "--help-all"], 60)
        lines = [line for line in screen.splitlines() if not re.match(" +sojourn ", line)]  # commands stay whole
        check(code == 0 and all(len(line) <= 60 for line in lines), f"{command}: wider than 60\n{screen}")
        check(screen.split() == wide.split(), f"{command}: words are lost\n{screen}")


def the_pager_is_chosen_as_by_git(sojourn, database):
    for variables in ({"SOJOURN_PAGER": "sed s/^/paged:/"},
                      {"PAGER": "sed s/^/paged:/"},
                      {"SOJOURN_PAGER": "sed s/^/paged:/", "PAGER": "false"}):
        screen, code = on_terminal(sojourn, ["report", "--all", database], 100, **variables)
        check(code == 0 and all(line.startswith("paged:") for line in screen.splitlines()),
              f"{variables}: {code}\n{screen}")
        check("helper_39" in screen, "the pager did not get all")
    for command in (["diff", "--all", "1", "1"], ["sessions"], ["devices"], ["tree"], ["sql", "SELECT name FROM functions"],
                    ["sql", "--schema"], ["functions", "/usr/bin/env"], ["stalls"], ["ps", "--all"]):
        where = [] if command[0] in ("functions", "ps") or "--schema" in command else [database]
        screen, code = on_terminal(sojourn, [*command, *where], 100, SOJOURN_PAGER="sed s/^/paged:/")
        check(code == 0 and screen and all(line.startswith("paged:") for line in screen.splitlines()),
              f"{command}: {code}\n{screen}")
    for none in ("", "cat", "sojourn-no-such-pager --x"):
        screen, code = on_terminal(sojourn, ["tree", "--all", database], 100, SOJOURN_PAGER=none)
        check(code == 0 and "helper_39" in screen, f"pager '{none}': {code}\n{screen}")
    screen, code = on_terminal(sojourn, ["report", database], 100, SOJOURN_PAGER="sed s/^/paged:/")
    check("paged:" not in screen, "a screenful goes through the pager")
    _, code = on_terminal(sojourn, ["report", "--all", database], 100, SOJOURN_PAGER="true")
    check(code in (0, -13), f"a pager that reads nothing: {code}")


def mistakes_are_named(sojourn, database):
    for options, words in ((["--columns", "share,nothing"], "not 'nothing'"),
                           (["--sort", "bar"], "not 'bar'"),
                           (["--all", "--limit", "3"], "exclude each other")):
        done = sojourn.run(["report", *options, database], capture_output=True, text=True)
        check(done.returncode == 2 and words in done.stderr, f"{options}: {done}")


def ui_opens_the_newest(sojourn, migrations):
    folder = sojourn.path("recordings")
    os.mkdir(folder)
    options = {"cwd": folder, "env": {**sojourn.environment, "SOJOURN_DATABASE": ""}}
    none = sojourn.run(["ui", "--no-open"], capture_output=True, text=True, **options)
    check(none.returncode == 3 and "name a FILE" in none.stderr, f"no recording: {none}")
    for age, name in enumerate(("sojourn-b.db", "sojourn-a.db", "sojourn-c.db")):
        make_database(os.path.join(folder, name), migrations)
        os.utime(os.path.join(folder, name), (START // 10**9 + age % 2, START // 10**9 + age % 2))
    with subprocess.Popen([sojourn.program, "ui", "--no-open"], stdout=subprocess.PIPE, text=True,
                          **options) as shown:
        line = shown.stdout.readline()
        shown.terminate()
    check("shows sojourn-a.db;" in line and shown.returncode == 0, f"ui: {line}")


def test(sojourn, arguments):
    database = sojourn.path("screens.db")
    make_database(database, arguments[0])
    for variable in ("COLUMNS", "LINES", "LC_ALL", "LC_CTYPE", "LANG", "NO_COLOR", "SOJOURN_PAGER", "PAGER", "LESS"):
        sojourn.environment.pop(variable, None)
    screens_are_golden(sojourn, database)
    replay_is_golden(sojourn, arguments[1])
    tables_are_golden(sojourn, arguments[0])
    recordings_are_golden(sojourn)
    all_rows_are_shown_on_request(sojourn, database)
    colours_are_for_terminals(sojourn, database)
    options_and_variables_choose_the_output(sojourn, database)
    help_fits_narrow_terminals(sojourn)
    the_pager_is_chosen_as_by_git(sojourn, database)
    mistakes_are_named(sojourn, database)
    ui_opens_the_newest(sojourn, arguments[0])


if __name__ == "__main__":
    main(test, checks_sums=False)  # the test writes its own figures into databases
