#!/usr/bin/env python3
"""The steps of the Containerfile make a root in which the collector runs as a user without rights, and writes only
into its volume. The steps run in a fresh root of the distribution that the file names.

container_image.py BUILD_FOLDER PACKAGES_FOLDER; exits with 77 if debootstrap, root or namespaces are not available.
"""
import glob
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fresh_root import Root, cached_root, enter_namespaces
from package_roots import MIRROR, dependencies
from sojourn_testing import check, main, wait_for

RECIPE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../collector-server/packages/Containerfile")


def instructions():
    """Returns the instructions of the Containerfile as pairs of a name and its text."""
    with open(RECIPE, encoding="utf-8") as file:
        text = re.sub(r"^#.*\n", "", file.read(), flags=re.M).replace("\\\n", " ")
    return [line.split(None, 1) for line in text.splitlines() if line.strip()]


class Image:
    """The image, as far as its instructions were followed."""

    def __init__(self, root, packages):
        self.root, self.packages = root, packages
        self.user, self.volume, self.ports, self.entry, self.command = "root", None, [], [], []

    def do(self, name, text):
        steps = {"FROM": self.comes_from, "COPY": self.copy, "RUN": lambda text: self.root.run("sh", "-c", text),
                 "USER": lambda text: setattr(self, "user", text), "VOLUME": lambda text: setattr(self, "volume", text),
                 "EXPOSE": lambda text: setattr(self, "ports", text.split()),
                 "ENTRYPOINT": lambda text: setattr(self, "entry", json.loads(text)),
                 "CMD": lambda text: setattr(self, "command", json.loads(text))}
        check(name in steps, f"the test does not know {name}")
        steps[name](text)

    def comes_from(self, text):
        check("/debian:bookworm" in text, f"the test has no root of {text}")

    def copy(self, text):
        *sources, folder = text.split()
        os.makedirs(self.root.path + folder, exist_ok=True)
        for source in sources:
            files = glob.glob(os.path.join(self.packages, source))
            check(len(files) == 1, f"{source}: {files}")
            self.root.put(files[0], folder)

    def start(self, log):
        """Starts the image's program as its user, as a container engine does."""
        words = self.root.command(*self.entry, *self.command)
        with open(log, "wb") as file:
            return subprocess.Popen([words[0], f"--userspec={self.user}", *words[1:]], stdin=subprocess.DEVNULL,
                                    stdout=file, stderr=file)


def runs(sojourn, image):
    """The collector is healthy at the image's ports, runs without rights, and writes only into the volume."""
    before, log = image.root.files(), sojourn.path("sojournd.log")
    collector = image.start(log)
    wait_for("the dashboard", lambda: "dashboard at" in open(log, encoding="utf-8").read())
    with open(f"{image.root.path}/proc/{collector.pid}/status", encoding="utf-8") as file:
        rights = dict(line.split(":\t", 1) for line in file.read().splitlines())
    check(rights["Uid"].split()[0] != "0" and int(rights["CapEff"], 16) == 0, f"rights: {rights}")
    health = subprocess.run(["curl", "-s", "-k", "-w", "%{http_code}", f"https://127.0.0.1:{image.ports[1]}/healthz"],
                            capture_output=True, text=True, check=False)
    check(health.stdout.endswith("200"), f"healthz: {health}")
    listed = subprocess.run(["ss", "-ltnH"], capture_output=True, text=True, check=True).stdout
    check(all(f":{port} " in listed for port in image.ports), f"ports: {listed}")
    collector.terminate()
    check(collector.wait() == 0, f"the collector ended by {collector.returncode}")
    written = {path for path in image.root.files() - before if not path.startswith(image.volume)}
    check(not written, f"written outside of the volume: {written}")
    check(f"{image.volume}/lab.db" in image.root.files(), "the database is not in the volume")


def test(sojourn, arguments):
    if not os.environ.get("SJ_INSIDE_NAMESPACES"):
        needed = dependencies(glob.glob(f"{arguments[0]}/*.deb"))
        os.environ["SJ_BASE_ROOT"] = cached_root("bookworm", "bookworm", MIRROR, needed)
    enter_namespaces()
    image = Image(Root(os.environ["SJ_BASE_ROOT"], os.path.abspath("mounted-image")), arguments[0])
    for name, text in instructions():
        image.do(name, text)
    runs(sojourn, image)


main(test, checks_sums=False)
