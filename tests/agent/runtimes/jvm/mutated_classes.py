#!/usr/bin/env python3
"""Class files with random changes that the JVM accepts without probes are accepted with probes, too.

mutated_classes.py REWRITER SOURCES WORK_FOLDER [VARIANTS [SEED]] changes classes of the sample. SJ_LONG=1: 20,000
variants. mutated_classes.py REWRITER SOURCES WORK_FOLDER FOLDER uses the files of FOLDER unchanged, such as a
fuzzer's corpus.
"""
import os
import random
import shutil
import subprocess
import sys

REWRITER, SOURCES, WORK = sys.argv[1:4]
GIVEN = sys.argv[4] if len(sys.argv) > 4 and os.path.isdir(sys.argv[4]) else None
VARIANTS = int(sys.argv[4]) if len(sys.argv) > 4 and GIVEN is None else 20000 if os.environ.get("SJ_LONG") else 600
SEED = int(sys.argv[5]) if len(sys.argv) > 5 else 17
CHANGES_MAX = 3


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def mutate(chance, data):
    data = bytearray(data)
    for _ in range(chance.randint(1, CHANGES_MAX)):
        at = chance.randrange(10, len(data))
        data[at] = chance.choice((chance.randrange(256), data[at] ^ 1 << chance.randrange(8)))
    return bytes(data)


def write(folder, name, data):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def verdicts(classes, folder):
    lines = run("java", "-Xverify:all", "-cp", classes, "Verify", folder).decode().splitlines()
    return dict(line.split() for line in lines)


def read_files(folder, prefix=""):
    found = []
    for name in sorted(os.listdir(folder)):
        if name.startswith(prefix):
            with open(os.path.join(folder, name), "rb") as file:
                found.append(file.read())
    return found


def rewrite(plain, probed, chosen):
    """Rewrites the classes of `plain` into `probed`, all by one process for each option. A file that is not
    a class file is removed from both, because it would stay unchanged."""
    for option in sorted({options for _, options in chosen}):
        names = [f"{number:06}.class" for number, (_, options) in enumerate(chosen) if options == option]
        listed = "".join(f"{os.path.join(plain, name)}\t{os.path.join(probed, name)}\n" for name in names)
        done = subprocess.run([REWRITER, "40000", *option], input=listed.encode(), capture_output=True)
        verdicts = done.stdout.decode(errors="replace").splitlines()
        if done.returncode or len(verdicts) != len(names):
            last = names[min(len(verdicts), len(names) - 1)]
            sys.exit(f"variant {last} of seed {SEED}: the rewriter ended with {done.returncode}\n{done.stderr.decode()}")
        for name, verdict in zip(names, verdicts):
            if verdict.startswith("refused\t"):
                os.unlink(os.path.join(plain, name))


def variants(classes):
    """Returns (bytes, options of the rewriter) of each class."""
    if GIVEN is not None:
        return [(data, options) for data in read_files(GIVEN) for options in ((), ("values",))]
    originals, chance = read_files(classes, "Shapes"), random.Random(SEED)
    return [(mutate(chance, chance.choice(originals)), ("values",) if number % 2 else ()) for number in range(VARIANTS)]


def main():
    classes, plain, probed = (os.path.join(WORK, name) for name in ("classes", "plain", "probed"))
    shutil.rmtree(WORK, ignore_errors=True)
    for folder in (classes, plain, probed):
        os.makedirs(folder)
    run("javac", "-d", classes, os.path.join(SOURCES, "Shapes.java"), os.path.join(SOURCES, "Verify.java"))
    chosen = variants(classes)
    for number, (data, _) in enumerate(chosen):
        write(plain, f"{number:06}.class", data)
    rewrite(plain, probed, chosen)
    before, after = verdicts(classes, plain), verdicts(classes, probed)
    accepted = [name for name, verdict in before.items() if verdict == "accepted"]
    worse = [f"{name} {after[name]}" for name in accepted if after[name] != "accepted"]
    if worse:
        sys.exit(f"seed {SEED}: refused with probes only: {worse[:10]}")
    if len(accepted) < (1 if GIVEN else VARIANTS // 20) or len(accepted) == len(before):
        sys.exit(f"{len(accepted)} of {len(before)} variants are accepted: nothing is shown")
    print(f"{len(accepted)} of {len(before)} variants are accepted, with and without probes")


main()
