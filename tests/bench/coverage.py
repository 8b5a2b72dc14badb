#!/usr/bin/env python3
"""Measures how much of real programs is recorded exactly, entry and exit: the share of their functions, and of
the calls that they really make.

  tests/bench/coverage.py BUILD_FOLDER [--only NAME]

Which functions: `sojourn functions`. Calls: callgrind counts calls and tail jumps by the address that
they lead to, in one run of a small workload of each program; a call counts when it leads to the first
byte of a function of the program itself.
"""
import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "system", "support"))
import callgrind  # noqa: E402

WORKLOADS = os.path.join(HERE, "workloads")


def run(command, scratch, stdin=None, **options):
    with open(stdin or os.devnull, "rb") as source:
        subprocess.run(command, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       check=True, cwd=scratch, timeout=1200, **options)


@contextlib.contextmanager
def server(command, scratch, stop=signal.SIGTERM):
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, cwd=scratch) as process:
        yield process
        process.send_signal(stop)
        process.wait(timeout=120)


def wait_until(check, what):
    for _ in range(600):
        with contextlib.suppress(OSError):
            if check():
                return
        time.sleep(0.1)
    sys.exit(f"{what} does not answer")


def run_redis(wrapper, scratch):
    path = os.path.join(scratch, "socket")
    client = ["redis-cli", "-s", path]
    with server([*wrapper, "redis-server", "--port", "0", "--unixsocket", path, "--save", ""], scratch):
        wait_until(lambda: os.path.exists(path), "redis-server")
        run(["redis-benchmark", "-s", path, "-n", "300", "-c", "5", "-q"], scratch)
        run([*client, "bgrewriteaof"], scratch)
        run([*client, "debug", "digest"], scratch)


def run_nginx(wrapper, scratch):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with open(os.path.join(scratch, "nginx.conf"), "w", encoding="ascii") as file:
        file.write(f"daemon off; master_process off; pid nginx.pid; error_log stderr; events {{}}\n"
                   f"http {{ access_log access.log; gzip on; gzip_min_length 1; gzip_types *;\n"
                   f"server {{ listen 127.0.0.1:{port}; root {scratch}; }} }}\n")
    url = f"http://127.0.0.1:{port}/nginx.conf"
    with server([*wrapper, shutil.which("nginx", path="/usr/sbin"), "-p", scratch, "-c", "nginx.conf"],
                scratch, signal.SIGQUIT):
        wait_until(lambda: urllib.request.urlopen(url).read(), "nginx")
        for _ in range(100):
            request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
            urllib.request.urlopen(request).read()


def subjects(build):
    folder = os.path.join(build, "subjects")
    cc1 = subprocess.check_output(["gcc", "-print-prog-name=cc1"], text=True).strip()
    multiarch = subprocess.check_output(["gcc", "-print-multiarch"], text=True).strip()
    lua = os.path.join(folder, "lua")
    sqlite = os.path.join(folder, "sqlite3")
    source = os.path.join(folder, "lua-source/src")
    python = "/usr/bin/python3.11"
    repository = os.path.dirname(os.path.dirname(HERE))
    script = "import json,re,ast,inspect;ast.parse(inspect.getsource(re));print(len(json.dumps(list(range(9999)))))"

    def simple(*command, stdin=None):
        return lambda wrapper, scratch: run([*wrapper, *command], scratch, stdin=stdin)

    return {
        "lua": (lua, simple(lua, os.path.join(WORKLOADS, "lua.lua"), "1")),
        "sqlite3": (sqlite, simple(sqlite, ":memory:", stdin=os.path.join(WORKLOADS, "sqlite.sql"))),
        "python3.11": (python, simple(python, "-c", script)),
        "redis-server": ("/usr/bin/redis-server", run_redis),
        "nginx": ("/usr/sbin/nginx", run_nginx),
        "git": ("/usr/bin/git", simple("git", "--no-pager", "-C", repository, "log", "--stat", "-20")),
        "cc1": (cc1, simple(cc1, "-quiet", "-imultiarch", multiarch, "-O2", source + "/lgc.c", "-o", "out.s")),
        "cmake (C++)": ("/usr/bin/cmake", simple("cmake", "-S", ".", "-B", "made")),
        "fdfind (Rust)": ("/usr/bin/fdfind", simple("fdfind", "--threads", "2", "a.*h$", "/usr/include")),
    }


def listed(sojourn, program):
    done = subprocess.run([sojourn, "functions", "--json", "--all", program], capture_output=True,
                          text=True, check=True)
    rows = json.loads(done.stdout)["rows"][0]["functions"]
    return {row["offset"]: row for row in rows if not row["reason"].startswith("cold part")}


def called(program, work, functions, scratch):
    """Calls by module offset, of all processes that ran this program."""
    output = os.path.join(scratch, "callgrind.out")
    work(["valgrind", *callgrind.OPTIONS, f"--callgrind-out-file={output}.%p"], scratch)
    counts, self_jumps = callgrind.counters()
    sizes = {offset: entry["size"] for offset, entry in functions.items()}
    for name in os.listdir(scratch):
        if name.startswith("callgrind.out."):
            callgrind.read_calls(os.path.join(scratch, name), os.path.realpath(program), sizes, counts,
                                 self_jumps)
    return counts


def row(sojourn, name, program, work):
    functions = listed(sojourn, program)
    own = {offset: entry for offset, entry in functions.items()
           if not entry["reason"].startswith("start files")}
    hookable = sum(entry["hookable"] for entry in own.values())
    with tempfile.TemporaryDirectory(prefix="sojourn-coverage-") as scratch:
        if name.startswith("cmake"):
            with open(os.path.join(scratch, "CMakeLists.txt"), "w", encoding="ascii") as file:
                file.write("cmake_minimum_required(VERSION 3.20)\nproject(made C)\nadd_library(x x.c)\n")
            with open(os.path.join(scratch, "x.c"), "w", encoding="ascii") as file:
                file.write("int x;\n")
        counts = called(program, work, own, scratch)
    calls = sum(count for offset, count in counts.items() if offset in own)
    exact = sum(count for offset, count in counts.items() if offset in own and own[offset]["hookable"])
    missed = sorted(((count, offset) for offset, count in counts.items()
                     if offset in own and not own[offset]["hookable"]), reverse=True)[:3]
    worst = ", ".join(f"{own[offset]['name'] or hex(offset)}: {count:,} ({own[offset]['reason']})"
                      for count, offset in missed)
    print(f"| {name} | {len(own):,} | {hookable / len(own):.2%} | {calls:,} | "
          f"{exact / max(calls, 1):.4%} | {worst or '-'} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    os.environ["PATH"] += ":/usr/sbin"
    subprocess.run([os.path.join(HERE, "build_subjects"), os.path.join(build, "subjects")], check=True)
    print("| program | functions, start files aside | exact entry and exit | calls | of calls | left out most often |")
    print("|---|---|---|---|---|---|")
    for name, (program, work) in subjects(build).items():
        if options.only in name:
            row(os.path.join(build, "bin/sojourn"), name, program, work)


if __name__ == "__main__":
    main()
