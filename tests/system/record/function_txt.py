#!/usr/bin/env python3
"""function.txt, written while the program runs, equals line by line what `export` writes of the session afterwards.
The programs are native, Mono and Java. The lines are in order and within the limits, and the files are readable by
their owner only.

function_txt.py BUILD_FOLDER SAMPLES_FOLDER BUILT_SAMPLES_FOLDER
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, let_work
from sojourn_testing import PATIENCE_S, check, main, sample_text, wait_for

LINE = re.compile(r"(\d+)\[(\d+),(\d{1,9})\]((?:enter|leave):.*)")


def read_lines(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read().splitlines()


def lines_of(folder):
    """Returns all lines that are left, the oldest first."""
    found = []
    for name in os.listdir(folder):
        number = re.fullmatch(r"function(?:\.(\d+))?\.txt", name)
        check(number, f"a file {name}")
        found.append((int(number[1] or 0), os.path.join(folder, name)))
    return [line for _, path in sorted(found, reverse=True) for line in read_lines(path)]


def texts_of(lines, first=None):
    """Returns the actions, in order. Also checks that the numbers and times are in order."""
    texts, last = [], 0
    for place, line in enumerate(lines):
        match = LINE.fullmatch(line)
        check(match, f"line {place}: {line!r}")
        number, when = int(match[1]), int(match[2]) * 10**9 + int(match[3])
        check(first is None or number == first + place, f"line {place} has the number {number}")
        check(when >= last, f"time goes back in {line}")
        texts.append(match[4])
        last = when
    return texts


def exported(sojourn, database):
    done = sojourn.run(["export", database], capture_output=True)
    check(done.returncode == 0, f"export: {done.stderr}")
    return done.stdout.decode("utf-8", "surrogateescape").splitlines()


def function_txt_equals_the_export(sojourn, command, name, options=(), is_threaded=False):
    database, folder = sojourn.path(f"{name}.db"), sojourn.path(name)
    done, _ = sojourn.record(command, database, ["--function-txt", folder, *options])
    check(b"function.txt" not in done.stderr, f"{name}: {done.stderr}")
    live = texts_of(lines_of(folder), first=1)
    wanted = texts_of(exported(sojourn, database), first=1)
    check(len(live) > 10, f"{name}: {len(live)} lines")
    if is_threaded:  # two actions at the same time may come in either order
        live.sort()
        wanted.sort()
    check(all(re.search(r" tid:[1-9]\d*( ~)?$", line) for line in live), f"{name}: a line names no thread: {live[:9]}")
    check(live == wanted, f"{name}: live {len(live)} lines, exported {len(wanted)}; the first that differ: "
          f"{next(((a, b) for a, b in zip(live, wanted) if a != b), None)}")
    return live


def every_runtime(sojourn, samples, built):
    rules = ["val_text(1:string)", "val_text(2:string)", "val_text(result:string)", "val_real(1:float)",
             "val_real(2:double)", "val_real(result:double)", "val_whole(1:int)", "val_whole(4:ulong)",
             "val_whole(result:hex)"]
    lines = function_txt_equals_the_export(sojourn, [os.path.join(built, "gcc-O0", "values")], "native",
                                           [part for rule in rules for part in ("--value", rule)])
    for text in ('enter:val_text("hello","")', 'leave:val_text(null,unreadable)ret:unreadable', "val_real(0.1"):
        check(any(text in line for line in lines), f"no {text} in {lines[:40]}")
    function_txt_equals_the_export(sojourn, [os.path.join(built, "gcc-O0", "s_throw")], "throws")
    function_txt_equals_the_export(sojourn, [os.path.join(built, "gcc-O0", "s_coroutine")], "coroutines", is_threaded=True)
    function_txt_equals_the_export(sojourn, [os.path.join(built, "gcc-O0", "s_threads")], "threads", is_threaded=True)
    for source, name, values in (("Values.cs", "mono", ["Npc:Hit(2:string)", "Npc:Hit(result:int)"]),
                                 ("Counts.cs", "counts", [])):
        program = sojourn.path(name + ".exe")
        subprocess.run(["mcs", "-r:System.Core", os.path.join(samples, "mono", source), f"-out:{program}"],
                       check=True, timeout=PATIENCE_S)
        options = [part for rule in values for part in ("--value", rule)]
        lines = function_txt_equals_the_export(sojourn, ["mono", program], name, options, name == "counts")
    function_txt_equals_the_export(sojourn, ["java", "-cp", os.path.join(built, "java"), "Shapes"], "java", is_threaded=True)


FAILING = sample_text("record/failing.c")


def errno_of_calls(sojourn):
    program, policy = sojourn.path("failing"), sojourn.path("failing.json")
    with open(program + ".c", "w", encoding="utf-8") as file:
        file.write(FAILING)
    subprocess.run(["gcc", "-O1", program + ".c", "-o", program], check=True, timeout=PATIENCE_S)
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": [{"function": "err_try", "errno": True},
                                           {"function": "err_try", "result": True, "as": "int"}]}, file)
    lines = function_txt_equals_the_export(sojourn, [program], "errno", ["--policy", policy, "--function", "/./"])
    for end in ("ret:-1 errno:2", "ret:1 errno:0", "ret:-1 errno:13"):
        check(any(line.startswith(f"leave:err_try{end} tid:") for line in lines), f"no {end} in {lines}")


def function_txt_is_written_while_the_program_runs(sojourn, built):
    folder, database = sojourn.path("live"), sojourn.path("live.db")
    target = Target([sojourn.program, "record", "-q", "-o", database, "--function-txt", folder,
                     "--function", "target_on_tick", "--allow-unmatched", "--",
                     os.path.join(built, "attach_target")], env=sojourn.environment).ready()
    try:
        path = os.path.join(folder, "function.txt")
        let_work(target.process)
        wait_for("lines of a program that runs", lambda: os.path.exists(path) and os.path.getsize(path) > 0)
        before = os.path.getsize(path)
        let_work(target.process)
        wait_for("more lines", lambda: os.path.getsize(path) > before)
        refused = sojourn.run(["record", "-q", "-o", sojourn.path("second.db"), "--function-txt", folder,
                               "--", "true"], capture_output=True, text=True)
        check(refused.returncode == 125 and "another recording" in refused.stderr, f"a second: {refused}")
        check(target.process.poll() is None, "it has ended")
        code, _ = target.finish()
        check(code == 0, f"it ended with {code}")
    finally:
        target.kill()
    live, wanted = texts_of(read_lines(path)), texts_of(exported(sojourn, database))
    check(sorted(live) == sorted(wanted), f"live {len(live)} lines, exported {len(wanted)}")


def without_thread(texts):
    return [re.sub(r" tid:\d+", "", text) for text in texts]


def limits(sojourn, built):
    folder, database = sojourn.path("limits"), sojourn.path("limits.db")
    command = [os.path.join(built, "gcc-O0", "s_recursion")]
    options = ["--function-txt", folder, "--function-txt-size", "1k", "--function-txt-files", "3"]
    done = sojourn.run(["record", "-o", database, *options, "--", *command], capture_output=True, text=True)
    wanted = texts_of(exported(sojourn, database))
    sizes = {name: os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)}
    check(set(sizes) == {"function.txt", "function.1.txt", "function.2.txt"} and max(sizes.values()) <= 1024,
          f"files {sizes} of {len(wanted)} lines")
    lines = lines_of(folder)
    first = int(lines[0].split("[")[0])
    check(first > 1 and texts_of(lines, first=first) == wanted[first - 1:], "the last lines are not those kept")
    check(f"{len(wanted)} in function.txt" in done.stderr and re.search(r"; removed [0-9]+ older files? ", done.stderr), done.stderr)
    # A later recording leaves the files of this recording as far as the limit allows.
    options[3] = "0"
    sojourn.record(command, database, options)
    second = texts_of(read_lines(os.path.join(folder, "function.txt")), first=1)
    check(without_thread(second) == without_thread(wanted), "the second is not whole")
    check(os.path.getsize(os.path.join(folder, "function.1.txt")) == sizes["function.txt"], "the first is gone")


def refusals(sojourn, built):
    program = os.path.join(built, "gcc-O0", "s_recursion")
    taken = sojourn.path("taken")
    with open(taken, "w", encoding="utf-8"):
        pass
    for options, words in ((["--function-txt", taken], "taken"),
                           (["--function-txt", sojourn.path("p"), "--mode", "profile"], "--mode trace")):
        done, _ = sojourn.record([program], sojourn.path("refused.db"), options, text=True)
        check(done.returncode == 125 and words in done.stderr, f"{options}: {done}")


def test(sojourn, arguments):
    samples, built = arguments
    every_runtime(sojourn, samples, built)
    errno_of_calls(sojourn)
    function_txt_is_written_while_the_program_runs(sojourn, built)
    limits(sojourn, built)
    refusals(sojourn, built)


if __name__ == "__main__":
    main(test)
