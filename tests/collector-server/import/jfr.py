#!/usr/bin/env python3
"""Imports recordings of JDK Flight Recorder, which Debian's JDK makes, and compares the samples of each call path with
what the JDK's own `jfr print` says. Files that are cut or damaged are refused, or imported whole.

jfr.py BUILD_FOLDER
"""
import json
import os
import random
import subprocess
import sys
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "system", "support"))
from sojourn_testing import check, main
from foreign_files import asked, imported, refused

JDK = "/usr/lib/jvm/java-17-openjdk-amd64/bin"
CPU_MS = "1500"


def printed(file):
    """Returns the number of samples of each call path, the outermost function first, as `jfr print` has them."""
    done = subprocess.run([f"{JDK}/jfr", "print", "--json", "--stack-depth", "2048", "--events", "jdk.ExecutionSample", file],
                          check=True, capture_output=True, text=True)
    paths = Counter()
    for event in json.loads(done.stdout)["recording"]["events"]:
        methods = [frame["method"] for frame in event["values"]["stackTrace"]["frames"]]
        paths[tuple(f"{one['type']['name'].replace('/', '.')}.{one['name']}{one['descriptor']}" for one in reversed(methods))] += 1
    return paths


def stored(sojourn, database, session):
    paths, path = Counter(), []
    for row in asked(sojourn, database, f"SELECT depth, name, calls, self_ns FROM call_tree({session})"):
        path = path[:row["depth"]] + [row["name"]]
        paths[tuple(path)] = int(row["self_ns"])
    return +paths


def recording(sojourn, settings):
    file = sojourn.path(f"{settings}.jfr")
    subprocess.run([f"{JDK}/javac", "-encoding", "UTF-8", "-d", sojourn.folder, os.path.join(HERE, "Work.java")], check=True)
    subprocess.run([f"{JDK}/java", f"-XX:StartFlightRecording=filename={file},settings={settings}", "-cp", sojourn.folder, "Work", CPU_MS],
                   check=True, capture_output=True)
    return file


def test_samples(sojourn, database, file):
    done = imported(sojourn, database, file)
    found, wanted = stored(sojourn, database, done["session_id"]), printed(file)
    check(found == wanted and sum(wanted.values()) > 10, f"{found - wanted}, wanted {wanted - found}")
    names = {name for path in wanted for name in path}
    for name in ("Work.fold([JI)J", "Work.fold([I)J", "Work.größe([I)J", "Work.main([Ljava/lang/String;)V"):
        check(name in names, f"no {name} in {names}")
    return wanted


def test_chunks(sojourn, database, file, wanted):
    """A recording of two chunks is one chunk behind the other."""
    twice = sojourn.path("twice.jfr")
    with open(file, "rb") as one, open(twice, "wb") as both:
        both.write(one.read() * 2)
    done = imported(sojourn, database, twice)
    found = stored(sojourn, database, done["session_id"])
    check(found == Counter({path: 2 * count for path, count in wanted.items()}), f"{found} of two chunks, {wanted} of one")


def test_damage(sojourn, database, file):
    with open(file, "rb") as whole:
        sound = whole.read()
    damaged = sojourn.path("damaged.jfr")

    def write(content):
        with open(damaged, "wb") as output:
            output.write(content)

    for size in (100, len(sound) // 3, len(sound) - 1):
        write(sound[:size])
        refused(sojourn, database, 1, "byte ", damaged)
    write(sound[:8] + bytes(8) + sound[16:])
    refused(sojourn, database, 1, "jfr assemble", damaged)
    write(sound[:5] + b"\x09" + sound[6:])
    refused(sojourn, database, 1, "version 9 of the format is not known", damaged)
    seed = random.randrange(1 << 32)
    source = random.Random(seed)
    for _ in range(20):
        content = bytearray(sound)
        for at in source.sample(range(16, len(sound)), 50):
            content[at] = source.randrange(256)
        write(content)
        done = sojourn.run(["import", "-d", database, damaged], capture_output=True, text=True)
        check(done.returncode in (0, 1), f"seed {seed}: {done}")
    done = sojourn.run(["verify", database], capture_output=True, text=True)
    check(done.returncode == 0, f"seed {seed}: {done}")


def test(sojourn, _):
    database = sojourn.path("imported.db")
    file = recording(sojourn, "profile")
    wanted = test_samples(sojourn, database, file)
    test_chunks(sojourn, database, file, wanted)
    test_damage(sojourn, database, file)


if __name__ == "__main__":
    main(test)
