"""Helpers for the tests of a fleet: a collector and its devices."""
import contextlib
import json
import os
import signal
import socket
import subprocess

from sojourn_testing import PATIENCE_S, check, json_rows, wait_for


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def accepts_connections(port):
    """True if a collector listens at the address. Its database then has its tables."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Collector:
    """A collector server. It requires tokens at a TLS address that other machines could reach, and none at an
    address of this machine only."""

    def __init__(self, sojourn, *options, host="0.0.0.0", name="lab", environment=None):
        self.sojourn = sojourn
        self.environment = environment
        self.options = options
        self.host = host
        self.database = sojourn.path(name + ".db")
        self.port = free_port()
        self.url = f"tls+tcp://127.0.0.1:{self.port}"
        self.log = open(sojourn.path(("collector" if name == "lab" else name) + ".log"), "ab")
        self.process = None
        self.start()

    def start(self):
        program = os.path.join(os.path.dirname(self.sojourn.program), "sojournd")
        self.process = subprocess.Popen(
            [program, "--listen", f"tls+tcp://{self.host}:{self.port}", "--database", self.database,
             *self.options],
            stderr=self.log, env=self.environment)
        wait_for("the collector's certificate", lambda: os.path.exists(self.database + ".tls"))
        wait_for("the collector's port", self.is_open)

    def is_open(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(PATIENCE_S)

    def device(self, *words, code=0):
        done = self.sojourn.run(["device", "--database", self.database, *words],
                                capture_output=True, text=True, timeout=PATIENCE_S,
                                env=self.environment or self.sojourn.environment)
        check(done.returncode == code, f"device {words}: {done.returncode} {done.stderr}")
        return done

    def ask(self, *words):
        written = json.loads(self.device(*words).stdout)
        return written["rows"] if isinstance(written, dict) and set(written) == {"schema", "rows"} else written

    def sql(self, query):
        return self.sojourn.sql(self.database, query)


class Device:
    """One device: a state directory of its own and, in most tests, its daemon."""

    def __init__(self, sojourn, name):
        self.program = os.path.join(os.path.dirname(sojourn.program), "sojourn-device")
        self.name = name
        self.state = sojourn.path(name)
        runtime = sojourn.path(name + "-run")
        os.makedirs(runtime, mode=0o700)
        self.environment = dict(sojourn.environment, XDG_STATE_HOME=self.state,
                                XDG_RUNTIME_DIR=runtime)
        self.runtime = runtime
        self.log_path = sojourn.path(name + ".log")
        self.log = open(self.log_path, "ab")
        self.process = None

    def run(self, *words):
        return subprocess.run([self.program, *words], env=self.environment, capture_output=True,
                              text=True, timeout=PATIENCE_S)

    def start(self, *options):
        self.process = subprocess.Popen([self.program, "run", *options], env=self.environment,
                                        stderr=self.log)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(PATIENCE_S)

    def log_says(self, text):
        with open(self.log_path, encoding="utf-8") as file:
            return text in file.read()

    def spool(self):
        folder = os.path.join(self.state, "sojourn/device/spool")
        return os.listdir(folder) if os.path.isdir(folder) else []

    def spool_bytes(self):
        total = 0
        for path, _, files in os.walk(os.path.join(self.state, "sojourn/device/spool")):
            for name in files:
                with contextlib.suppress(FileNotFoundError):
                    total += os.stat(os.path.join(path, name)).st_size
        return total

    def wait_for_more(self):
        """Waits until the recorders keep more data on the device than now."""
        before = self.spool_bytes()
        wait_for("a spool that grows", lambda: self.spool_bytes() > before)


def enrol_again(collector, device):
    """Enrols a device again that has had a token. An invitation for this device works, and an invitation for another
    device does not."""
    plain, own = (collector.sojourn.path(f"{device.name}.{kind}") for kind in ("plain", "own"))
    collector.device("--collector", collector.url, "invite", plain)
    collector.device("--collector", collector.url, "invite", own, device.name)
    done = device.run("enroll", "--token-file", plain, "--name", device.name)
    check(done.returncode != 0 and "enrolled already" in done.stderr, f"taken over: {done.stderr}")
    done = device.run("enroll", "--token-file", own, "--name", device.name)
    check(done.returncode == 0, f"enroll again: {done.stderr}")
    rows = json_rows(collector.sojourn.run(["devices", "--json", collector.database],
                                            capture_output=True, text=True).stdout)
    note = next(row["note"] for row in rows if row["name"] == device.name)
    check(note.startswith("taken over 20"), f"devices does not report it: {rows}")


def device_id(collector, name):
    """Returns the 16 bytes that identify a device."""
    rows = collector.sql(f"SELECT hex(uuid) AS uuid FROM devices WHERE name = '{name}'")
    check(len(rows) == 1, f"devices called {name}: {rows}")
    return bytes.fromhex(rows[0]["uuid"])


def enrol(collector, device, *options):
    invitation = collector.sojourn.path(device.name + ".invitation")
    collector.device("--collector", collector.url, "invite", invitation)
    check(os.stat(invitation).st_mode & 0o77 == 0, "others can read the invitation")
    done = device.run("enroll", "--token-file", invitation, "--name", device.name, *options)
    check(done.returncode == 0, f"enroll: {done.stderr}")
    kept = os.path.join(device.state, "sojourn/device/collector.json")
    check(os.stat(kept).st_mode & 0o77 == 0, "others can read the token")
    with open(kept, encoding="utf-8") as file:
        token = json.load(file)["token"]
    again = device.run("enroll", "--token-file", invitation)
    check(again.returncode != 0 and "used or expired" in again.stderr, "an invitation held twice")
    return token
