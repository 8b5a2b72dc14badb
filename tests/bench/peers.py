#!/usr/bin/env python3
"""CPU per call on the program's own threads, beside everything else that records each entry and exit,
in one run: the two-clock floor, uftrace (fully dynamic, as Sojourn), XRay's flight data recorder
(clang -fxray-instrument), and -finstrument-functions with the least recorder there can be.

  tests/bench/peers.py BUILD_FOLDER [--rounds N] [--only NAME]

Minima over interleaved rounds, net of the same build without recording. The peers that need to be
compiled in are built from the same sources as the subjects; cc1 is Debian's, so they are not there,
and tcc, another compiler, stands beside it.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

from overhead import Subject, cpu_of
from subjects import WORKLOADS

HERE = os.path.dirname(os.path.abspath(__file__))
LUA = ["-std=gnu99", "-O2", "-DLUA_USE_LINUX", "-Dluai_makeseed(L)=42u", "-DSTRCACHE_N=1", "-DSTRCACHE_M=1"]
SQLITE = ["-O2", "-DSQLITE_THREADSAFE=1", "-DSQLITE_ENABLE_FTS5"]
TCC = ["-O2", "-DONE_SOURCE=1"]
XRAY = ["-fxray-instrument", "-fxray-instruction-threshold=1"]


class Peer:
    """One build of a subject that records by itself."""

    def __init__(self, command, stdin, environment, plain, count):
        self.command, self.stdin, self.environment = command, stdin, environment
        self.plain_command, self.count = plain, count
        self.best = self.plain = float("inf")

    def round(self, scratch):
        self.plain = min(self.plain, cpu_of(self.plain_command, self.stdin))
        self.best = min(self.best, cpu_of(self.command, self.stdin, cwd=scratch,
                                          env=dict(os.environ, **self.environment)))
        for log in glob.glob(os.path.join(scratch, "xray-log.*")):
            os.unlink(log)

    def ns(self):
        return (self.best - self.plain) / self.count() * 1e9


def compile_to(output, compiler, flags, sources, libraries):
    if not os.path.exists(output):
        subprocess.run([compiler, *flags, "-o", output, *sources, *libraries], check=True,
                       stderr=subprocess.DEVNULL)
    return output


def calls_of(sojourn, scratch, command, stdin):
    summary = os.path.join(scratch, "calls.json")
    cpu_of([sojourn, "record", "--quiet", "--mode", "profile", "-o", os.path.join(scratch, "calls.db"),
            "--summary", summary, "--", *command], stdin)
    with open(summary, encoding="utf-8") as file:
        return json.load(file)["calls"]


def make_peers(folder, scratch, sojourn, name, flags, sources, libraries, arguments, stdin):
    build = lambda kind, compiler, more, extra=(): compile_to(
        os.path.join(folder, f"{name}-{kind}"), compiler, [*flags, *more], [*sources, *extra], libraries)
    recorder = os.path.join(scratch, "recorder.o")
    subprocess.run(["gcc", "-O2", "-c", os.path.join(HERE, "minimal_recorder.c"), "-o", recorder], check=True)
    gcc, clang = build("gcc", "gcc", []), build("clang", "clang", [])
    told = os.path.join(scratch, "calls")
    minimal = Peer([build("minimal", "gcc", ["-finstrument-functions"], [recorder]), *arguments], stdin,
                   {"MINIMAL_RECORDER": told}, [gcc, *arguments],
                   lambda: int(open(told, encoding="ascii").read()))
    calls = calls_of(sojourn, scratch, [clang, *arguments], stdin)
    xray = Peer([build("xray", "clang", XRAY), *arguments], stdin,
                {"XRAY_OPTIONS": "patch_premain=true xray_mode=xray-fdr verbosity=0"}, [clang, *arguments],
                lambda: calls)
    return xray, minimal


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    folder = os.path.join(build, "subjects")
    sojourn = os.path.join(build, "bin/sojourn")
    subprocess.run([os.path.join(HERE, "build_subjects"), folder, "tcc"], check=True)
    floor = float(subprocess.check_output([os.path.join(build, "bench/floor")], text=True))
    cc1 = subprocess.check_output(["gcc", "-print-prog-name=cc1"], text=True).strip()
    multiarch = subprocess.check_output(["gcc", "-print-multiarch"], text=True).strip()
    lua = os.path.join(folder, "lua-source/src")
    sqlite = os.path.join(folder, "sqlite-source")
    tcc = os.path.join(folder, "tcc-source")
    script, queries = os.path.join(WORKLOADS, "lua.lua"), os.path.join(WORKLOADS, "sqlite.sql")
    with tempfile.TemporaryDirectory(prefix="sojourn-peers-") as scratch:
        compiled = ["-nostdinc", f"-I{tcc}/include", "-I/usr/include", f"-I/usr/include/{multiarch}",
                    "-c", sqlite + "/sqlite3.c", "-o", os.path.join(scratch, "out.o")]
        lua_sources = [path for path in sorted(glob.glob(lua + "/*.c")) if not path.endswith("/luac.c")]
        rows = {
            "lua": (Subject("lua", [os.path.join(folder, "lua"), script, "1"]),
                    lambda: make_peers(folder, scratch, sojourn, "lua", LUA, lua_sources, ["-lm", "-ldl"],
                                       [script, "1"], None)),
            "sqlite3": (Subject("sqlite3", [os.path.join(folder, "sqlite3"), ":memory:"], queries),
                        lambda: make_peers(folder, scratch, sojourn, "sqlite3", SQLITE,
                                           [sqlite + "/sqlite3.c", sqlite + "/shell.c"],
                                           ["-lm", "-ldl", "-lpthread"], [":memory:"], queries)),
            "tcc": (Subject("tcc", [os.path.join(folder, "tcc"), *compiled]),
                    lambda: make_peers(folder, scratch, sojourn, "tcc", [*TCC, "-I" + tcc],
                                       [tcc + "/tcc.c"], ["-lm", "-ldl", "-lpthread"], compiled, None)),
            "cc1 (stripped)": (Subject("cc1", [cc1, "-quiet", "-imultiarch", multiarch, "-O2", lua + "/lgc.c",
                                               "-o", os.devnull]), lambda: ()),
        }
        print("| program | calls | two clocks | Sojourn | / floor | uftrace -P . | / Sojourn | XRay FDR | "
              "-finstrument-functions, minimal |\n|---|---|---|---|---|---|---|---|---|")
        for name, (subject, peers_of) in rows.items():
            if options.only not in name:
                continue
            peers = peers_of()
            for number in range(options.rounds):
                print(f"round {number + 1}: {name}", file=sys.stderr)
                subject.round(sojourn, scratch, True)
                for peer in peers:
                    peer.round(scratch)
            app = (subject.app - subject.plain) / subject.calls * 1e9
            uftrace = (subject.uftrace - subject.plain) / max(subject.uftrace_calls, 1) * 1e9
            others = [f"{peer.ns():.1f}" for peer in peers] or ["-", "-"]
            print(f"| {name} | {subject.calls:,} | {floor:.1f} | {app:.1f} | {app / floor:.2f} | {uftrace:.0f} | "
                  f"{uftrace / app:.1f} | {' | '.join(others)} |", flush=True)


if __name__ == "__main__":
    main()
