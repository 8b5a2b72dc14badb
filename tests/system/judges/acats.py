"""Finds and builds the tests of the Ada Conformity Assessment Test Suite (ACATS) that gcc's source
package holds. The steps are those of gcc's run_all.sh; they write into the unpacked source."""
import glob
import os
import re
import shutil
import subprocess

BUILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "build_acats_test.sh")
# run_all.sh fills in these values on a machine of 64 bits.
FILLED_IN = {"ACATS4GNATBIT": "64", "ACATS4GNATINSN": "nop", "ACATS4GNATMAXINT": str(2**127 - 1),
             "ACATS4GNATMININT": str(-2**127)}
# The suite lists the tests that need one more flag, in one file for each flag.
FLAGS = {"overflow": "-gnato", "elabd": "-gnatE", "floatstore": "-ffloat-store", "stackcheck": "-fstack-check"}


def run(command, folder):
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def fill_in(path, into, values):
    with open(path, encoding="latin-1") as file:
        text = file.read()
    for name, value in values.items():
        text = text.replace(name, value)
    with open(into, "w", encoding="latin-1") as file:
        file.write(text)


def make_support(tree):
    """Makes the packages that all tests use, and the tests that the suite makes from templates.
    Returns the folder of the packages. A second call finds them."""
    source, support = os.path.join(tree, "support"), os.path.join(tree, "built")
    if os.path.exists(os.path.join(support, "finished")):
        return support
    shutil.rmtree(support, ignore_errors=True)
    shutil.copytree(source, support)
    shutil.rmtree(os.path.join(tree, "filled"), ignore_errors=True)
    shutil.copytree(os.path.join(tree, "tests"), os.path.join(tree, "filled"))
    values = {"ACATS4GNATDIR/support": support, "ACATS4GNATDIR/tests": os.path.join(tree, "filled"), **FILLED_IN}
    for name, into in (("impdef.a", "impdef.a"), ("macro.dfs", "MACRO.DFS"), ("tsttests.dat", "TSTTESTS.DAT")):
        fill_in(os.path.join(source, name), os.path.join(support, into), values)
    for path in glob.glob(os.path.join(tree, "tests", "c[dx]*", "*.c")):
        shutil.copy(path, support)
    for path in sorted(glob.glob(os.path.join(support, "*.ada")) + glob.glob(os.path.join(support, "*.a"))):
        # Two files declare the same unit. gnatchop keeps the first and fails, as in run_all.sh.
        subprocess.run(["gnatchop", "-q", path], cwd=support, check=False, capture_output=True)
    for tool in ("macrosub", "widechr"):
        run(["gcc", "-c", "cd300051.c"], support)
        run(["gnatmake", "-q", "-gnatws", tool + ".adb"], support)
        run(["./" + tool], support)
    for pattern in ("*.ali", "*.o", "macrosub", "widechr"):
        for path in glob.glob(os.path.join(support, pattern)):
            os.remove(path)
    run(["gcc", "-O2", "-c", *glob.glob("*.c", root_dir=support)], support)
    for path in glob.glob(os.path.join(support, "*.adt")):
        subprocess.run(["gnatchop", "-q", path], cwd=support, check=False, capture_output=True)
    for pattern in ("*.ads", "*.adb"):
        subprocess.run(["gnatmake", "-q", "-k", "-gnatws", "-O2", "-g", "-c", "-gnato", "-gnatE",
                        *glob.glob(pattern, root_dir=support)], cwd=support, check=False, capture_output=True)
    with open(os.path.join(support, "finished"), "w", encoding="utf-8"):
        return support


def listed(tree, name):
    with open(os.path.join(tree, name + ".lst"), encoding="utf-8") as file:
        return {line for line in file.read().split("\n") if line and not line.startswith("#")}


def tests(tree, each):
    """Returns the path and the building command of every `each`-th test of each chapter. The caller
    adds the program's path to the command."""
    support = make_support(tree)
    not_run = listed(tree, "norun")
    flagged = {flag: listed(tree, name) for name, flag in FLAGS.items()}
    found = []
    for chapter in sorted(glob.glob(os.path.join(tree, "filled", "*", ""))):
        files = [path for path in sorted(glob.glob(chapter + "*")) if re.search(r"\.(a|ada|adt|am|dep)$", path)]
        names = sorted({os.path.basename(path).rsplit(".", 1)[0][:7] for path in files} - not_run)
        for name in names[::each]:
            of_test = [path for path in files if os.path.basename(path).startswith(name)]
            flags = " ".join(flag for flag, of_flag in flagged.items() if name in of_flag)
            found.append((os.path.join(chapter, name), [BUILD, support, name, flags, *of_test]))
    return found
