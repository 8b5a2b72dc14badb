#!/usr/bin/env python3
"""Measures what a program costs that has more call paths than a session keeps.

  tests/bench/many_paths.py B [--width 15] [--profile]

A made-up program calls WIDTH functions from each of them, five levels deep, so that it has WIDTH^5
call paths and as many calls at the lowest level. It is recorded with a width whose paths all fit,
and with one whose paths do not. With --profile, sums are recorded instead of calls. Prints the paths, the recorder's
CPU time for each call (drain, encoder, embedded collector), its peak memory, and the bytes. The sums must be exact
either way.
"""
import argparse
import json
import pathlib
import resource
import sqlite3
import subprocess
import tempfile

LEVELS = 5


def source(width):
    """Returns a program whose f<n>(depth) calls all functions one level below."""
    names = [f"f{i}" for i in range(width)]
    lines = ["static volatile int sink;", "typedef void step(int);"]
    lines += [f"void {name}(int depth);" for name in names]
    lines += ["static step *const all[] = {" + ", ".join(names) + "};"]
    lines += [f"void {name}(int depth) {{ sink = {i}; for (int k = 0; depth > 1 && k < {width}; k++)"
              " { all[k](depth - 1); } sink++; }" for i, name in enumerate(names)]
    lines += [f"int main(void) {{ for (int k = 0; k < {width}; k++) {{ all[k]({LEVELS}); }} return 0; }}"]
    return "\n".join(lines)


def record(build, folder, width, mode):
    program = folder / f"paths{width}"
    (folder / "paths.c").write_text(source(width))
    subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", "-o", program, folder / "paths.c"],
                   check=True)
    database = folder / f"paths{width}.db"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([build / "bin/sojourn", "record", "-q", *mode, "--summary", folder / "summary.json",
                    "-o", database, "--", program], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    summary = json.loads((folder / "summary.json").read_text())
    cpu = sum(getattr(after, key) - getattr(before, key) for key in ("ru_utime", "ru_stime"))
    with sqlite3.connect(database) as connection:
        paths, sums, stored, functions = connection.execute(
            "SELECT count(*), sum(calls), (SELECT stored_calls FROM sessions),"
            " (SELECT sum(calls) FROM function_stats) FROM call_paths").fetchone()
    wanted = sum(width ** level for level in range(1, LEVELS + 1)) + 1
    least = min(stored, sums, functions)
    if least < wanted or sums != functions:
        raise SystemExit(f"wrong: {wanted} calls, stored {stored}, by path {sums}, by function {functions}")
    print(f"| {wanted:,} | {paths:,} | {summary['folded_paths']:,} | {cpu / stored * 1e9:.0f} "
          f"| {after.ru_maxrss / 1024:.0f} | {database.stat().st_size / stored:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--width", type=int, nargs="*", default=[13, 15, 20])
    parser.add_argument("--profile", dest="mode", action="store_const", const=["--profile"], default=[])
    options = parser.parse_args()
    print("| calls | paths kept | folded | ns of CPU a call, all | MB at most | bytes a call |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for width in options.width:
            record(options.build.resolve(), pathlib.Path(folder), width, options.mode)


if __name__ == "__main__":
    main()
