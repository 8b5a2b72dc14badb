#!/usr/bin/env python3
"""Exports a recording in each format to a disk that is full before the export ends, and imports into a database on such
a disk. No file with the final name appears, an older file stays as it was, and a database has no part of the import.

full_disk.py BUILD_FOLDER
"""
import contextlib
import hashlib
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "system", "support"))
from sojourn_testing import check, main

SOURCE = os.path.join(HERE, "..", "import", "foreign_calls.c")
KIB = 1024
ENDINGS = {"chrome-json": "json", "otlp-proto": "otlp.pb"}


@contextlib.contextmanager
def small_disk(sojourn, size):
    """A file system of `size` bytes."""
    disk = sojourn.path("disk")
    os.makedirs(disk, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", disk], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def formats(sojourn):
    """The formats that the command lists."""
    done = sojourn.run(["export", "--format", "none"], capture_output=True, text=True)
    words = re.search(r"it takes (.*)", done.stderr)
    check(words is not None, f"{done}")
    return re.split(r", | or ", words[1].strip())


def content_of(folder):
    """The files of a folder, and a sum of each."""
    found = {}
    for place, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(place, name), "rb") as file:
                found[os.path.relpath(os.path.join(place, name), folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


def options_of(name):
    return ["--depth", "100"] if name in ("otlp", "otlp-proto") else []


def size_of(sojourn, database, name):
    out = sojourn.path(f"whole.{name}")
    sojourn.run(["export", "--format", name, "-o", out, *options_of(name), database], check=True, capture_output=True)
    return sum(os.path.getsize(os.path.join(place, file)) for place, _, files in os.walk(out) for file in files) if os.path.isdir(out) \
        else os.path.getsize(out)


def fill(path, leave):
    """Fills the disk until `leave` bytes are free."""
    with open(path, "ab") as file:
        disk = os.statvfs(os.path.dirname(path))
        file.write(bytes(disk.f_bavail * disk.f_frsize - leave))


def test_export(sojourn, database, name):
    """A disk with a quarter of the pages that the export needs, with an older file on it."""
    page = os.sysconf("SC_PAGESIZE")
    size = size_of(sojourn, database, name)
    with small_disk(sojourn, 1024 * KIB + size) as disk:
        target = os.path.join(disk, f"out.{ENDINGS.get(name, name)}")
        if name != "ctf":  # a folder does not replace an older one
            with open(target, "w", encoding="utf-8") as file:
                file.write("older\n")
        fill(os.path.join(disk, "filler"), size // 4 // page * page)
        before = content_of(disk)
        done = sojourn.run(["export", "--format", name, "-o", target, *options_of(name), database], capture_output=True, text=True)
        check(done.returncode == 1 and "No space left on device" in done.stderr, f"{name}, {size} bytes: {done}")
        check(content_of(disk) == before and len(os.listdir(disk)) == len(before), f"{name}: {os.listdir(disk)}")


def test_import(sojourn, recorded):
    file = sojourn.path("calls.json")
    sojourn.run(["export", "-o", file, recorded], check=True, capture_output=True)
    sizes = (64 * KIB, 256 * KIB, 512 * KIB, 1024 * KIB)
    for size in sizes:
        with small_disk(sojourn, size) as disk:
            target = os.path.join(disk, "new.db")
            done = sojourn.run(["import", "-d", target, file], capture_output=True, text=True)
            check(done.returncode == 1 and re.search("full|No space", done.stderr), f"{size}: {done}")
            if os.path.exists(target):
                counted = sojourn.run(["sql", "--csv", "SELECT count(*) FROM sessions", target], capture_output=True, text=True)
                check(counted.stdout.split() in ([], ["count(*)", "0"]), f"{size}: {counted}")
            left = [name for name in os.listdir(disk) if not name.startswith("new.db")]
            check(not left, f"{size}: {left}")


def test(sojourn, _):
    database, program = sojourn.path("a.db"), sojourn.path("app")
    subprocess.run(["gcc", "-O1", "-g", "-pthread", SOURCE, "-o", program], check=True)
    sojourn.run(["record", "-q", "-o", database, "--", program], check=True, capture_output=True)
    sojourn.run(["symbols", "-d", database, "add", program], check=True, capture_output=True)
    known = formats(sojourn)
    check(len(known) > 15, f"formats {known}")
    for name in known:
        test_export(sojourn, database, name)
    test_import(sojourn, database)


if __name__ == "__main__":
    main(test)
