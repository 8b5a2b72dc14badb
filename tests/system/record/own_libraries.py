#!/usr/bin/env python3
"""One command records a Debian program with the libraries of its own source package, whatever their names (libcrypto
of openssl). Libraries of other packages, libc and excluded libraries are not recorded. own_libraries.py BUILD_FOLDER
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main

COUNTS = """SELECT m.path AS path, coalesce(sum(calls), 0) AS calls FROM modules AS m
  LEFT JOIN functions AS f USING (module_id) LEFT JOIN function_stats USING (function_id) GROUP BY 1"""


def modules(sojourn, name, options, command):
    """Returns the calls of each module by its file name."""
    database = sojourn.path(f"{name}.db")
    sojourn.run(["record", "-q", *options, "-o", database, "--", *command], check=True, capture_output=True, text=True)
    check_accounts(sojourn, database)
    return {os.path.basename(row["path"]): row["calls"] for row in sojourn.sql(database, COUNTS)}


def run(sojourn, _):
    digest = ["openssl", "dgst", "-sha256", "/etc/os-release"]
    found = modules(sojourn, "openssl", [], digest)
    check(set(found) == {"openssl", "libcrypto.so.3", "libssl.so.3"}, f"{found}")
    check(found["openssl"] > 0 and found["libcrypto.so.3"] > 100, f"{found}")
    # A program that uses the library of another package does not own it.
    found = modules(sojourn, "shell", [], ["sh", "-c", "sqlite3 :memory: 'SELECT 1' && curl --version"])
    check(found["libsqlite3.so.0"] > 0 and found["libcurl.so.4"] > 0, f"{found}")
    check("libcrypto.so.3" not in found and "libz.so.1" not in found and "libc.so.6" not in found, f"{found}")
    policy = sojourn.path("without.json")
    with open(policy, "w", encoding="utf-8") as file:
        file.write('{"policy": 1, "modules": {"exclude": ["libcrypto*"]}}')
    found = modules(sojourn, "without", ["--policy", policy], digest)
    check("libcrypto.so.3" not in found and found["openssl"] > 0, f"{found}")
    found = modules(sojourn, "named", ["--module", "openssl"], digest)
    check(set(found) == {"openssl"}, f"{found}")


if __name__ == "__main__":
    main(run)
