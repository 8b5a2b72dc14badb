#!/usr/bin/env python3
"""The life of the Debian packages in a fresh root: install, README's first command, a collector and an enrolled device,
remove, purge. The root has the packages that ours depend on, and no others beside the minimal system.

package_life.py BUILD_FOLDER PACKAGES_FOLDER; exits with 77 if debootstrap, root or namespaces are not available.
"""
import glob
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fresh_root import Root, cached_root, enter_namespaces
from package_roots import (DATABASE, MIRROR, OURS, dependencies, invite, make_state_folders, start_collector,
                           start_device, started_by)
from sojourn_testing import check, main, wait_for

PERL = ("perl", "-e", "my %count; for my $n (1 .. 300) { $count{chr 97 + $n * 7 % 26}++ } print scalar(keys %count)")
# Apt, dpkg and the loader change these files for any package.
BOOKKEEPING = re.compile(r"/(var/lib/(dpkg|apt)|var/cache/(apt|debconf|ldconfig)|var/log|etc/ld\.so\.cache|srv|root|tmp)(/|$)")


def parts_are_listed(folder, files):
    """The SPDX document lists all dependencies, the dashboard's packages, and the checksum of each file."""
    with open(glob.glob(f"{folder}/*.spdx.json")[0], encoding="utf-8") as file:
        document = json.load(file)
    names = {package["name"] for package in document["packages"]}
    missing = {*dependencies(files), "libc6", "preact", "uplot", *map(os.path.basename, files)} - names
    check(not missing, f"the SPDX document lacks {missing}")
    check("playwright-core" not in names, "the SPDX document has a tool of the tests")
    known = {package["SPDXID"] for package in document["packages"]} | {"SPDXRef-DOCUMENT"}
    for relation in document["relationships"]:
        check({relation["spdxElementId"], relation["relatedSpdxElement"]} <= known, f"unknown: {relation}")
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=folder, check=True)


def all_libraries_are_found(root):
    """The loader finds all libraries of each program and library, also those that are loaded late."""
    for path in root.run("sh", "-c", "dpkg -L sojourn sojourn-agent sojourn-collector sojourn-device | "
                         "grep -E '/bin/|[.]so$' | grep -v -e install -e aarch64 | xargs ls -d").splitlines():
        if os.path.isfile(root.path + path):
            check("not found" not in root.run("ldd", path), f"{path}: {root.run('ldd', path)}")
    agent = "/usr/lib/sojourn/libsojourn-agent-aarch64.so"
    listed = json.loads(root.run("sojourn", "functions", "--json", agent))
    check(len(listed["rows"]) > 0, "Capstone did not find functions of an AArch64 file")
    tried = root.try_to("sojourn", "sql", "--cluster", "http://127.0.0.1:1", "SELECT 1")
    check("libcurl" not in tried.stderr, f"libcurl: {tried.stderr}")


def first_command(root):
    check(root.try_to("sh", "-c", "command -v gcc cc").returncode != 0, "the fresh root has a compiler")
    printed = root.run("sojourn", "record", "-o", "/srv/run.db", "--", *PERL)
    check("lost       nothing" in printed or "26" in printed, f"record: {printed}")
    tree = root.run("sojourn", "tree", "--depth", "6", "/srv/run.db")
    read = "import sojourn; print(len(list(sojourn.open('/srv/run.db').calls(function='perl_*', limit=10))))"
    check(int(root.run("python3", "-c", read)) > 0, "the Python package reads no call")
    check("perl_run" in tree and "Perl_runops_standard" in tree, f"tree: {tree}")


def reads_its_configuration(root, unit):
    command = started_by(root, unit)
    check("--config" in command, f"{unit} is started by {command}")
    root.run(*command, "--print-config")


def device_is_enrolled(sojourn, root):
    """The collector and the device run as their units start them, and a launched program's session arrives."""
    make_state_folders(root)
    for unit in ("sojournd", "sojourn-device"):
        reads_its_configuration(root, unit)
    collector = start_collector(root, sojourn.path("sojournd.log"))
    invitation = invite(root)
    printed = root.run("sojourn-device-install", "--token-file", invitation, "--name", "unit")
    check("Installed in" not in printed, "the script replaced files of the package")
    check(not os.path.exists(f"{root.path}/etc/systemd/system/sojourn-device.service"), "a second unit")
    device = start_device(root, sojourn.path("sojourn-device.log"))
    root.run("sojourn", "device", "--database", DATABASE, "unit", "launch", "/usr/bin/perl", "-e", "1")
    question = "SELECT state AS s FROM sessions WHERE stored_calls > 100"
    wait_for("the session of the launched program", lambda: "completed" in root.run(
        "sojourn", "sql", "--json", question, DATABASE))
    for daemon in (device, collector):
        daemon.terminate()
        check(daemon.wait() == 0, f"{daemon.args} ended by {daemon.returncode}")


def leaves_nothing(root, before):
    root.run("apt-get", "-q", "-y", "remove", *OURS)
    check(not os.path.exists(f"{root.path}/usr/bin/sojourn"), "a removed program is there")
    check(os.path.exists(root.path + DATABASE), "a removal deleted the database")
    check(os.path.exists(f"{root.path}/var/lib/sojourn/device/collector.json"), "a removal deleted the enrolment")
    root.run("dpkg", "--purge", *OURS)
    left = sorted(path for path in root.files() - before if not BOOKKEEPING.match(path))
    check(not left, f"a purge left: {left}")
    gone = sorted(path for path in before - root.files() if not BOOKKEEPING.match(path))
    check(not gone, f"a purge removed what was there before: {gone}")


def test(sojourn, arguments):
    files = glob.glob(f"{arguments[0]}/*.deb")
    if not os.environ.get("SJ_INSIDE_NAMESPACES"):
        names = sorted(os.path.basename(file).split("_")[0] for file in files)
        check(names == sorted(OURS), f"packages: {names}")
        parts_are_listed(arguments[0], files)
        os.environ["SJ_BASE_ROOT"] = cached_root("bookworm", "bookworm", MIRROR, dependencies(files))
    enter_namespaces()
    root = Root(os.environ["SJ_BASE_ROOT"], os.path.abspath("mounted-life"))
    before = root.files()
    os.mkdir(f"{root.path}/srv/packages")
    for file in files:
        root.put(file, "/srv/packages")
    root.run("sh", "-c", "apt-get -q -y install /srv/packages/*.deb")
    all_libraries_are_found(root)
    first_command(root)
    device_is_enrolled(sojourn, root)
    leaves_nothing(root, before)


main(test, checks_sums=False)
