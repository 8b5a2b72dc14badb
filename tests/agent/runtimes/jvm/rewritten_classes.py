#!/usr/bin/env python3
"""Classes with probes, and with values, pass the JVM's full verification and do what they did without.

rewritten_classes.py REWRITER SOURCES WORK_FOLDER rewrites first the sample with every shape of code. Then it
rewrites the whole compiler of the JDK (some 1,600 classes), which compiles the sample in mixed mode. -Xcomp
compiles only classes with probes. SJ_LONG=1 also rewrites the classes of the JDK, and tries every way of
rewriting in every mode of the JVM.
"""
import os
import re
import shutil
import subprocess
import sys

REWRITER, SOURCES, WORK = sys.argv[1:4]
LARGE_ID = 100000  # does not fit into an instruction: the class gets constants
IS_LONG = bool(os.environ.get("SJ_LONG"))
OWN_CLASSES = () if IS_LONG else ("-XX:CompileCommand=quiet", "-XX:CompileCommand=compileonly,Shapes*::*")
INTERPRETED, COMPILED, MIXED = ("-Xint",), ("-Xcomp", *OWN_CLASSES), ("-Xmixed",)
# (numbers and options of the probes, modes); by default each number and each option in both modes.
WAYS = [((1,), (INTERPRETED,)), ((LARGE_ID,), (COMPILED,)), ((1, "values"), (COMPILED,)),
        ((LARGE_ID, "values"), (INTERPRETED,))]
if IS_LONG:
    WAYS = [(way, (INTERPRETED, COMPILED, MIXED)) for way, _ in WAYS]
# Runs that prepare are short, so they do not optimize code.
JAVAC = ("javac", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def rewrite_tree(source, target, first, *options):
    """One process rewrites all classes of a folder: each has all its probes."""
    pairs = []
    for folder, _, names in os.walk(source):
        made = os.path.join(target, os.path.relpath(folder, source))
        os.makedirs(made, exist_ok=True)
        pairs += [(os.path.join(folder, name), os.path.join(made, name)) for name in names
                  if name.endswith(".class") and name != "module-info.class"]
    if not pairs:
        sys.exit(f"no classes in {source}")
    listed = "".join(f"{read}\t{written}\n" for read, written in pairs).encode()
    verdicts = run(REWRITER, str(first), *options, input=listed).stdout.decode().splitlines()
    wrong = [f"{read}: {verdict}" for (read, _), verdict in zip(pairs, verdicts, strict=True)
             if not verdict.startswith("whole\t")]
    if wrong:
        sys.exit("\n".join(wrong[:20]))


def balance(stderr):
    counted = re.search(rb"entered (\d+) ended (\d+) unwound (\d+)", stderr)
    if not counted:
        sys.exit(f"no counts in {stderr}")
    return [int(number) for number in counted.groups()]


def check_sample(probe):
    classes = os.path.join(WORK, "shapes")
    run(*JAVAC, "-d", classes, os.path.join(SOURCES, "Shapes.java"))
    plain = run("java", "-cp", classes, "Shapes").stdout
    for (first, *options), modes in WAYS:
        probed = os.path.join(WORK, f"shapes-{first}-{len(options)}")
        rewrite_tree(classes, probed, first, *options)
        for mode in modes:
            done = run("java", "-Xverify:all", *mode, f"-Xbootclasspath/a:{probe}", "-cp", probed, "Shapes")
            if done.stdout != plain:
                sys.exit(f"{mode[0]}: {done.stdout} instead of {plain}")
            entered, ended, unwound = balance(done.stderr)
            # thrower (41), passes(0) and a constructor end by exceptions.
            if entered != ended or unwound != 43:
                sys.exit(f"{mode[0]}: {entered} entries, {ended} exits, {unwound} of them by exceptions")


def check_compiler(probe):
    home = run("java", "-XshowSettings:properties", "-version").stderr.decode()
    home = re.search(r"java\.home = (\S+)", home)[1]
    image, probed = os.path.join(WORK, "image"), os.path.join(WORK, "image-probed")
    run(os.path.join(home, "bin/jimage"), "extract", f"--dir={image}", "--include=regex:/jdk.compiler/.*",
        os.path.join(home, "lib/modules"))
    rewrite_tree(os.path.join(image, "jdk.compiler"), probed, LARGE_ID, "values")
    sample = os.path.join(SOURCES, "Shapes.java")
    expected, compiled = os.path.join(WORK, "expected"), os.path.join(WORK, "compiled")
    run(*JAVAC, "-d", expected, sample)
    done = run("javac", "-J-Xverify:all", f"-J-Xbootclasspath/a:{probe}", f"-J--patch-module=jdk.compiler={probed}",
               "-J--add-reads=jdk.compiler=ALL-UNNAMED", "-d", compiled, sample)
    run("diff", "-r", expected, compiled)
    entered, ended, _ = balance(done.stderr)
    # main is still open when the hook that prints runs.
    if entered - ended not in (0, 1) or entered < 100000:
        sys.exit(f"compiler: {entered} entries, {ended} exits")


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    probe = os.path.join(WORK, "probe")
    run(*JAVAC, "-d", probe, os.path.join(SOURCES, "Probe.java"), os.path.join(SOURCES, "Values.java"))
    check_sample(probe)
    check_compiler(probe)


main()
