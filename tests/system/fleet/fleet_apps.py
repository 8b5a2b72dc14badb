#!/usr/bin/env python3
"""From the list of apps to function.txt, on two devices. The runtime of each app is named. One command prepares,
starts and records an app. It delivers the file to this machine, over HTTP, or to a directory of the device.

fleet_apps.py SAMPLES_FOLDER BUILT_SAMPLES_FOLDER
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import Collector, Device, enrol, free_port
from sojourn_testing import PATIENCE_S, check, function_lines, main, wait_for
from urllib.request import Request, urlopen

STATES = ["preparing", "prepared", "started", "recording", "finished"]


def script(path, line):
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n{line}\n")
    os.chmod(path, 0o755)
    return path


def catalogue(sojourn, device, ends, program):
    """Checks the list of apps, which has every runtime. "mono" names the folder in which the app was prepared, and
    its arguments."""
    folder = os.path.join(device.state, "apps")
    os.makedirs(folder)
    wrapped = script(os.path.join(folder, "values"), f'exec /usr/bin/mono "{program}" "$@"')
    java = script(os.path.join(folder, "editor"), "exec java -jar editor.jar")
    apps = [{"name": "values", "command": ["mono", program], "directory": folder,
             "prepare": [["touch", "prepared"]]},
            {"name": "wrapped", "command": [wrapped], "prepare": [["touch", os.path.join(folder, "wrapped.txt")]]},
            {"name": "ends", "command": [ends, "return"]},
            {"name": "editor", "command": [java]},
            {"name": "gone", "command": ["/nowhere/at/all"]},
            {"name": "refused", "command": ["mono", program], "prepare": [["false"]]}]
    with open(os.path.join(device.state, "sojourn/device/apps.json"), "w", encoding="utf-8") as file:
        json.dump({"apps": apps}, file)
    return folder


def check_apps(collector, device):
    told = {app["name"]: app["runtime"] for app in collector.ask(device.name, "apps")}
    check(told == {"values": "mono", "wrapped": "mono", "ends": "native", "editor": "java", "gone": "",
                   "refused": "mono"}, f"{device.name}: {told}")


def check_states(record):
    at = record["at"]
    check(record["state"] == "finished" and list(at) == STATES, f"its states: {record}")
    check(sorted(at.values()) == list(at.values()), f"its states go back in time: {at}")
    needs = {row["need"]: row for row in record["needs"]}
    check(record["runtime"] == "mono" and needs["program"]["ok"] and needs["profiler interface"]["ok"],
          f"what it needs: {record}")


def check_file(text):
    lines = text.splitlines()
    check([int(line.split("[")[0]) for line in lines] == list(range(1, len(lines) + 1)), "lines are not numbered")
    said = function_lines(text)
    for line in ("enter:Npc:Fail(7)", "leave:Npc:Fail(7)ret:!System.InvalidOperationException",
                 "leave:Npc:Hit(30,string)ret:-", "leave:Values:Main()ret:-"):
        check(line in said, f"function.txt lacks {line}:\n{text}")


def policy(sojourn):
    path = sojourn.path("values.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": [{"function": "Npc:Hit", "argument": 1, "as": "int"},
                                           {"function": "Npc:Fail", "argument": 1, "as": "int"}]}, file)
    return path


def brought_here(collector, sojourn, device, folder):
    here = sojourn.path("here.txt")
    made = collector.ask("-o", here, "--name", "chosen", "--policy", policy(sojourn), device.name, "record", "values")
    check_states(made)
    check(os.path.exists(os.path.join(folder, "prepared")), "its preparation was not done where it starts")
    with open(here, encoding="utf-8") as file:
        check_file(file.read())
    rows = collector.sql("SELECT s.name, s.state, d.name AS device FROM sessions s JOIN devices d USING (device_id) "
                         f"WHERE lower(hex(s.uuid)) = '{made['session']}'")
    check(rows == [{"name": "chosen", "state": "completed", "device": device.name}], f"its session: {rows}")


def ask_http(collector, port, path, body=None):
    with open(collector.database + ".token", encoding="utf-8") as file:
        token = file.read().strip()
    request = Request(f"http://127.0.0.1:{port}/api/v1/{path}", json.dumps(body).encode() if body else None,
                      {"Content-Type": "application/json", "Authorization": "Bearer " + token})
    with urlopen(request, timeout=PATIENCE_S) as answer:
        return answer.read()


def files_are_delivered_over_http(sojourn, collector, port, device):
    """Delivers the file to a directory of the device, and from the collector."""
    out = os.path.join(device.state, "out")
    os.makedirs(out)
    with open(policy(sojourn), encoding="utf-8") as file:
        rules = json.load(file)
    given = ask_http(collector, port, "commands", {
        "devices": device.name, "kind": "record",
        "arguments": {"app": "wrapped", "to": out, "policy": rules}})
    command = json.loads(given)["commands"][0]["command"]

    def ended():
        row = json.loads(ask_http(collector, port, f"commands/{command}"))
        return row if row["state"] not in ("preparing", "queued", "sent") else None

    row = wait_for("the recording", ended)
    check(row["state"] == "done", f"it ended with {row}")
    made = json.loads(row["result"])
    check_states(made)
    text = ask_http(collector, port, f"commands/{command}/file").decode()
    check_file(text)
    path = os.path.join(out, "function.txt")
    wait_for("the file on the device", lambda: os.path.exists(path))
    with open(path, encoding="utf-8") as file:
        check(file.read() == text, "the device's file is another")


def failures(collector, device):
    """A failure names its step, and nothing is started then."""
    before = collector.sql("SELECT count(*) AS n FROM sessions")
    for app, words in (("refused", "preparation step 1"), ("gone", "/nowhere/at/all"), ("nothing", "no app")):
        done = collector.device(device.name, "record", app, code=1)
        check(words in done.stderr and "prepare: " in done.stderr, f"{app}: {done.stderr}")
    collector.device(device.name, "record", code=2)
    check(collector.sql("SELECT count(*) AS n FROM sessions") == before, "a session was begun")
    told = collector.ask(device.name, "prepare", "ends")
    check(told["runtime"] == "native" and told["needs"][0]["ok"], f"prepare: {told}")


def test(sojourn, arguments):
    samples, built = arguments
    program = sojourn.path("Values.exe")
    subprocess.run(["mcs", os.path.join(samples, "mono", "Values.cs"), f"-out:{program}"], check=True,
                   timeout=PATIENCE_S)
    port = free_port()
    collector = Collector(sojourn, "--http", f"127.0.0.1:{port}")
    devices = [Device(sojourn, "phone7"), Device(sojourn, "phone8")]
    try:
        folders = []
        for device in devices:
            enrol(collector, device)
            folders.append(catalogue(sojourn, device, os.path.join(built, "ends"), program))
            device.start()
        for device in devices:
            check_apps(collector, device)
        wait_for("the token", lambda: os.path.exists(collector.database + ".token"))
        brought_here(collector, sojourn, devices[0], folders[0])
        files_are_delivered_over_http(sojourn, collector, port, devices[1])
        failures(collector, devices[0])
    finally:
        for party in (*devices, collector):
            if party.process is not None and party.process.poll() is None:
                party.process.kill()
                party.process.wait()


if __name__ == "__main__":
    main(test)
