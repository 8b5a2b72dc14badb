#!/usr/bin/env python3
"""plan_seeds.py BUILD_FOLDER: recreates the seeds in tests/fuzz/corpus/plan_check.

Run it after the format of plans has changed. The seeds are plans of small programs, and variants of the first
plan in which one field each is wrong.
"""
import glob
import os
import shutil
import struct
import subprocess
import sys
import tempfile

FOLDER = "/tmp/sojourn-plan-seeds" # a plan names its module
CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus/plan_check")
PROGRAMS = {"gcc": "agent/planner/sample-gcc-Os", "clang": "agent/planner/sample-clang-stripped",
            "sleds": "agent/planner/sample-clang-sleds", "shapes": "agent/planner/shapes"}
COUNTS = 72 # offset of function_count in sj_plan_header; ten words of counts and places follow
WORDS = 10
TABLES = {"function": (0, 48), "stub": (1, 16), "patch": (3, 40)} # place of the pair, element's bytes


def plan_of(sojourn, program):
    """The plan of a program that is recorded with an empty cache."""
    with tempfile.TemporaryDirectory() as home:
        environment = dict(os.environ, XDG_CACHE_HOME=home, XDG_STATE_HOME=home, XDG_RUNTIME_DIR=home)
        subprocess.run([sojourn, "record", "-q", "--library-calls", "-o", os.path.join(home, "plan.db"),
                        "--", program], env=environment, check=False, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, timeout=60)
        plans = glob.glob(os.path.join(home, "sojourn/plans", "*.plan"))
        with open(max(plans, key=os.path.getsize), "rb") as file:
            return file.read()


def liars(plan):
    """The plan with each word of its counts, and of its tables' last elements, too large."""
    pairs = struct.unpack_from(f"<{WORDS}I", plan, COUNTS)
    places = [COUNTS + 4 * i for i in range(WORDS)]
    for pair, size in TABLES.values():
        count, start = pairs[2 * pair:2 * pair + 2]
        places += range(start + (count - 1) * size, start + count * size, 4)
    for place in places:
        changed = bytearray(plan)
        struct.pack_into("<I", changed, place, 0x7fffffff)
        yield bytes(changed)


def main():
    build = sys.argv[1]
    os.makedirs(FOLDER, exist_ok=True)
    for old in glob.glob(os.path.join(CORPUS, "*.plan")) + glob.glob(os.path.join(CORPUS, "lying*")):
        os.unlink(old)
    for name, program in PROGRAMS.items():
        copy = shutil.copy(os.path.join(build, "tests", program), FOLDER)
        plan = plan_of(os.path.join(build, "bin/sojourn"), copy)
        with open(os.path.join(CORPUS, f"{name}.plan"), "wb") as file:
            file.write(plan)
        for i, lie in enumerate(liars(plan) if name == "shapes" else []):
            with open(os.path.join(CORPUS, f"lying{i:02}"), "wb") as file:
                file.write(lie)
    shutil.rmtree(FOLDER)


if __name__ == "__main__":
    main()
