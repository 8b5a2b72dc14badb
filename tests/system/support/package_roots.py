"""Helpers for tests of the Debian packages: names, dependencies, and a collector and a device that run as the units of
the packages start them."""
import os
import re
import subprocess

from sojourn_testing import wait_for

MIRROR = "http://deb.debian.org/debian"
OURS = ("python3-sojourn", "sojourn", "sojourn-agent", "sojourn-collector", "sojourn-dev", "sojourn-device")
DATABASE = "/var/lib/sojourn-collector/lab.db"
COLLECTOR = "tls+tcp://127.0.0.1:7655"


def dependencies(files):
    """Returns the names of the packages that ours depend on."""
    names = set()
    for file in files:
        field = subprocess.run(["dpkg-deb", "-f", file, "Depends"], check=True, capture_output=True, text=True).stdout
        names |= {word.split()[0].split(":")[0] for word in field.split(",") if word.strip()}
    return sorted(names - set(OURS) - {"libc6"})


def started_by(root, unit):
    """Returns the command line of a unit. It reads the configuration file of the unit's package."""
    with open(f"{root.path}/lib/systemd/system/{unit}.service", encoding="utf-8") as file:
        return re.search(r"^ExecStart=(.*)$", file.read(), re.M)[1].split()


def make_state_folders(root):
    """Makes the folders that systemd would make for the units."""
    for folder in ("sojourn-collector", "sojourn"):
        os.makedirs(f"{root.path}/var/lib/{folder}", mode=0o700, exist_ok=True)


def start_collector(root, log):
    """Starts the collector, and waits until it collects."""
    collector = root.start(*started_by(root, "sojournd"), log=log)
    wait_for("the collector", lambda: "collecting into" in open(log, encoding="utf-8").read())
    return collector


def start_device(root, log):
    """Starts the daemon of the device."""
    return root.start("env", "XDG_STATE_HOME=/var/lib", "XDG_CACHE_HOME=/var/cache",
                      *started_by(root, "sojourn-device"), log=log)


def invite(root):
    """Writes an invitation for a device, and returns its path in the root."""
    root.run("sojourn", "device", "--database", DATABASE, "--collector", COLLECTOR, "invite", "/srv/invitation")
    return "/srv/invitation"
