#!/usr/bin/env python3
"""The packages are built from `git archive` of the current commit, which has no .git. Two builds in folders of
different names give the same bytes, and lintian finds no error. The test compiles everything twice, so it runs with
SJ_LONG=1.

package_bytes.py BUILD_FOLDER SOURCE_FOLDER
"""
import glob
import hashlib
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, main


def built(source, name):
    """Returns the SHA-256 of each package that is built in a folder called `name`."""
    folder = os.path.abspath(name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(f"{folder}/tree")
    archive = subprocess.run(["git", "-C", source, "archive", "HEAD"], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", f"{folder}/tree"], input=archive, check=True)
    made = subprocess.run([f"{folder}/tree/package"], capture_output=True, text=True, check=False)
    check(made.returncode == 0, f"./package: {made.stdout[-4000:]}{made.stderr[-4000:]}")
    sums = {}
    for path in glob.glob(f"{folder}/tree/build/packages/*.*"):
        if path.endswith((".deb", ".tar.xz", ".spdx.json")):
            with open(path, "rb") as file:
                sums[os.path.basename(path)] = hashlib.sha256(file.read()).hexdigest()
    return sums


def test(_sojourn, arguments):
    one = built(arguments[0], "one")
    check(len(one) >= 9 and any("dbgsym" in name for name in one), f"packages: {sorted(one)}")
    two = built(arguments[0], "another-folder")
    check(one == two, f"other bytes: {sorted(set(one.items()) ^ set(two.items()))}")


main(test, checks_sums=False)
