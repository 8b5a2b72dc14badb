#!/usr/bin/env python3
"""A Java runtime lies in the program's folder (jlink): Java methods are recorded, and none of the runtime's native
functions. --libs records these.

java_image.py BUILD_FOLDER
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from java_programs import sample_classes
from sojourn_testing import PATIENCE_S, check, check_accounts, main

def recorded_modules(sojourn, java, classes, name, options=()):
    database = sojourn.path(name)
    done, _ = sojourn.record([java, "-Xint", "-cp", classes, "Own"], database, options, text=True)
    check(done.returncode == 0 and "Own.none()ret:-" in done.stdout, f"{name}: {done}")
    check_accounts(sojourn, database)
    rows = sojourn.sql(database, "SELECT DISTINCT m.path AS path FROM calls c JOIN functions f USING (function_id) "
                                 "JOIN modules m USING (module_id)")
    return {os.path.basename(row["path"]) for row in rows}


def test(sojourn, _):
    classes = sample_classes(sojourn)
    image = sojourn.path("application/image")
    os.makedirs(os.path.dirname(image))
    subprocess.run(["jlink", "--add-modules", "java.base", "--output", image], check=True, timeout=PATIENCE_S)
    java = os.path.join(image, "bin", "java")
    found = recorded_modules(sojourn, java, classes, "image.db")
    check("jvm:Own" in found and not {name for name in found if name.startswith("lib")}, f"recorded {found}")
    found = recorded_modules(sojourn, java, classes, "libs.db", ["--libs", "--function", "JNI_CreateJavaVM"])
    check("libjvm.so" in found, f"--libs: recorded {found}")


main(test)
