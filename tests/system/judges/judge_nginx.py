#!/usr/bin/env python3
"""nginx under load serves every request whole with all functions of nginx and OpenSSL hooked, reloads
its configuration meanwhile, and ends as it does unhooked. judge_nginx.py BUILD_FOLDER"""
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from judging import check_session, compare, need, options_of, sizes
from sojourn_testing import PATIENCE_S, check, main, wait_for

MODULES = ("nginx", "libpcre2*", "libz.so*")
CONFIGURATION = """
daemon off; worker_processes 2; pid {folder}/pid; error_log {folder}/error.log info;
events {{ worker_connections 256; }}
http {{
  access_log {folder}/access.log; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  gzip on; gzip_types text/plain; gzip_min_length 100;
  server {{
    listen 127.0.0.1:{port}; root {folder}/www;
    location / {{ autoindex on; }}
    location ~ ^/moved/(\\w+)$ {{ return 302 /$1.txt; }}
    location /again/ {{ proxy_pass http://127.0.0.1:{port}/; }}
    location /gone {{ return 410 "gone\\n"; }}
  }}
}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetch(port, path, compressed=False):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    if compressed:
        request.add_header("Accept-Encoding", "gzip")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return f"{path} {answer.status} {hashlib.sha256(answer.read()).hexdigest()}\n"
    except urllib.error.HTTPError as error:
        return f"{path} {error.code} {hashlib.sha256(error.read()).hexdigest()}\n"


def load(port, requests, path, *options):
    done = subprocess.run(["ab", "-q", "-n", requests, "-c", "16", *options, f"http://127.0.0.1:{port}{path}"],
                          capture_output=True, text=True, timeout=1200, check=False)
    check(done.returncode == 0, f"ab: {done.stderr}")
    wanted = ("Complete requests", "Failed requests", "Non-2xx", "HTML transferred", "Document Length")
    return "".join(line + "\n" for line in done.stdout.split("\n") if line.startswith(wanted))


def prepare(folder, port):
    os.makedirs(os.path.join(folder, "www"))
    os.chmod(folder, 0o755)
    for name, size in (("small", 20), ("middle", 5000), ("large", 3000000)):
        path = os.path.join(folder, "www", name + ".txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f"{i * 7919} " for i in range(size)))
        os.utime(path, (1600000000, 1600000000))
    with open(os.path.join(folder, "nginx.conf"), "w", encoding="utf-8") as file:
        file.write(CONFIGURATION.format(folder=folder, port=port))


def listens(server, port):
    check(server.poll() is None, "nginx has ended")
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE_S).close()
    except OSError:
        return False
    return True


def one_run(sojourn, name, port, requests, database):
    folder = sojourn.path(name)
    prepare(folder, port)
    wrapper = []
    if database is not None:
        wrapper = [sojourn.program, "record", "--quiet", "-o", database, *options_of(MODULES), "--"]
    server = subprocess.Popen([*wrapper, "nginx", "-c", os.path.join(folder, "nginx.conf"), "-p", folder],
                              stderr=subprocess.DEVNULL, env=sojourn.environment)
    wait_for("nginx listens", lambda: listens(server, port))
    answers = "".join(fetch(port, path) for path in ("/small.txt", "/middle.txt", "/large.txt", "/", "/none",
                                                     "/moved/small", "/again/middle.txt", "/gone"))
    answers += fetch(port, "/middle.txt", compressed=True)
    answers += load(port, requests, "/small.txt") + load(port, requests, "/middle.txt", "-k")
    with open(os.path.join(folder, "pid"), encoding="utf-8") as file:
        master = int(file.read())
    os.kill(master, signal.SIGHUP)
    answers += load(port, requests, "/again/small.txt") + fetch(port, "/large.txt")
    os.kill(master, signal.SIGQUIT)
    answers += f"exit {server.wait(timeout=PATIENCE_S)}\n"
    with open(os.path.join(folder, "error.log"), encoding="utf-8") as file:
        log = file.read()
    bad = [line for line in log.split("\n") if "exited on signal" in line or "[alert]" in line]
    check(not bad, f"nginx: {bad[:5]}")
    return answers


def one_round(sojourn, requests):
    port = free_port()
    database = sojourn.path("nginx.db")
    plain = one_run(sojourn, "plain", port, requests, None)
    hooked = one_run(sojourn, "hooked", port, requests, database)
    compare("nginx's answers", plain, hooked)
    calls = check_session(sojourn, database, 3)
    processes = sojourn.sql(database, "SELECT count(*) AS n FROM processes")[0]["n"]
    check(processes >= 5, f"{processes} processes: workers are missing")
    print(f"nginx: same answers, {processes} processes, {calls} calls", flush=True)
    for name in ("plain", "hooked"):
        shutil.rmtree(sojourn.path(name))
    os.unlink(database)


def test(sojourn, _):
    need("nginx", "ab")
    os.chmod(sojourn.folder, 0o755)
    for requests in sizes("1500", "200000"):
        one_round(sojourn, requests)


if __name__ == "__main__":
    main(test)
