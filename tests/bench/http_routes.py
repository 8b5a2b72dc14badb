#!/usr/bin/env python3
"""Measures how long the routes of the HTTP API take on a recording: ms of waiting, best and median of so many
requests over one connection, and how much memory the server holds in the end.

  tests/bench/http_routes.py BUILD_FOLDER DATABASE [--rounds N]
"""
import argparse
import http.client
import re
import subprocess
import time

ROUTES = ("sessions", "sessions/{0}", "sessions/{0}/functions", "sessions/{0}/functions?limit=100",
          "sessions/{0}/call-tree", "sessions/{0}/timeline")


def ask(connection, path, login):
    begin = time.perf_counter()
    connection.request("GET", path, headers=login)
    answer = connection.getresponse()
    body = answer.read()
    return answer.status, len(body), (time.perf_counter() - begin) * 1000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("database")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--session", type=int, default=1)
    options = parser.parse_args()
    server = subprocess.Popen([f"{options.build}/bin/sojourn", "ui", "--no-open", options.database],
                              stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        port, token = re.search(r":(\d+)/#token=(\w+)", line).groups()
        login = {"Authorization": f"Bearer {token}"}
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
        print("| route | status | bytes | best ms | median ms |\n|---|---|---|---|---|")
        for route in ROUTES:
            path = "/api/v1/" + route.format(options.session)
            rounds = [ask(connection, path, login) for _ in range(options.rounds)]
            times = sorted(round[2] for round in rounds)
            print(f"| {path} | {rounds[0][0]} | {rounds[0][1]:,} | {times[0]:.2f} | "
                  f"{times[len(times) // 2]:.2f} |")
        with open(f"/proc/{server.pid}/status", encoding="ascii") as file:
            print(next(text for text in file if text.startswith("VmHWM")).strip())
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
