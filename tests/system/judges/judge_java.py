#!/usr/bin/env python3
"""Java programs of other authors behave the same with probes in every class except java.*, under full verification,
and the JVM refuses no class. By default: ant, with the JDK's compiler in its process, by the JVM's first compiler
alone. SJ_LONG=1 adds the JDK's compiler by itself, groovy, maven, and tomcat under load, each with every collector,
interpreted and compiled by both compilers.

judge_java.py BUILD_FOLDER [NAME [MODE]] names: javac, ant, groovy, maven, tomcat; modes: options of java
"""
import filecmp
import glob
import http.client
import os
import re
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from java_programs import jvm_reports
from judging import IS_LONG
from sojourn_testing import PATIENCE_S, check, check_accounts, main, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs", "java")
SAMPLES = os.path.join(HERE, "..", "..", "samples", "java")
JAVA = ["java", "-Xverify:all"]
# The JVM compiles all methods of the JDK that these two programs run first. Its second compiler would take minutes.
FIRST_COMPILER = "-Xcomp -XX:TieredStopAtLevel=1"
LARGE = ("ant", "tomcat")
MODES = ["-XX:+UseG1GC", "-XX:+UseParallelGC", "-XX:+UseSerialGC", "-XX:+UseZGC", "-Xint", "-Xcomp"]
DEFAULT_MODE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
COMPILER = "jdk.compiler/com.sun.tools.javac.Main"
RUN_S = 4 * PATIENCE_S  # with -Xcomp the whole JDK is compiled first
OPTIONS = ["--java-system", "java.*", "--mode", "profile", "--block-ms", "10000"]
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>g</groupId>
<artifactId>a</artifactId><version>1</version><packaging>pom</packaging></project>"""
SERVER = """<Server port="-1"><Service name="Catalina"><Connector port="{}" address="127.0.0.1"/>
<Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps"/></Engine></Service></Server>"""
WEB = """<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="5.0"><servlet><servlet-name>h</servlet-name>
<servlet-class>Hello</servlet-class></servlet><servlet-mapping><servlet-name>h</servlet-name>
<url-pattern>/hello</url-pattern></servlet-mapping></web-app>"""


def jars(*patterns):
    found = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
    return ":".join(found)


def recording(sojourn, database):
    return [sojourn.program, "record", "--quiet", "-o", database, *OPTIONS, "--"]


def check_recorded(sojourn, name, database, least):
    state = jvm_reports(sojourn, database, "state")
    check(len(state) == 1 and state[0]["unanswered"] == 0 and state[0]["classes"] >= least, f"{name}: {state}")
    check_accounts(sojourn, database)
    calls = sojourn.sql(database, "SELECT sum(calls) AS n FROM function_stats")[0]["n"]
    print(f"{name}: {state[0]['classes']} classes with probes, {calls} calls", flush=True)


def run(sojourn, command, prefix=()):
    done = subprocess.run([*prefix, *command], capture_output=True, text=True, timeout=RUN_S, check=False,
                          stdin=subprocess.DEVNULL, cwd=sojourn.folder, env=sojourn.environment)
    check("VerifyError" not in done.stdout + done.stderr, f"{command}: {done.stderr}")
    return done.returncode, done.stdout, done.stderr


def without_times(ran):
    return tuple(re.sub(r"(?m)^.*([Tt]otal time|Finished at).*$", "", str(part)) for part in ran)


def both(sojourn, name, command, least):
    database = sojourn.path(f"{name}.db")
    for old in glob.glob(f"{database}*"):
        os.unlink(old)
    plain = run(sojourn, command("plain"))
    probed = run(sojourn, command("probed"), recording(sojourn, database))
    told = [tuple(part.replace("/plain", "/OUT").replace("/probed", "/OUT") for part in without_times(ran))
            for ran in (plain, probed)]
    check(plain[0] == 0 and told[0] == told[1], f"{name} says {probed} instead of {plain}")
    check_recorded(sojourn, name, database, least)


def same_trees(left, right):
    files = [{os.path.relpath(path, top): path for path in glob.glob(f"{top}/**", recursive=True) if os.path.isfile(path)}
             for top in (left, right)]
    check(files[0].keys() == files[1].keys() and len(files[0]) > 10, f"{sorted(files[0].keys() ^ files[1].keys())}")
    for name, path in files[0].items():
        check(filecmp.cmp(path, files[1][name], shallow=False), f"{name} differs")


def remove_outputs(sojourn):
    for kind in ("plain", "probed"):
        shutil.rmtree(sojourn.path(kind), ignore_errors=True)


def javac(sojourn, mode):
    remove_outputs(sojourn)
    sources = [os.path.join(SAMPLES, f"{name}.java") for name in ("Counted", "Kinds", "Loaders", "Plugin", "Shapes")]
    both(sojourn, "javac", lambda kind: [*JAVA, *mode, "--module", COMPILER, "-d", sojourn.path(kind), *sources], 900)
    same_trees(sojourn.path("plain"), sojourn.path("probed"))


def ant(sojourn, mode):
    remove_outputs(sojourn)
    both(sojourn, "ant", lambda kind: [
        *JAVA, *mode, "-cp", jars("/usr/share/java/ant.jar", "/usr/share/java/ant-launcher.jar"), "-Dant.home=/usr/share/ant",
        "org.apache.tools.ant.launch.Launcher", "-q", "-f", os.path.join(PROGRAMS, "build.xml"),
        f"-Dsources={os.path.abspath(SAMPLES)}", f"-Dout={sojourn.path(kind)}"], 1000)
    same_trees(sojourn.path("plain"), sojourn.path("probed"))


def groovy(sojourn, mode):
    both(sojourn, "groovy", lambda kind: [*JAVA, *mode, "-cp", jars("/usr/share/groovy/lib/*.jar"), "groovy.ui.GroovyMain",
                                          os.path.join(PROGRAMS, "judge.groovy")], 500)


def maven(sojourn, mode):
    with open(sojourn.path("pom.xml"), "w", encoding="ascii") as file:
        file.write(POM)
    home = "/usr/share/maven"
    both(sojourn, "maven", lambda kind: [
        *JAVA, *mode, "-cp", jars(f"{home}/boot/*.jar"), f"-Dclassworlds.conf={home}/bin/m2.conf", f"-Dmaven.home={home}",
        f"-Dmaven.multiModuleProjectDirectory={sojourn.folder}", "org.codehaus.plexus.classworlds.launcher.Launcher",
        "-o", "-B", "validate"], 1000)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def make_tomcat(sojourn, port):
    base = sojourn.path("tomcat")
    shutil.rmtree(base, ignore_errors=True)
    for name in ("conf", "logs", "temp", "work", "webapps/ROOT/WEB-INF/classes"):
        os.makedirs(os.path.join(base, name))
    for name, text in (("conf/server.xml", SERVER.format(port)), ("webapps/ROOT/WEB-INF/web.xml", WEB),
                       ("conf/web.xml", "<web-app/>")):
        with open(os.path.join(base, name), "w", encoding="ascii") as file:
            file.write(text)
    subprocess.run(["javac", "-cp", "/usr/share/tomcat10/lib/servlet-api.jar", "-d",
                    os.path.join(base, "webapps/ROOT/WEB-INF/classes"), os.path.join(PROGRAMS, "Hello.java")], check=True)
    return base


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read()


def is_up(port, server):
    check(server.poll() is None, "the server has ended")
    try:
        return get(port, "/hello")[0] == 200
    except OSError:
        return False


def serve(sojourn, mode, prefix):
    """Returns tomcat's responses to a few requests, after it has answered many concurrent ones."""
    port = free_port()
    base = make_tomcat(sojourn, port)
    server = subprocess.Popen(
        [*prefix, *JAVA, *mode, "-cp", jars("/usr/share/tomcat10/bin/*.jar"), "-Dcatalina.home=/usr/share/tomcat10",
         f"-Dcatalina.base={base}", f"-Djava.io.tmpdir={base}/temp", "org.apache.catalina.startup.Bootstrap", "start"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=sojourn.environment)
    wait_for("tomcat is up", lambda: is_up(port, server), RUN_S)
    answers = [get(port, path) for path in ("/hello?b=2&a=1", "/hello?a=1&a=2", "/nothing")]
    load = subprocess.run(["ab", "-s", str(PATIENCE_S), "-n", "2000", "-c", "8", f"http://127.0.0.1:{port}/hello?a=1"], capture_output=True,
                          text=True, check=True)
    check(re.search(r"Failed requests: +0\n", load.stdout), f"{load.stdout}")
    java = server.pid if not prefix else int(subprocess.run(
        ["pgrep", "-P", str(server.pid)], capture_output=True, text=True, check=True).stdout.split()[0])
    os.kill(java, 15)
    errors = server.communicate(timeout=PATIENCE_S)[1]
    check("VerifyError" not in errors and "LinkageError" not in errors, errors)
    return answers


def tomcat(sojourn, mode):
    database = sojourn.path("tomcat.db")
    for old in glob.glob(f"{database}*"):
        os.unlink(old)
    plain, probed = serve(sojourn, mode, []), serve(sojourn, mode, recording(sojourn, database))
    check(plain == probed and plain[0][0] == 200, f"{plain} {probed}")
    check_recorded(sojourn, "tomcat", database, 400)


JUDGES = {"javac": (javac, "/usr/bin/javac"), "ant": (ant, "/usr/share/java/ant.jar"),
          "groovy": (groovy, "/usr/share/groovy/lib"), "maven": (maven, "/usr/share/maven/boot"),
          "tomcat": (tomcat, "/usr/share/tomcat10/bin")}


def test(sojourn, arguments):
    names = arguments[:1] or (list(JUDGES) if IS_LONG else ["ant"])
    modes = (arguments[1:] or MODES) if IS_LONG else [" ".join(arguments[1:]) or DEFAULT_MODE]
    for name in names:  # fails for a missing program before hours are spent
        check(os.path.exists(JUDGES[name][1]),
              f"{name} is missing: run .ci/packages {'long' if IS_LONG else 'test'}")
    for name in names:
        for mode in modes:
            options = FIRST_COMPILER if mode == "-Xcomp" and name in LARGE else mode
            print(f"{name} {options}:", flush=True)
            JUDGES[name][0](sojourn, options.split())


main(test)
