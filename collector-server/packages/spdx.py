#!/usr/bin/env python3
"""Writes an SPDX 2.3 document of what the packages in a folder contain and need.

spdx.py SOURCE_FOLDER PACKAGES_FOLDER VERSION; SOURCE_DATE_EPOCH is the time of the document.
"""
import glob
import hashlib
import json
import os
import subprocess
import sys
import time

# Debian packages whose static libraries are in libsojourn-direct.so (agent/direct/CMakeLists.txt), and libiberty, which
# is in all programs that demangle names.
STATIC = ("libzstd-dev", "libprotobuf-c-dev", "liblzma-dev", "libiberty-dev", "zlib1g-dev")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def identifier(kind, name):
    return f"SPDXRef-{kind}-" + "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in name)


def package(kind, name, version, license_name="NOASSERTION", **more):
    return {"SPDXID": identifier(kind, name), "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": license_name,
            "copyrightText": "NOASSERTION", **more}


def debian(name):
    version = output_of("dpkg-query", "-W", "-f", "${Version}", name)
    return package("Debian", name, version, externalRefs=[{
        "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
        "referenceLocator": f"pkg:deb/debian/{name}@{version}"}])


def bundled(source):
    """Returns the npm packages that the dashboard contains."""
    with open(os.path.join(source, "web-static", "package-lock.json"), encoding="utf-8") as file:
        locked = json.load(file)["packages"]
    found = []
    for path, entry in sorted(locked.items()):
        if path and not entry.get("dev") and not entry.get("optional") and not entry.get("peer"):
            name = path.split("node_modules/")[-1]
            found.append(package("npm", name, entry["version"], entry.get("license", "NOASSERTION"), externalRefs=[{
                "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                "referenceLocator": f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}"}]))
    return found


def deliverable(path, version):
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    return package("File", os.path.basename(path), version, "MIT", packageFileName=os.path.basename(path),
                   checksums=[{"algorithm": "SHA256", "checksumValue": digest}])


def needed(path):
    """Returns the names of the Debian packages that a file needs or, for the tarball, contains."""
    if path.endswith(".deb"):
        field = output_of("dpkg-deb", "-f", path, "Depends")
        names = {word.split()[0].split(":")[0] for word in field.split(",") if word.strip()}
        return "DEPENDS_ON", sorted(name for name in names if "sojourn" not in name)
    names = output_of("tar", "-tf", path).splitlines()
    return "CONTAINS", sorted(os.path.basename(name) for name in names if "/licenses/" in name and name[-1] != "/")


def main(source, folder, version):
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    files = sorted(path for path in glob.glob(f"{folder}/*") if path.endswith((".deb", ".tar.xz")) and "dbgsym" not in path)
    packages = {"SPDXRef-sojourn": {**package("File", "sojourn", version, "MIT"), "SPDXID": "SPDXRef-sojourn"}}
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-sojourn")]

    def relate(owner, kind, found):
        packages[found["SPDXID"]] = found
        relations.append((owner, kind, found["SPDXID"]))

    for path in files:
        file = deliverable(path, version)
        relate("SPDXRef-sojourn", "GENERATES", file)
        kind, names = needed(path)
        for name in names:
            relate(file["SPDXID"], kind, debian(name))
    for name in STATIC:
        relate("SPDXRef-sojourn", "STATIC_LINK", debian(name))
    for found in bundled(source):
        relate("SPDXRef-sojourn", "CONTAINS", found)
    document = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
                "name": f"sojourn-{version}", "documentNamespace": f"urn:sojourn:spdx:{version}:{created}",
                "creationInfo": {"created": created, "creators": ["Tool: sojourn-package"]},
                "packages": list(packages.values()),
                "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
                                  for one, kind, other in relations]}
    with open(f"{folder}/sojourn-{version}.spdx.json", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")


main(*sys.argv[1:4])
