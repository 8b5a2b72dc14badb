#!/usr/bin/env python3
"""Every command that a collector can send, from the command line and over HTTP, with real programs: what each does,
how each fails, and what is kept of it.

fleet_control.py BUILD_FOLDER ATTACH_TARGET
"""
import http.client
import json
import os
import re
import subprocess
import sys

from prometheus_client.parser import text_string_to_metric_families

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, code_bytes
from fleet_testing import Device, Collector, enrol, free_port
from sojourn_testing import PATIENCE_S, check, check_accounts, json_rows, main, wait_for

FLIGHT = {"policy": 1, "name": "box", "mode": "flight",
          "flight": {"before": "20s", "after": "100ms", "memory": "64M"},
          "triggers": [{"on": "command", "do": ["dump"]}, {"on": "command", "name": "mine",
                                                           "do": ["dump"]}]}


class Api:
    """The HTTP API, with its token."""

    def __init__(self, collector, port):
        self.port = port
        with open(collector.database + ".token", encoding="utf-8") as file:
            self.token = file.read().strip()

    def ask(self, method, path, body=None, token=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        headers = {"Authorization": "Bearer " + (token or self.token)}
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(body)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content

    def get(self, path):
        status, content = self.ask("GET", path)
        check(status == 200, f"{path} gave {status}: {content}")
        return json.loads(content)

    def give(self, devices, kind, **arguments):
        status, content = self.ask("POST", "/api/v1/commands",
                                   {"devices": devices, "kind": kind, "arguments": arguments})
        check(status == 202, f"{kind} gave {status}: {content}")
        return json.loads(content)["commands"]

    def wait(self, command):
        path = f"/api/v1/commands/{command}"
        wait_for(f"command {command}",
                 lambda: self.get(path)["state"] not in ("preparing", "queued", "sent"))
        return self.get(path)


def ended(collector, session):
    rows = collector.sql(f"SELECT * FROM sessions WHERE lower(hex(uuid)) = '{session}' AND sent_calls "
                   "IS NOT NULL AND stored_blocks >= sent_blocks")
    return rows[0] if rows else None


def attach_and_leave(collector, device, program):
    target = Target([program]).ready()
    try:
        before = code_bytes(target.pid)
        told = collector.ask("--name", "late", device.name, "attach", str(target.pid))
        check(code_bytes(target.pid) != before, "nothing was hooked")
        again = collector.device(device.name, "attach", str(target.pid), code=1)
        check("recorded already" in again.stderr, f"a second attach: {again.stderr}")
        collector.ask(device.name, "mark", "begin", "login")
        collector.ask("--session", told["session"][:8], device.name, "mark", "end", "login")
        left = collector.ask(device.name, "detach", str(target.pid))
        check(left["left"] == target.pid and code_bytes(target.pid) == before, f"not left: {left}")
        row = wait_for("the attached session", lambda: ended(collector, told["session"]))
        check(row["name"] == "late" and row["stored_calls"] > 1000, f"attached: {row}")
        marks = collector.sql("SELECT name, is_end, source FROM marks ORDER BY mark_id")
        check([(m["name"], m["is_end"]) for m in marks] == [("login", 0), ("login", 1)],
              f"marks: {marks}")
        told = collector.ask("--for", "1", "--policy", "coverage", device.name, "attach", str(target.pid))
        row = wait_for("the end of the time", lambda: ended(collector, told["session"]))
        check(told["policy"] == "coverage" and row["mode"] == "profile", f"{told} {row}")
        check(code_bytes(target.pid) == before, "it was not left when the time was over")
        none = collector.device(device.name, "detach", str(target.pid), code=1)
        check("not recorded" in none.stderr, none.stderr)
        for pid in ("1", "2", "99999999"):
            collector.device(device.name, "attach", pid, code=1)
    finally:
        target.kill()


def policies(collector, device, ends):
    """The most specific rule wins. A device that is away gets it when it returns."""
    path = collector.sojourn.path("box.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(FLIGHT, file)
    collector.ask("all", "policy", "coverage")
    told = collector.ask(device.name, "launch", ends, "return")
    check((told["policy"], told["policy_from"]) == ("coverage", "collector"), f"for all: {told}")
    row = wait_for("the profile", lambda: ended(collector, told["session"]))
    check(row["mode"] == "profile", f"not as the policy says: {row}")
    collector.ask("tag:site=oslo", "policy", path)
    told = collector.ask(device.name, "launch", ends, "return")
    check(told["policy"] == "box", f"the tag's rule has to beat that of all: {told}")
    collector.ask("--app", "ends", device.name, "policy", "everything")
    told = collector.ask(device.name, "launch", "ends")
    check(told["policy"] == "everything", f"the app's rule on the device: {told}")
    told = collector.ask("--policy", "coverage", device.name, "launch", "ends")
    check((told["policy"], told["policy_from"]) == ("coverage", "command"), f"by command: {told}")
    device.stop()
    for scope in (["--app", "ends", device.name], ["tag:site=oslo"]):
        collector.device("--no-wait", *scope, "policy", "none")
    collector.device("all", "policy", "everything", "--wrong", code=2)
    device.start()
    wait_for("the device's own list",
             lambda: len(json.load(open(os.path.join(device.state, "sojourn/device/policies.json"),
                                        encoding="utf-8"))["rules"]) == 1)
    collector.ask("all", "policy", "none")
    told = collector.ask(device.name, "launch", "ends")
    check((told["policy"], told["policy_from"]) == ("", ""), f"no rule is left: {told}")
    collector.device("all", "policy", "none", code=3)
    collector.device("all", "policy", "/nowhere.json", code=3)
    rules = collector.sql("SELECT count(*) AS n FROM policy_rules WHERE set_by <> ''")[0]["n"]
    check(rules == 3, f"the audit of the rules has {rules}")


def flight(collector, device, ends):
    path = collector.sojourn.path("box.json")
    session = collector.ask("--policy", path, device.name, "launch", ends, "wait")["session"]
    refused = collector.device("--session", "ffff", device.name, "dump", code=1)
    check("nothing is being recorded" in refused.stderr, refused.stderr)
    wait_for("a sealed block", lambda: [name for _, _, files in os.walk(device.runtime)
                                        for name in files if name.startswith("flight-")])
    check(collector.ask(device.name, "dump", "mine")["sessions"] == [session], "the dump was not taken")
    child = wait_for("the dump", lambda: collector.sql(
        "SELECT c.* FROM sessions c JOIN sessions p ON c.parent_session_id = p.session_id WHERE "
        f"lower(hex(p.uuid)) = '{session}' AND c.stored_calls > 0"))
    check("mine" in child[0]["cause"], f"the cause is not reported: {child}")
    collector.ask(device.name, "stop", session[:10])
    plain = collector.ask(device.name, "launch", ends, "wait")["session"]
    refused = collector.device(device.name, "dump", code=1)
    check("refused" in refused.stderr, f"no policy waits for it: {refused.stderr}")
    collector.ask(device.name, "stop", plain)
    collector.device(device.name, "mark", "begin", "late", code=1)


def exports(collector, api, device):
    """function.txt has the same bytes here, in a directory of the device, and over HTTP."""
    session = collector.ask("--name", "told", device.name, "launch", "ends")["session"]
    here = collector.sojourn.path("here.txt")
    collector.device("-o", here, device.name, "export", session)
    with open(here, "rb") as file:
        text = file.read()
    check(text.count(b"enter:") == text.count(b"leave:") == 1003, "not every call is in the file")
    folder = os.path.join(device.state, "out")
    os.makedirs(folder)
    told = collector.ask("--to", folder, device.name, "export", session[:12])
    check(told["path"] == os.path.join(folder, "function.txt"), f"written to {told}")
    with open(told["path"], "rb") as file:
        check(file.read() == text, "the device's file is another")
    check(os.stat(told["path"]).st_mode & 0o777 == 0o600, "others can read it")
    check(os.listdir(folder) == ["function.txt"], "a part was left")
    report = collector.device("--format", "report.txt", device.name, "export", "last").stdout
    check("ends_step" in report and "total_ns" in report, f"the report: {report}")
    made = api.give(device.name, "export", session=session)[0]["command"]
    done = api.wait(made)
    check(done["state"] == "done" and done["file_bytes"] == len(text), f"over HTTP: {done}")
    status, content = api.ask("GET", f"/api/v1/commands/{made}/file")
    check(status == 200 and content == text, "the file over HTTP is another")
    collector.device("--to", "/nowhere/at/all", device.name, "export", session, code=1)
    collector.device("--format", "pdf", device.name, "export", session, code=1)
    collector.device("--to", "relative", device.name, "export", session, code=2)
    late = collector.device("--timeout", "1", device.name, "export", "abcdef", code=1)
    check("timed_out" in late.stderr and "did not come to its end" in late.stderr, late.stderr)
    mode = os.stat(collector.database + ".files").st_mode & 0o777
    check(mode == 0o700, f"the folder of exports has mode {mode:o}")


def time_outs(collector, device):
    """A device that is away and a preparation that takes too long are both reported, and leave nothing behind."""
    late = collector.device("--timeout", "1", device.name, "launch", "slow", code=1)
    check("did not begin within" in late.stderr or "timed_out" in late.stderr, late.stderr)
    row = wait_for("the end of the slow launch", lambda: collector.sql(
        "SELECT state, result FROM commands WHERE arguments LIKE '%slow%' AND state = 'failed'"))
    check("was cancelled" in row[0]["result"], f"what came of it: {row}")
    check(collector.ask(device.name, "status")["recording"] == 0, "it records in spite of that")
    failed = collector.device(device.name, "launch", "fails", code=1)
    check("preparation step 1" in failed.stderr, failed.stderr)
    wait_for("the slow step's end", lambda: subprocess.run(
        ["pgrep", "-f", "sleep 7654"], capture_output=True, check=False).returncode == 1)
    device.stop()
    away = collector.device("--timeout", "1", device.name, "status", code=1)
    check("timed_out: the device did not" in away.stderr, away.stderr)
    device.start()


def tags_and_sets(collector, device, second):
    """Both sides add tags. Tags name sets of devices, and devices of the same name are distinguished."""
    tags = {row["name"]: json.loads(row["tags"]) for row in collector.sql("SELECT name, tags FROM devices")}
    check(tags[device.name] == {"site": "oslo", "owner": "me"}, f"as enrolled: {tags}")
    collector.ask(device.name, "tag", "ring=beta", "owner=")
    done = device.run("set", "--tag", "site=bergen", "--tag", "shelf=3")
    check(done.returncode == 0, done.stderr)
    wait_for("the new tags", lambda: json.loads(
        collector.sql(f"SELECT tags FROM devices WHERE name = '{device.name}'")[0]["tags"]) ==
        {"site": "bergen", "shelf": "3", "ring": "beta"})
    device.run("set", "--tag", "site=oslo")
    wait_for("the tag", lambda: collector.sql("SELECT 1 FROM devices WHERE tags ->> 'site' = 'oslo'"))
    check(device.run("set", "--tag", "no value").returncode == 1, "a tag without a value")
    check(collector.device(device.name, "tag", "a b=c", code=2).stderr != "", "a key with a blank")
    answers = collector.ask("all", "status")
    check({a["device"]: a["result"]["recording"] for a in answers} ==
          {device.name: 0, second.name: 0}, f"all: {answers}")
    check([a["device"] for a in collector.ask("tag:ring", "ps")] == [device.name], "tag:ring is one")
    collector.device("tag:ring=alpha", "status", code=3)
    row = collector.sql("SELECT model, build, os, machine FROM devices LIMIT 1")[0]
    check(os.uname().release in row["build"] and row["machine"] == os.uname().machine, f"{row}")
    sessions = collector.sql("SELECT count(*) AS n FROM sessions JOIN devices USING (device_id) "
                       "WHERE devices.tags ->> 'ring' = 'beta'")[0]["n"]
    diff = collector.sojourn.run(["diff", "--json", "device-tag:ring=beta", "device-tag:ring=beta",
                            collector.database], capture_output=True, text=True)
    check(sessions > 0 and diff.returncode in (0, 4), f"diff of a tag: {diff.stderr}")
    second.run("set", "--name", device.name)
    wait_for("the same name", lambda: len(collector.sql(
        f"SELECT 1 FROM devices WHERE name = '{device.name}'")) == 2)
    twice = collector.device(device.name, "status", code=2)
    check("2 devices are called" in twice.stderr, twice.stderr)
    listed = json_rows(collector.sojourn.run(["devices", "--json", collector.database], capture_output=True,
                                        text=True).stdout)
    check(all("another device has this name" in row["note"] for row in listed), f"{listed}")
    check(collector.ask(listed[0]["uuid"], "status")["recording"] == 0, "by uuid")
    second.run("set", "--name", second.name)
    wait_for("its own name", lambda: len(collector.sql(
        f"SELECT 1 FROM devices WHERE name = '{device.name}'")) == 1)


def over_http(collector, api, device):
    """Tests the commands over HTTP, with their audit, devices, metrics and health."""
    devices = {row["name"]: row for row in api.get("/api/v1/devices")["items"]}
    check(devices[device.name]["enrolled"] == "yes", f"{devices}")
    command = api.give(device.name, "launch", app="ends", name="by http")[0]["command"]
    done = api.wait(command)
    check(done["state"] == "done" and done["requested_by"] == "token:admin", f"{done}")
    row = wait_for("its session", lambda: ended(collector, json.loads(done["result"])["session"]))
    check(row["name"] == "by http", f"{row}")
    failed = api.wait(api.give(device.name, "launch", app="nothing")[0]["command"])
    check(failed["state"] == "failed" and "no app" in failed["result"], f"{failed}")
    status, content = api.ask("POST", "/api/v1/commands", {"devices": "all", "kind": "status"},
                              token="0" * 64)
    check(status == 401 and b".token beside the database" in content, f"a wrong token gave {status}: {content}")
    status, content = api.ask("POST", "/api/v1/commands", {"devices": "all", "kind": "stauts"})
    check(status == 400 and b"did you mean" in content, f"{status} {content}")
    listed = api.get("/api/v1/commands?limit=500")["items"]
    check(all(row["state"] in ("done", "failed", "timed_out") and row["requested_by"]
              for row in listed), f"the audit: {[r for r in listed if not r['requested_by']]}")
    cli = collector.ask(device.name, "commands")
    check({row["kind"] for row in cli} >= {"launch", "attach", "export", "tags"}, f"{cli[:3]}")
    status, content = api.ask("GET", "/metrics")
    families = list(text_string_to_metric_families(content.decode()))  # this is Prometheus' own reader
    samples = {sample.name: sample.value for family in families for sample in family.samples}
    check(samples["sojourn_devices"] == 2 and samples["sojourn_devices_polling"] == 2, f"{samples}")
    check(samples["sojourn_devices_copied"] == 0 and samples["sojourn_refusing"] == 0, f"{samples}")
    check(samples["sojourn_ingest_lag_seconds"] > 0, f"{samples}")
    rules = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../collector-server/sojournd/sojourn.rules.yml")
    with open(rules, encoding="utf-8") as file:
        known = set(re.findall(r"\bsojourn_[a-z_]+", file.read()))
    check(len(known) >= 10 and known <= set(samples), f"the alert rules name no metrics: {known - set(samples)}")
    calls = collector.sql("SELECT sum(stored_calls) AS n FROM sessions")[0]["n"]
    check(samples["sojourn_stored_calls"] == calls, f"{samples['sojourn_stored_calls']} {calls}")
    check(samples["sojourn_frames_total"] > 0 and samples["sojourn_database_up"] == 1, f"{samples}")
    check(all(family.type in ("counter", "gauge") and family.documentation and len(family.samples) == 1
              for family in families), f"a metric without its type or text: {families}")
    status, content = api.ask("GET", "/healthz")
    check(status == 200 and json.loads(content)["status"] == "ok", f"{status} {content}")


def logs(collector, device):
    """Each line of both logs is one event in logfmt."""
    for path in (collector.sojourn.path("collector.log"), device.log_path):
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        check(lines != [], f"{path} is empty")
        for line in lines:
            keys = [part.split("=")[0] for part in line.split(" ", 4)]
            check(keys == ["time", "level", "program", "event", "message"] and line.endswith('"'),
                  f"no event: {line}")


def doctors(collector, device):
    done = device.run("doctor", "--json")
    checks = {row["check"]: row for row in json_rows(done.stdout)}
    for name in ("enrolment", "reachability", "certificate", "token", "versions", "agent"):
        check(checks[name]["ok"], f"the device's doctor: {checks[name]}")
    done = collector.sojourn.run(["doctor", "--json", "--database", collector.database, "--collector", collector.url],
                           capture_output=True, text=True)
    checks = {row["check"]: row for row in json_rows(done.stdout)}
    for name in ("database", "certificate", "private key", "reachability", "namesakes"):
        check(checks[name]["ok"], f"the collector's doctor: {checks[name]}")
    check((done.returncode == 0) == all(row["ok"] for row in checks.values()), "the exit code")
    key = collector.database + ".tls/key.pem"
    os.chmod(key, 0o644)
    done = collector.sojourn.run(["doctor", "--database", collector.database], capture_output=True, text=True)
    os.chmod(key, 0o600)
    check(done.returncode == 1 and "chmod 600" in done.stdout, f"an open key: {done.stdout}")
    os.rename(key, key + ".away")
    done = collector.sojourn.run(["doctor", "--database", collector.database], capture_output=True, text=True)
    os.rename(key + ".away", key)
    check(done.returncode == 1 and "the file is missing" in done.stdout and "chmod 600" not in done.stdout,
          f"without a key: {done.stdout}")
    collector.stop()
    done = device.run("doctor")
    check(done.returncode == 1 and "-> nothing answers at this address" in done.stdout,
          f"without a collector: {done.stdout}")
    collector.start()


def catalogue(device, ends):
    with open(os.path.join(device.state, "sojourn/device/apps.json"), "w",
              encoding="utf-8") as file:
        json.dump({"apps": [{"name": "ends", "command": [ends, "return"]},
                            {"name": "slow", "command": [ends, "return"],
                             "prepare": [["/usr/bin/sleep", "7654"]]},
                            {"name": "fails", "command": [ends, "return"],
                             "prepare": [["/usr/bin/false"]]}]}, file)


def test(sojourn, arguments):
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    ends = os.path.join(build, "tests/samples/ends")
    port = free_port()
    collector = Collector(sojourn, "--http", f"127.0.0.1:{port}")
    device = Device(sojourn, "phone7")
    second = Device(sojourn, "phone8")
    try:
        enrol(collector, device, "--tag", "site=oslo", "--tag", "owner=me")
        enrol(collector, second)
        catalogue(device, ends)
        device.start()
        second.start()
        wait_for("the token", lambda: os.path.exists(collector.database + ".token"))
        api = Api(collector, port)
        attach_and_leave(collector, device, arguments[0])
        policies(collector, device, ends)
        flight(collector, device, ends)
        exports(collector, api, device)
        time_outs(collector, device)
        tags_and_sets(collector, device, second)
        over_http(collector, api, device)
        doctors(collector, device)
        logs(collector, device)
        wait_for("an empty spool", lambda: not device.spool())
        check_accounts(sojourn, collector.database)
    finally:
        for party in (device, second, collector):
            if party.process is not None and party.process.poll() is None:
                party.process.kill()
                party.process.wait()


if __name__ == "__main__":
    sys.exit(main(test))
