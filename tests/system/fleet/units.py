#!/usr/bin/env python3
"""systemd itself starts both units in its own namespaces (units_boot.sh). The one command installs them, they are
confined as they say, they restart after kill -9, and recordings outlive their daemon.

units.py BUILD_FOLDER; exits with 77 if systemd or namespaces are not available.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, json_rows, main, wait_for

SKIPPED = 77
DATABASE = "/var/lib/sojourn-collector/lab.db"
CGROUP = "sojourn-test-"
CAP_SYS_PTRACE = 19
CAP_SYS_ADMIN = 21


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def remove_cgroup(cgroup):
    for folder, _, _ in os.walk(cgroup, topdown=False):
        os.rmdir(folder)


def remove_left_behind(base):
    """Removes control groups that killed tests have left. The processes of those tests have ended."""
    for name in os.listdir(base):
        if name.startswith(CGROUP) and not os.path.exists(f"/proc/{name.removeprefix(CGROUP)}"):
            with contextlib.suppress(OSError):  # the processes may still be ending
                remove_cgroup(os.path.join(base, name))


class Machine:
    """Namespaces with their own systemd."""

    def __init__(self, sojourn):
        hierarchy = "/sys/fs/cgroup/systemd"
        base = hierarchy if os.path.isdir(hierarchy) else "/sys/fs/cgroup"
        self.cgroup = os.path.join(base, f"{CGROUP}{os.getpid()}")
        folder = sojourn.path("machine")
        os.mkdir(folder)
        remove_left_behind(base)
        try:
            os.mkdir(self.cgroup)
        except OSError as error:
            skip(f"no control group of our own: {error}")
        build = os.path.dirname(os.path.dirname(sojourn.program))
        boot = os.path.join(os.path.dirname(os.path.abspath(__file__)), "units_boot.sh")
        self.log_path = sojourn.path("boot.log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec setpriv --pdeathsig KILL '
                 'unshare --mount --pid --fork --kill-child --uts --ipc --net --cgroup sh "$@"',
                 self.cgroup, boot, folder, build], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def first(self):
        """Returns the process id, in this machine's namespace, of the init process of the namespaces."""
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(path, encoding="ascii") as file:
            return (file.read().split() or [None])[0]

    def inside(self, *command):
        """Returns the command line that runs a command in the namespaces."""
        return ["nsenter", "-t", self.first(), "-m", "-u", "-i", "-n", "-p", "-C", "env", "-i",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *command]

    def try_to(self, *command):
        return subprocess.run(self.inside(*command), capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)

    def run(self, *command, code=0):
        done = self.try_to(*command)
        check(code is None or done.returncode == code, f"{command}: {done}")
        return done.stdout

    def is_up(self):
        if self.process.poll() is not None:
            with open(self.log_path, encoding="utf-8") as log:
                told = log.read().strip()
            check("the namespaces are made" not in told, f"the machine ended: {told}")
            skip(f"no systemd of our own: {told}")
        if self.first() is None:
            return False
        with open(f"/proc/{self.first()}/comm", encoding="ascii") as file:
            if file.read().strip() != "systemd":
                return False
        return self.run("systemctl", "is-system-running", code=None).strip() in (
            "running", "degraded")

    def show(self, unit, *properties):
        rows = self.run("systemctl", "show", unit, *(f"-p{name}" for name in properties))
        values = dict(row.split("=", 1) for row in rows.splitlines())
        return [values[name] for name in properties]

    def main_process(self, unit):
        state, pid = self.show(unit, "ActiveState", "MainPID")
        return int(pid) if state == "active" else 0

    def sql(self, query):
        return json_rows(self.run("sojourn", "sql", "--json", query, DATABASE))

    def device(self, *words):
        return json.loads(self.run("sojourn", "device", "--database", DATABASE, *words))

    def end(self):
        self.process.kill()
        self.process.wait()
        wait_for("the processes are gone", lambda: self.is_empty(self.cgroup))
        remove_cgroup(self.cgroup)

    @staticmethod
    def is_empty(cgroup):
        for folder, _, _ in os.walk(cgroup):
            with open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as file:
                if file.read():
                    return False
        return True


def collector_is_confined(machine):
    machine.run("systemctl", "start", "sojournd.service")
    wait_for("the collector's certificate",
             lambda: machine.run("sh", "-c", f"ls {DATABASE}.tls 2>/dev/null || true").split())
    status = machine.run("cat", f"/proc/{machine.main_process('sojournd')}/status")
    values = dict(line.split(":", 1) for line in status.splitlines())
    check("0" not in values["Uid"].split(), f"the collector runs as root: {values['Uid']}")
    check(values["NoNewPrivs"].strip() == "1" and int(values["CapEff"], 16) == 0,
          f"it may become more than it is: {values}")
    check(values["Seccomp"].strip() == "2", f"it may make every system call: {values}")
    seen = machine.run("find", "/var/lib/private/sojourn-collector", "-perm", "/077")
    check(seen == "", f"others can read {seen}")


def confined_collector_answers(machine):
    """A separate process, which inherits what the unit forbids, answers a statement of SQL."""
    machine.run("sh", "-c", f"echo Authorization: Bearer $(cat {DATABASE}.token) >/tmp/header")
    url = "http://127.0.0.1:8440/api/v1/sql?sql=SELECT%20count(*)%20AS%20n%20FROM%20sessions"
    told = machine.run("curl", "--silent", "--show-error", "--fail-with-body", "--header", "@/tmp/header", url)
    check(json.loads(told)["rows"] == [[1]], f"the number of sessions: {told}")


def backup_is_made(machine):
    """The unit makes a backup as the collector's user while the collector runs. The backup of last month is
    removed."""
    folder = "/var/lib/private/sojourn-backup"
    machine.run("systemctl", "start", "sojourn-backup.service")
    first = machine.run("find", folder, "-name", "lab-*.db").split()
    check(len(first) == 1, f"backups: {first}")
    check(machine.run("find", folder, "-perm", "/077") == "", "others can read the backup")
    machine.run("sojourn", "restore", first[0], "/tmp/restored.db")
    machine.run("touch", "--date", "30 days ago", first[0])
    machine.run("sh", "-c", f"mv {first[0]} {folder}/lab-old.db")
    machine.run("systemctl", "start", "sojourn-backup.service")
    names = machine.run("find", folder, "-name", "lab-*.db").split()
    check(len(names) == 1 and names != [f"{folder}/lab-old.db"], f"backups: {names}")


def device_is_confined(machine):
    """Programs that the daemon launches inherit what the unit forbids, and may do everything else."""
    status = machine.run("cat", f"/proc/{machine.main_process('sojourn-device')}/status")
    values = dict(line.split(":", 1) for line in status.splitlines())
    capabilities = int(values["CapEff"], 16)
    check(capabilities >> CAP_SYS_PTRACE & 1 and not capabilities >> CAP_SYS_ADMIN & 1,
          f"capabilities: {values['CapEff']}")
    check(values["NoNewPrivs"].strip() == "0", "launched programs cannot use sudo")


def processes_outside_the_unit_can_be_attached_to(machine):
    """A process outside of the unit's namespaces can be attached to. A process with its own filters cannot: it has
    fewer filters than the daemon, but different ones."""
    outside = subprocess.Popen(machine.inside("/opt/sojourn/attach_target"), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    pid = wait_for("the target", lambda: machine.run("pgrep", "-x", "attach_target", code=None)).strip()
    session = machine.device("unit", "attach", pid)["session"]
    machine.device("unit", "stop", session[:8])
    wait_for("the attached session", lambda: machine.sql(
        "SELECT stored_calls AS n FROM sessions WHERE state = 'completed' AND stored_calls > 0 AND "
        f"sent_calls = stored_calls + device_lost_calls AND lower(hex(uuid)) = '{session}'"))
    said, _ = outside.communicate()
    check(outside.returncode == 0, f"the target ended with {outside.returncode}: {said}")
    machine.run("systemd-run", "--unit=filtered", "--property=SystemCallFilter=~@reboot",
                "sleep", "infinity")
    filtered = wait_for("the other service", lambda: machine.main_process("filtered"))
    refused = machine.try_to("sojourn", "device", "--database", DATABASE, "unit", "attach", str(filtered))
    check(refused.returncode == 1 and "seccomp" in refused.stderr, f"attached to a confined one: {refused}")
    machine.run("systemctl", "stop", "filtered")


def device_is_installed(machine):
    machine.run("sojourn", "device", "--database", DATABASE, "--collector", "tls+tcp://127.0.0.1:7655",
                "invite", "/tmp/invitation")
    machine.run("/opt/sojourn/bin/sojourn-device-install", "--token-file", "/tmp/invitation",
                "--name", "unit")
    check(machine.run("systemctl", "is-enabled", "sojourn-device").strip() == "enabled", "enabled")
    machine.device("unit", "launch", "/opt/sojourn/ends", "return")
    wait_for("its session", lambda: machine.sql(
        "SELECT 1 AS n FROM sessions WHERE state = 'completed' AND stored_calls = 1003"))


def both_come_back(machine):
    """kill -9 of each: systemd restarts it, and a recording continues meanwhile."""
    session = machine.device("unit", "launch", "/opt/sojourn/ends", "wait")["session"]
    recorder = machine.run("pgrep", "-f", "^sojourn-device session").split()
    check(len(recorder) == 1, f"recorders: {recorder}")
    for unit in ("sojournd", "sojourn-device"):
        killed = machine.main_process(unit)
        machine.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", unit)
        wait_for(f"{unit} is back", lambda unit=unit, killed=killed: machine.main_process(unit)
                 not in (0, killed))
    machine.run("systemctl", "restart", "sojourn-device")
    check(machine.run("pgrep", "-f", "^sojourn-device session").split() == recorder,
          "the recording ended with its daemon")
    check(machine.device("unit", "stop", session[:8])["stopped"] == [session], "not stopped")
    wait_for("the recording is in the collector", lambda: machine.sql(
        "SELECT stored_calls AS n FROM sessions WHERE sent_calls = stored_calls + "
        f"device_lost_calls AND lower(hex(uuid)) = '{session}'"))


def units_stop_without_an_error(machine):
    for unit in ("sojourn-device", "sojournd"):
        machine.run("systemctl", "stop", unit)
        state, result, code = machine.show(unit, "ActiveState", "Result", "ExecMainStatus")
        check((state, result, code) == ("inactive", "success", "0"),
              f"{unit} ended so: {state} {result} {code}")


def test(sojourn, _arguments):
    if os.geteuid() != 0 or not os.path.exists("/lib/systemd/systemd"):
        skip("needs root and systemd")
    for program in ("unshare", "nsenter", "setpriv", "pivot_root"):
        if shutil.which(program) is None:
            skip(f"{program} is not there")
    # A test that is ended early still cleans up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    machine = Machine(sojourn)
    try:
        wait_for("systemd is up", machine.is_up)
        collector_is_confined(machine)
        device_is_installed(machine)
        confined_collector_answers(machine)
        backup_is_made(machine)
        device_is_confined(machine)
        processes_outside_the_unit_can_be_attached_to(machine)
        both_come_back(machine)
        units_stop_without_an_error(machine)
    finally:
        machine.end()


main(test)
