#!/usr/bin/env python3
"""Selects functions without a name by MODULE+0xOFFSET: --function, --exclude, ranges, values, triggers and policies of
one build. function_places.py BUILD_FOLDER"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import build_sample, check, check_accounts, json_rows, main

CALLS = """SELECT f.name AS name, s.calls AS calls FROM function_stats s JOIN functions f USING (function_id)
           WHERE s.session_id = 1"""


def symbols(program):
    """Returns the offsets of the program's functions by name, as nm knows them."""
    lines = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[2]: int(line.split()[0], 16) for line in lines if len(line.split()) == 3}


def recorded(sojourn, program, options=(), policy=None):
    """Returns the recorded calls by function, and the database."""
    database = sojourn.path("places.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    options = list(options)
    if policy is not None:
        options += ["--policy", write_policy(sojourn, policy)]
    done = sojourn.run(["record", "-q", "-o", database, *options, "--", program], capture_output=True, text=True)
    check(done.returncode == 0, f"{options}: {done.stderr}")
    check_accounts(sojourn, database)
    return {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS) if row["calls"]}, database


def write_policy(sojourn, policy):
    path = sojourn.path("policy.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, **policy}, file)
    return path


def refused(sojourn, program, options, words):
    done = sojourn.run(["record", "-q", "-o", sojourn.path("no.db"), *options, "--", program],
                       capture_output=True, text=True)
    check(done.returncode != 0 and words in done.stderr, f"{options}: {done.returncode} {done.stderr}")


def filters(sojourn, program, often, rarely):
    found, _ = recorded(sojourn, program)
    check(found.get(often) == 3000 and found.get(rarely) == 10, f"no filter: {found}")
    found, _ = recorded(sojourn, program, ["--function", rarely])
    check(found == {rarely: 10}, f"one function: {found}")
    found, _ = recorded(sojourn, program, ["--exclude", often])
    check(often not in found and found.get(rarely) == 10, f"without one: {found}")
    low, high = sorted((often, rarely), key=lambda place: int(place.split("+")[1], 16))
    found, _ = recorded(sojourn, program, ["--function", f"{low}-{high.split('+')[1]}"])
    check(found == {often: 3000, rarely: 10}, f"a range: {found}")
    found, _ = recorded(sojourn, program, ["--function", f"unnam*+{rarely.split('+')[1]}"])
    check(found == {rarely: 10}, f"a glob of modules: {found}")


def values_and_triggers(sojourn, program, rarely):
    _, database = recorded(sojourn, program, ["--value", f"{rarely}(1:int)"])
    rows = sojourn.sql(database, "SELECT name, value FROM arguments JOIN calls USING (call_id) "
                                 "JOIN functions USING (function_id) ORDER BY value")
    check(rows == [{"name": rarely, "value": number} for number in range(10)], f"arguments: {rows}")
    _, database = recorded(sojourn, program, policy={
        "mode": "flight", "triggers": [{"on": "nth_call", "function": rarely, "times": 5, "do": ["dump"]}]})
    fired = [row["event"] for row in sojourn.sql(database, "SELECT * FROM triggers ORDER BY number")]
    check(fired == ["nth_call"], f"a trigger: {fired}")


def builds(sojourn, program, often, rarely):
    listed = sojourn.run(["functions", "--json", program], capture_output=True, text=True, check=True).stdout
    by_offset = {f"{row['offset']:#x}": row for row in json_rows(listed)[0]["functions"]}
    place = by_offset[rarely.split("+")[1]]["place"]
    text = sojourn.run(["functions", program], capture_output=True, text=True, check=True).stdout
    check(f" {rarely}\n" in text and place.split("@")[1] in text, f"{text}")
    found, _ = recorded(sojourn, program, policy={"functions": {"include": [place]}})
    check(found == {rarely: 10}, f"a policy of this build: {found}")
    other = place[:-1] + ("0" if place[-1] != "0" else "1")
    refused(sojourn, program, ["--policy", write_policy(sojourn, {"functions": {"include": [other]}})],
            "another build")
    refused(sojourn, program, ["--function", "unnamed+0xfff000"], "sojourn functions")
    refused(sojourn, program, ["--function", "unnamed+0x12-0x11"], "MODULE+0xFROM-0xTO")
    # The place stays valid when the functions get names.
    named = build_sample(sojourn, "policy/unnamed.c", "-O2", "-Wl,--build-id", program=program)
    found, _ = recorded(sojourn, named, ["--exclude", often])
    check("often" not in found and found.get("rarely") == 10, f"with names: {found}")


def odd_file(sojourn):
    """Functions of a file whose name cannot stand in a place are listed without places."""
    program = build_sample(sojourn, "policy/unnamed.c", program=sojourn.path("a:b"))
    listed = sojourn.run(["functions", "--json", program], capture_output=True, text=True, check=True).stdout
    check({row["place"] for row in json_rows(listed)[0]["functions"]} == {""}, f"places of a file a:b: {listed[:300]}")


def run(sojourn, _):
    odd_file(sojourn)
    program = build_sample(sojourn, "policy/unnamed.c", "-O2", "-Wl,--build-id")
    names = symbols(program)
    often, rarely = f"unnamed+{names['often']:#x}", f"unnamed+{names['rarely']:#x}"
    subprocess.run(["strip", program], check=True)
    filters(sojourn, program, often, rarely)
    values_and_triggers(sojourn, program, rarely)
    builds(sojourn, program, often, rarely)


if __name__ == "__main__":
    main(run)
