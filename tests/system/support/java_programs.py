"""Helpers for the tests of Java: the compiled samples, and the sample that tests attach to."""
import json
import os
import shutil
import subprocess

from sojourn_testing import IS_LONG, PATIENCE_S, check, wait_for

INTERNAL_ASM = "--add-exports=java.base/jdk.internal.org.objectweb.asm=ALL-UNNAMED"


# The compiler runs for about a second. The JVM's first compiler on one thread makes its start faster.
JAVAC = ["javac", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-proc:none"]


def built_classes(sojourn):
    """Returns the folder with the class files of all samples, which the build made."""
    return os.path.join(os.path.dirname(os.path.dirname(sojourn.program)), "tests", "samples", "java")


def sample_classes(sojourn):
    """Copies the class files of all samples to a folder of the test. Returns the folder."""
    return shutil.copytree(built_classes(sojourn), sojourn.path("classes"), dirs_exist_ok=True)


def compile_java(sojourn, folder, *names):
    """Compiles the sources that the test wrote. Returns the folder of the class files."""
    classes = sojourn.path("classes")
    sources = [os.path.join(folder, f"{name}.java") for name in names]
    done = subprocess.run([*JAVAC, "-d", classes, *sources], capture_output=True, text=True)
    check(done.returncode == 0, f"javac failed: {done.stderr}")
    return classes


def compiled_first(*classes):
    """Returns options of java that compile methods before they run. By default these are the methods of the classes
    and of the probes, with SJ_LONG=1 the whole JDK."""
    if IS_LONG:
        return ["-Xcomp"]
    return ["-Xcomp", "-XX:CompileCommand=quiet", f"-XX:CompileOnly={','.join([*classes, 'java/sojourn/Probe'])}"]


def jvm_reports(sojourn, database, kind):
    rows = sojourn.sql(database, f"SELECT payload FROM reports WHERE monitor = 'jvm' AND kind = '{kind}'")
    return [json.loads(row["payload"]) for row in rows]


class Program:
    """The sample Attached, or another program that replies to each line of its input. `prefix` is the command that
    runs java."""

    def __init__(self, classes, options=(), arguments=(), prefix=(), environment=None, name="Attached"):
        self.process = subprocess.Popen([*prefix, "java", *options, "-cp", classes, name, *arguments],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.pid = self.process.pid
        check(self.process.stdout.readline() == "ready\n", "the program did not start")

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def tell(self, what, times=1):
        said = self.ask(f"{what} {times}")
        check(said == f"{what} {times}\n", f"{what} {times}: {said}, {self.process.poll()}")

    def rounds(self):
        return int(self.ask("rounds").split()[1])

    def work_on(self):
        end = self.rounds() + 3
        wait_for("the threads work on", lambda: self.rounds() >= end)

    def finish(self):
        output, _ = self.process.communicate(timeout=PATIENCE_S)
        check((self.process.returncode, output) == (5, "wrong=0\n"), f"{self.process.returncode}: {output}")
