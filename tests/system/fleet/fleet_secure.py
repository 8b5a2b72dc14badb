#!/usr/bin/env python3
"""One command installs and enrols. Revoked tokens end at once, and secrets stay secret.

fleet_secure.py BUILD_FOLDER SOURCE_FOLDER
"""
import glob
import os
import re
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import Device, Collector, enrol, enrol_again
from sojourn_testing import PATIENCE_S, check, main, wait_for


def install(collector, build):
    """One command makes an image of a device, which works from its own files."""
    invitation = collector.sojourn.path("image.invitation")
    root = collector.sojourn.path("image")
    collector.device("--collector", collector.url, "invite", invitation)
    script = os.path.join(build, "bin/sojourn-device-install")
    command = [script, "--root", root, "--token-file", invitation, "--name", "shelf 3 left",
               "--tag", "site=oslo"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    check(done.returncode == 0, f"install: {done.stdout}{done.stderr}")
    row = collector.sql("SELECT name, tags FROM devices")[0]
    check(row["name"] == "shelf 3 left" and "oslo" in row["tags"], f"enrolled as {row}")
    program = os.path.join(root, "usr/bin/sojourn-device")
    runtime = collector.sojourn.path("image-run")
    os.makedirs(runtime, mode=0o700)
    environment = dict(os.environ, XDG_STATE_HOME=os.path.join(root, "var/lib"),
                       XDG_CACHE_HOME=os.path.join(root, "var/cache"), XDG_RUNTIME_DIR=runtime)
    daemon = subprocess.Popen([program, "run"], env=environment, stderr=subprocess.DEVNULL)
    try:
        ends = os.path.join(build, "tests/samples/ends")
        session = collector.ask("shelf 3 left", "launch", ends, "return")["session"]
        wait_for("its session", lambda: collector.sql("SELECT 1 FROM sessions WHERE stored_calls = 1003 "
                                                f"AND lower(hex(uuid)) = '{session}'"))
    finally:
        daemon.terminate()
        daemon.wait(PATIENCE_S)
    again = subprocess.run([script, "--root", root], capture_output=True, text=True, timeout=PATIENCE_S)
    check(again.returncode == 0, f"again: {again.stderr}")
    used = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    check(used.returncode == 1 and "used or expired" in used.stderr, f"a used one: {used.stderr}")
    install_further(collector.sojourn, script, root)
    for wrong, said in ((["--token-file", "/nowhere"], "cannot be read"),
                        (["--token"], "unknown option"), (["--tag"], "needs a value")):
        bad = subprocess.run([script, "--root", root, *wrong], capture_output=True, text=True,
                             timeout=PATIENCE_S)
        check(bad.returncode == 1 and said in bad.stderr, f"{wrong}: {bad.stderr}")
    return root


def install_further(sojourn, script, root):
    """With --also, a device that is enrolled gets a further collector."""
    further = Collector(sojourn, name="further")
    try:
        further.device("--collector", further.url, "invite", sojourn.path("further.invitation"))
        done = subprocess.run([script, "--root", root, "--token-file", sojourn.path("further.invitation"), "--also"],
                              capture_output=True, text=True, timeout=PATIENCE_S)
    finally:
        further.stop()
    check(done.returncode == 0, f"--also: {done.stdout}{done.stderr}")
    [path] = glob.glob(os.path.join(root, "var/lib/sojourn/**/collector.json"), recursive=True)
    with open(path, encoding="utf-8") as file:
        enrolment = file.read()
    check(enrolment.count(further.url) == 1 and enrolment.count('"token"') == 2, "--also: not two collectors")


def exposure(unit):
    """Returns systemd's rating of a unit's confinement: 0 (the unit can reach nothing of the machine) to 10
    (everything)."""
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", unit],
                          capture_output=True, text=True, timeout=PATIENCE_S)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+) ", done.stdout)
    check(found is not None and done.returncode == 0 and done.stderr == "", f"{unit}: {done}")
    return float(found[1])


def units_are_confined(build):
    """Each unit keeps its limit. The device daemon launches programs, which inherit its confinement."""
    for name, limit in (("sojournd", 3.0), ("sojourn-device", 5.0), ("sojourn-backup", 1.0)):
        exposed = exposure(os.path.join(build, "bin", f"{name}.service"))
        check(0 < exposed <= limit, f"{name}.service: exposure {exposed}, at most {limit}")


def units(build, source, root):
    """systemd itself finds no mistakes in the units, in a root that has the programs."""
    for name in ("sojourn", "sojournd"):
        path = os.path.join(root, "usr/bin", name)
        subprocess.run(["install", "-m", "0755", os.path.join(build, "bin", name), path], check=True)
    target = os.path.join(root, "etc/systemd/system")
    names = ["sojournd.service", "sojourn-backup.service", "sojourn-backup.timer"]
    for name in names:
        unit = os.path.join(source, "collector-server/sojournd", name)
        subprocess.run(["install", "-m", "0644", unit, target], check=True)
    for program in ("sh", "find"):
        subprocess.run(["install", "-D", "/bin/" + program, os.path.join(root, "bin", program)], check=True)
    system = os.path.join(root, "usr/lib/systemd/system")
    os.makedirs(os.path.dirname(system), exist_ok=True)
    subprocess.run(["cp", "-r", "/usr/lib/systemd/system", system], check=True)
    for name in ("sojourn-device.service", *names):
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--root", root, name],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        said = [line for line in (done.stdout + done.stderr).splitlines() if "sojourn" in line]
        check(done.returncode == 0 and said == [], f"{name}: {done.stdout}{done.stderr}")
    # this shows that systemd does find mistakes
    with open(os.path.join(target, "sojourn-device.service"), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(target, "broken-sojourn.service"), "w", encoding="utf-8") as file:
        file.write(text.replace("/usr/bin/sojourn-device", "/usr/bin/no-such-program"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--root", root,
                           "broken-sojourn.service"], capture_output=True, text=True, timeout=PATIENCE_S)
    check("no-such-program" in done.stdout + done.stderr, "verify verifies nothing")
    command = re.search(r"ExecStart=/usr/bin/(.*)", text).group(1).split()
    check(command == ["sojourn-device", "run"], f"the unit runs {command}")


def modes_of(folder):
    for path, folders, files in os.walk(folder):
        for name in [path, *[os.path.join(path, n) for n in folders + files]]:
            about = os.lstat(name)
            if not stat.S_ISLNK(about.st_mode):
                yield name, about.st_mode


def permissions(collector, device, ends):
    """Only the owner can read or write spool, sockets, shared memory, keys, tokens, database and log."""
    session = collector.ask(device.name, "launch", ends, "wait")["session"]
    kinds = {"socket": 0, "arena": 0, "frames": 0, "collector.json": 0}
    for folder in (os.path.join(device.runtime, "sojourn"), os.path.join(device.state, "sojourn")):
        for name, mode in modes_of(folder):
            check(mode & 0o077 == 0, f"{name} has mode {mode & 0o777:o}")
            kinds["socket"] += stat.S_ISSOCK(mode)
            kinds["frames"] += name.endswith(".frames")
            kinds["collector.json"] += name.endswith("collector.json")
            kinds["arena"] += "arena" in os.path.basename(name)
    check(all(kinds.values()), f"not everything was there to look at: {kinds}")
    for name in (".tls/key.pem", ".tls"):
        check(os.stat(collector.database + name).st_mode & 0o077 == 0, f"others can read {name}")
    for name in ("", "-wal", "-shm"):
        mode = os.stat(collector.database + name).st_mode
        check(mode & 0o077 == 0, f"others can read lab.db{name}: {mode & 0o777:o}")
    collector.ask(device.name, "stop", session)


def listening(device):
    """The device's processes listen on no network address."""
    inodes = set()
    pids = [device.process.pid] + [int(p) for p in subprocess.run(
        ["pgrep", "-P", str(device.process.pid)], capture_output=True, text=True,
        check=False).stdout.split()]
    for pid in pids:
        try:
            names = os.listdir(f"/proc/{pid}/fd")
        except FileNotFoundError:  # the process has ended
            continue
        for name in names:
            try:
                target = os.readlink(f"/proc/{pid}/fd/{name}")
            except FileNotFoundError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    check(inodes, "the daemon has no socket at all")
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{device.process.pid}/net/{table}", encoding="utf-8") as file:
            for line in file.read().splitlines()[1:]:
                fields = line.split()
                check(not (fields[3] == "0A" and fields[9] in inodes), f"it listens: {line}")


def holds(path, needle):
    """True if the data of a file contain the bytes. The holes of a file are skipped, because shared memory is mostly
    holes."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        at = 0
        while at < size:
            try:
                start = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                return False
            at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            if needle in os.pread(file.fileno(), at - start, start):
                return True
    return False


def the_token_is_only_in_its_file(collector, device, token, ends):
    """The token is only in its own file: not in logs, state, database, environment or command lines."""
    session = collector.ask(device.name, "launch", ends, "wait")["session"]
    claim = os.path.join(device.state, "sojourn/device/spool", session + ".to")
    with open(claim, encoding="utf-8") as file:
        recorder = int(file.read().split("\n")[2])
    traced = int(subprocess.run(["pgrep", "-P", str(recorder)], capture_output=True, text=True,
                                check=True).stdout.split()[0])
    needle = token.encode()
    for pid in (device.process.pid, recorder, traced, collector.process.pid):
        for name in ("cmdline", "environ"):
            with open(f"/proc/{pid}/{name}", "rb") as file:
                check(needle not in file.read(), f"the token is in /proc/{pid}/{name}")
    own = os.path.join(device.state, "sojourn/device/collector.json")
    places = [collector.sojourn.path("collector.log"), device.log_path]
    for folder in (device.state, device.runtime, collector.sojourn.path("")):
        places += [name for name, mode in modes_of(folder) if stat.S_ISREG(mode)]
    hits = set()
    for path in places:
        try:
            if holds(path, needle):
                hits.add(path)
        except FileNotFoundError:
            continue
    check(hits == {own}, f"the token is in {hits}")
    collector.ask(device.name, "stop", session)


def revoked_at_once(collector, device, ends):
    """A recorder that is sending, and a daemon that waits, are disconnected. Later data is not stored and stays on
    the device."""
    session = collector.ask(device.name, "launch", ends, "wait")["session"]
    wait_for("the running session", lambda: collector.sql(
        f"SELECT 1 FROM sessions WHERE lower(hex(uuid)) = '{session}'"))
    collector.device(device.name, "revoke")
    wait_for("the daemon that waits is refused", lambda: device.log_says("the collector refuses"))
    stored = "SELECT count(*) AS n, sum(stored_events) AS events FROM sessions"

    def kept_on_device():
        before = collector.sql(stored)
        for _ in range(5):
            device.wait_for_more()
        return before if collector.sql(stored) == before else None

    # Frames that arrived before the revocation may be stored after it. Later frames stay on the device.
    before = wait_for("the recorder is refused", kept_on_device)
    device.wait_for_more()
    device.process.send_signal(15)
    device.process.wait(PATIENCE_S)
    claim = os.path.join(device.state, "sojourn/device/spool", session + ".to")
    with open(claim, encoding="utf-8") as file:
        recorder = int(file.read().split("\n")[2])
    os.kill(recorder, 15)
    wait_for("the recorder's end", lambda: not os.path.exists(f"/proc/{recorder}"))
    check(collector.sql(stored) == before, f"stored after the revocation: {before} {collector.sql(stored)}")
    check(device.spool(), "what the collector did not take is gone")
    late = collector.device("--timeout", "2", device.name, "status", code=1)
    check("timed_out" in late.stderr, late.stderr)
    events = collector.sql("SELECT what, done_by FROM token_events ORDER BY event_id DESC LIMIT 1")[0]
    check(events["what"] == "revoked" and events["done_by"], f"the audit: {events}")
    done = device.run("doctor")
    check(done.returncode == 1 and "PROBLEM  token" in done.stdout, f"doctor: {done.stdout}")
    # After a new invitation everything that was kept arrives.
    enrol_again(collector, device)
    device.start()
    wait_for("what was kept", lambda: collector.sql(
        f"SELECT 1 FROM sessions WHERE lower(hex(uuid)) = '{session}' AND sent_calls = "
        "stored_calls + device_lost_calls"))
    wait_for("an empty spool", lambda: not device.spool())


def test(sojourn, arguments):
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    ends = os.path.join(build, "tests/samples/ends")
    os.umask(0)  # so the programs have to restrict the modes themselves
    collector = Collector(sojourn)
    device = Device(sojourn, "phone7")
    try:
        root = install(collector, build)
        units_are_confined(build)
        units(build, arguments[0], root)
        token = enrol(collector, device)
        os.remove(sojourn.path("phone7.invitation"))
        device.start()
        wait_for("the daemon", lambda: collector.ask(device.name, "status"))
        permissions(collector, device, ends)
        listening(device)
        the_token_is_only_in_its_file(collector, device, token, ends)
        revoked_at_once(collector, device, ends)
    finally:
        for party in (device, collector):
            if party.process is not None and party.process.poll() is None:
                party.process.kill()
                party.process.wait()


if __name__ == "__main__":
    sys.exit(main(test))
