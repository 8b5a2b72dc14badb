#!/usr/bin/env python3
"""Measures what each mode costs a program per call, beside uftrace with the same filter and beside
-finstrument-functions with the least recorder that there can be; and what leaves the device.

  tests/bench/modes.py BUILD_FOLDER SUBJECTS_FOLDER [--rounds N] [--markdown]

The program is lua (tests/bench/workloads/lua.lua), the same source for all. CPU of its own threads
beyond the plain run, minimum of interleaved rounds, divided by its calls. "filtered": everything but
one function that is called once is left out, so that what is measured is the cost of a call that is
not wanted.
"""
import argparse
import glob
import json
import os
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ONE = "luaL_openlibs"
FLIGHT = {"policy": 1, "mode": "flight", "triggers": [{"on": "command", "do": ["dump"]}]}


def cpu_of(command, environment=None):
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    assert status == 0, command
    return usage.ru_utime + usage.ru_stime


class Bench:
    def __init__(self, build, subjects, scratch):
        self.sojourn = os.path.join(build, "bin/sojourn")
        self.scratch = scratch
        script = [os.path.join(HERE, "workloads/lua.lua"), "1"]
        self.lua = [os.path.join(subjects, "lua"), *script]
        self.instrumented = [os.path.join(scratch, "lua"), *script]
        self.best, self.told = {}, {}
        source = os.path.join(subjects, "lua-source/src")
        files = [name for name in glob.glob(f"{source}/*.c") if not name.endswith("luac.c")]
        subprocess.run(["gcc", "-O2", "-std=gnu99", "-DLUA_USE_LINUX", "-Dluai_makeseed(L)=42u",
                        "-DSTRCACHE_N=1", "-DSTRCACHE_M=1", "-finstrument-functions",
                        "-rdynamic", "-w", *files, os.path.join(HERE, "minimal_recorder.c"), "-o",
                        os.path.join(scratch, "lua"), "-lm", "-ldl"], check=True)
        with open(os.path.join(scratch, "flight.json"), "w", encoding="utf-8") as file:
            json.dump(FLIGHT, file)

    def keep(self, name, cpu):
        self.best[name] = min(self.best.get(name, float("inf")), cpu)

    def record(self, name, options):
        database = os.path.join(self.scratch, "m.db")
        summary = os.path.join(self.scratch, "s.json")
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(database + suffix):
                os.unlink(database + suffix)
        subprocess.run([self.sojourn, "record", "-q", "-o", database, "--summary", summary, *options,
                        "--", *self.lua], stdout=subprocess.DEVNULL, check=True)
        with open(summary, encoding="utf-8") as file:
            told = json.load(file)
        row = json.loads(subprocess.run(
            [self.sojourn, "sql", "--json", "SELECT sum(stored_bytes) AS bytes FROM sessions",
             database], capture_output=True, check=True).stdout)["rows"][0]
        self.told[name] = {"calls": told["calls"], "lost": told["lost_calls"],
                           "bytes": row["bytes"], "seconds": told["elapsed_ns"] / 1e9}
        self.keep(name, told["traced_cpu_ns"] / 1e9)

    def uftrace(self, name, pattern):
        folder = os.path.join(self.scratch, "uftrace.data")
        shutil.rmtree(folder, ignore_errors=True)
        self.keep(name, cpu_of(["uftrace", "record", "--no-libcall", "-P", pattern, "-d", folder,
                                *self.lua]))
        data = sum(os.path.getsize(name) for name in glob.glob(f"{folder}/*.dat"))
        self.told[name] = {"calls": data // 32, "lost": 0, "bytes": data, "seconds": 0}

    def minimal(self, name, environment):
        count = os.path.join(self.scratch, "count")
        self.keep(name, cpu_of(self.instrumented, {"MINIMAL_RECORDER": count, **environment}))
        with open(count, encoding="ascii") as file:
            self.told[name] = {"calls": int(file.read()), "lost": 0, "bytes": 0, "seconds": 0}

    def round(self):
        self.keep("plain", cpu_of(self.lua))
        self.record("trace", [])
        self.record("trace, filtered", ["--function", ONE])
        self.record("profile", ["--mode", "profile"])
        self.record("flight, no trigger", ["--policy", os.path.join(self.scratch, "flight.json")])
        self.uftrace("uftrace -P .", ".")
        self.uftrace("uftrace, filtered", f"^{ONE}$")
        self.minimal("-finstrument-functions", {})
        self.minimal("-finstrument-functions, filtered", {"MINIMAL_ONLY": ONE})


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("subjects")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    floor = float(subprocess.run([os.path.join(options.build, "bench/floor")], capture_output=True,
                                 text=True, check=True).stdout)
    with tempfile.TemporaryDirectory(prefix="sojourn-modes-") as scratch:
        for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
            os.environ[name] = scratch
        bench = Bench(options.build, options.subjects, scratch)
        for _ in range(options.rounds):
            bench.round()
    form = "| {} | {} | {} | {} | {} | {} |" if options.markdown else "{:34} {:>12} {:>10} {:>9} {:>8} {:>12}"
    print(form.format("how", "calls", "lost", "ns a call", "/ floor", "bytes/s"))
    if options.markdown:
        print("|---|---|---|---|---|---|")
    print(form.format("two clock reads", "", "", f"{floor:.1f}", "1.00", ""))
    every = bench.told["trace"]["calls"]
    for name, told in bench.told.items():
        calls = every if "filtered" in name else told["calls"] or every
        if name == "-finstrument-functions, filtered":
            calls = bench.told["-finstrument-functions"]["calls"]
        each = (bench.best[name] - bench.best["plain"]) / calls * 1e9
        rate = f"{told['bytes'] / told['seconds']:,.0f}" if told["seconds"] else ""
        print(form.format(name, f"{told['calls']:,}", told["lost"], f"{each:.1f}",
                          f"{each / floor:.2f}", rate), flush=True)


if __name__ == "__main__":
    main()
