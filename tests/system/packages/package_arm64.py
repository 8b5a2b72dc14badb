#!/usr/bin/env python3
"""`./package --arch arm64` makes packages whose objects are for AArch64 and whose dependencies Debian has for arm64. The
device's program in the tarball starts with the tarball's own libraries. The test compiles everything, so it runs with
SJ_LONG=1.

package_arm64.py BUILD_FOLDER SOURCE_FOLDER
"""
import glob
import lzma
import os
import re
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from package_roots import MIRROR, OURS
from sojourn_testing import check, main

MOST_BYTES = 6000000


def output_of(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def made(sojourn, source):
    """Makes the packages, and returns their folder."""
    folder, environment = sojourn.path("packages"), {**os.environ, "SJ_SYSROOT": sojourn.path("sysroot")}
    output_of(f"{source}/.ci/sysroot", environment["SJ_SYSROOT"])
    done = subprocess.run([f"{source}/package", "--arch", "arm64", "--output", folder], capture_output=True, text=True,
                          check=False, env=environment)
    check(done.returncode == 0, f"./package: {done.stdout[-4000:]}{done.stderr[-4000:]}")
    return folder


def versions_of_debian():
    """Returns the version of each package that Debian 12 has for arm64."""
    with urllib.request.urlopen(f"{MIRROR}/dists/bookworm/main/binary-arm64/Packages.xz") as answer:
        text = lzma.decompress(answer.read()).decode()
    return dict(re.findall(r"^Package: (\S+)\n(?:.+\n)*?Version: (\S+)", text, re.M))


def objects_are_for_aarch64(folder):
    """All programs and libraries of a folder are for AArch64. Returns their number."""
    count = 0
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                head = file.read(20)
            if head[:4] == b"\x7fELF":
                check(head[18] == 183, f"{path} is for another machine: {head[18]}")
                count += 1
    return count


def dependencies_exist(file, known):
    for choice in output_of("dpkg-deb", "-f", file, "Depends").split(","):
        name, _, version = choice.strip().partition(" ")
        name = name.split(":")[0]
        if not name or name in OURS:
            continue
        check(name in known, f"{file} needs {name}, which Debian does not have for arm64")
        if version:
            relation, wanted = version.strip("()").split()
            check(subprocess.run(["dpkg", "--compare-versions", known[name], relation, wanted], check=False).returncode == 0,
                  f"{file} needs {choice}, and Debian has {known[name]}")


def tarball_starts(sojourn, folder):
    archive = glob.glob(f"{folder}/sojourn-device-*-aarch64.tar.xz")
    check(len(archive) == 1 and os.path.getsize(archive[0]) < MOST_BYTES, f"the tarball: {archive}")
    unpacked = sojourn.path("device")
    os.mkdir(unpacked)
    output_of("tar", "-xJf", archive[0], "-C", unpacked, "--strip-components=1")
    check(objects_are_for_aarch64(unpacked) > 5, "the tarball has few libraries")
    printed = output_of("qemu-aarch64", f"{unpacked}/lib/ld.so", "--library-path", f"{unpacked}/lib",
                        f"{unpacked}/bin/sojourn-device", "--version")
    check(re.match(r"sojourn-device \d", printed), f"its version: {printed}")


def test(sojourn, arguments):
    folder = made(sojourn, arguments[0])
    files = [file for file in glob.glob(f"{folder}/*.deb") if "dbgsym" not in file]
    check(sorted(os.path.basename(file).split("_")[0] for file in files) == sorted(OURS), f"packages: {files}")
    known = versions_of_debian()
    for file in files:
        unpacked = sojourn.path(os.path.basename(file))
        output_of("dpkg-deb", "-x", file, unpacked)
        architecture = output_of("dpkg-deb", "-f", file, "Architecture").strip()
        check(architecture == ("all" if "_all" in file else "arm64"), f"{file} is for {architecture}")
        objects_are_for_aarch64(unpacked)
        dependencies_exist(file, known)
    tarball_starts(sojourn, folder)


main(test, checks_sums=False)
