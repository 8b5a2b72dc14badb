"""Fresh roots of a distribution, for tests that install packages. A root stays in a cache. Each test changes only
its own layer above it.
"""
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys

from sojourn_testing import check

SKIPPED = 77
CACHE = os.environ.get("SJ_ROOTS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "sojourn-test-roots")
INSIDE = "SJ_INSIDE_NAMESPACES"


def enter_namespaces():
    """Runs this test again in its own mount, process, network and IPC namespaces. Mounts and processes of the test
    end with the namespaces. Exits with 77 if this machine cannot do that."""
    if os.environ.get(INSIDE):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
        return
    if os.geteuid() != 0 or not all(shutil.which(program) for program in ("unshare", "debootstrap", "ip")):
        print("skipped: needs root, unshare, ip and debootstrap")
        sys.exit(SKIPPED)
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "--ipc"]
    if subprocess.run([*namespaces, "true"], check=False).returncode != 0:
        print("skipped: namespaces cannot be made here")
        sys.exit(SKIPPED)
    sys.exit(subprocess.run([*namespaces, sys.executable, *sys.argv], check=False,
                            env={**os.environ, INSIDE: "1"}).returncode)


def cached_root(name, suite, mirror, packages=()):
    """Returns the folder of a root with `packages`. debootstrap makes it once. Call this before enter_namespaces,
    because it may need the network."""
    key = hashlib.sha256(" ".join([suite, mirror, *sorted(packages)]).encode()).hexdigest()[:12]
    folder = os.path.join(CACHE, f"{name}-{key}")
    os.makedirs(CACHE, exist_ok=True)
    with open(f"{folder}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another test may be making the same root
        if not os.path.isdir(folder):
            make_root(folder, suite, mirror, packages)
    return folder


def make_root(folder, suite, mirror, packages):
    """Makes the root of a distribution. Its folder appears when it is whole."""
    making = f"{folder}.making"
    shutil.rmtree(making, ignore_errors=True)
    extra = [f"--include={','.join(sorted(packages))}"] if packages else []
    try:
        made = subprocess.run(["debootstrap", "--variant=minbase", *extra, suite, making, mirror],
                              capture_output=True, text=True, check=False)
        if "Failed getting release file" in made.stdout + made.stderr:
            print(f"skipped: debootstrap does not reach {mirror}")
            sys.exit(SKIPPED)
        check(made.returncode == 0, f"debootstrap: {made.stdout[-2000:]}{made.stderr[-2000:]}")
        os.rename(making, folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)


class Root:
    """A root that a test may change. The changes disappear with the test's namespaces."""

    def __init__(self, base, work):
        self.path = os.path.join(work, "root")
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        os.makedirs(work, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", work], check=True)
        for folder in ("root", "changes", "scratch"):
            os.mkdir(os.path.join(work, folder))
        self.mount("overlay", "", f"lowerdir={base},upperdir={work}/changes,workdir={work}/scratch")
        self.mount("proc", "proc")
        self.mount("tmpfs", "dev/shm", make=True)
        for device in ("null", "zero", "urandom", "random", "tty"):
            place = os.path.join(self.path, "dev", device)
            if not os.path.exists(place):  # debootstrap may not make devices everywhere
                with open(place, "ab"):
                    pass
                subprocess.run(["mount", "--bind", f"/dev/{device}", place], check=True)

    def mount(self, kind, place, options=None, make=False):
        target = os.path.join(self.path, place)
        if make:
            os.makedirs(target, exist_ok=True)
        subprocess.run(["mount", "-t", kind, *(["-o", options] if options else []), kind, target], check=True)

    def command(self, *words):
        return ["chroot", self.path, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
                "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", *words]

    def try_to(self, *words):
        return subprocess.run(self.command(*words), capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL)

    def run(self, *words, code=0):
        """Runs a command in the root. Returns its output."""
        ended = self.try_to(*words)
        check(ended.returncode == code, f"{words} exited {ended.returncode}: {ended.stdout[-2000:]}{ended.stderr[-2000:]}")
        return ended.stdout

    def start(self, *words, log):
        with open(log, "wb") as file:
            return subprocess.Popen(self.command(*words), stdin=subprocess.DEVNULL, stdout=file, stderr=file)

    def put(self, path, folder):
        shutil.copy(path, os.path.join(self.path, folder.lstrip("/")))

    def files(self):
        """Returns the paths of all files, without those of kernel and devices."""
        listed = subprocess.run(["find", self.path, "-xdev", "-printf", "/%P\n"], check=True, capture_output=True, text=True)
        return set(listed.stdout.splitlines())
