#!/usr/bin/env python3
"""Calls end by jumps. SQL returns the caller of each call as in the source, and the rows equal what follows from the
stack frames alone. Trees, sums, triggers and exports use this relation. The counts are those of the machine's calls.

tail_relations.py BUILD_FOLDER SAMPLE (SJ_LONG=1: a chain of 10 million)
"""
import collections
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main

LONG = os.environ.get("SJ_LONG") == "1"
ROUNDS = 3333333 if LONG else 20000
CHAIN = 8  # calls of a chain that are open at most
ALL = (
    "SELECT call_id, name, parent_id, tail_caller_id, physical_parent_id, start_ns, end_ns, duration_ns, "
    "physical_duration_ns, depth, ending FROM calls JOIN functions USING (function_id) ORDER BY call_id"
)
# The source has these jumps: the jumping function, its target, and how often.
JUMPS = {
    ("tail_second", "tail_outer"): 1, ("tail_outer", "tail_leaf"): 1, ("machine_run", "state_a"): 1,
    ("is_even", "is_odd"): 251, ("is_odd", "is_even"): 250, ("tail_sibling", "tail_helper"): 50,
    ("tail_into_throw", "tail_throws"): 1, ("tail_by_pointer", "tail_helper"): 1,
}


def machine_jumps(rounds):
    return {("state_a", "state_b"): rounds, ("state_b", "state_c"): rounds, ("state_c", "state_a"): rounds}


def record(sojourn, program, rounds, options=()):
    database = sojourn.path("relations.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    done, _ = sojourn.record(
        [program, str(rounds)], database, ["--block-ms", "10000", *options])
    check(done.returncode == 0, f"ended with {done.returncode}: {done.stderr.decode()}")
    check_accounts(sojourn, database)
    return database


class Frames:
    """Derives the caller relation of the source from stack frames alone: each call's frame, return address, begin
    and end. A frame may begin at the moment at which the previous frame of the same caller ended. Then the previous
    call jumped to it, if its source has such a jump. With a coarse clock, one call can follow another at the same
    moment."""

    def __init__(self, rows, jumps):
        self.jumps = jumps
        self.last = {}  # the last frame of a caller
        self.chains = {}  # by caller: the calls that its last stack frame stands for, outermost first
        self.heads = {}  # by caller: how many of them stay until the end of the chain
        self.parent = {}
        self.tail_caller = {}
        self.end = {}
        for row in rows:
            self.take(row)
        for caller in list(self.chains):
            self.close(caller)

    def frame_end(self, row):
        return row["start_ns"] + row["physical_duration_ns"]

    def close(self, caller):
        chain = self.chains.pop(caller, [])
        for row in chain:
            self.end[row["call_id"]] = self.frame_end(chain[-1])
        self.heads.pop(caller, None)

    def take(self, row):
        caller = row["physical_parent_id"]
        before = self.last.get(caller)
        self.last[caller] = row
        if (before is None or self.frame_end(before) != row["start_ns"]
                or (before["name"], row["name"]) not in self.jumps):
            self.close(caller)
            self.chains[caller] = [row]
            self.parent[row["call_id"]] = caller
            return
        self.tail_caller[row["call_id"]] = before["call_id"]
        chain = self.chains[caller]
        again = [place + 1 for place, call in enumerate(chain) if call["name"] == row["name"]]
        head = min([self.heads.get(caller, CHAIN - 1), *again])
        if len(chain) >= head:
            self.heads[caller] = head
            for call in chain[head:]:
                self.end[call["call_id"]] = row["start_ns"]
            del chain[head:]
        self.parent[row["call_id"]] = chain[-1]["call_id"]
        chain.append(row)


def sums_follow(sojourn, database, rows):
    """Checks that the aggregates are the sums of the calls."""
    totals = collections.Counter()
    counts = collections.Counter()
    for row in rows:
        counts[row["name"]] += 1
        totals[row["name"]] += row["duration_ns"]
    stats = sojourn.sql(database, "SELECT name, sum(calls) AS calls FROM function_stats JOIN functions "
                                  "USING (function_id) GROUP BY name")
    check({row["name"]: row["calls"] for row in stats} == counts, f"calls: {stats}, not {counts}")
    paths = sojourn.sql(database, "SELECT name, calls, total_ns, depth FROM call_tree(1)")
    tree = {row["name"]: row for row in paths if row["name"] in ("tail_outer", "tail_leaf", "tail_second")}
    check([tree[name]["depth"] for name in ("tail_second", "tail_outer", "tail_leaf")] == [1, 2, 3],
          f"the tree: {tree}")
    check(tree["tail_outer"]["total_ns"] >= tree["tail_leaf"]["total_ns"] > 0, f"the tree: {tree}")
    check(len(paths) < 60, f"{len(paths)} call paths")
    frames = collections.Counter()
    for row in rows:
        frames[row["name"]] += row["physical_duration_ns"]
    paths = sojourn.sql(database, "SELECT name, calls, total_ns, depth FROM physical_tree(1)")
    found = collections.Counter()
    for row in paths:
        found[row["name"]] += row["calls"]
        frames[row["name"]] -= row["total_ns"]
    check({name: calls for name, calls in found.items() if name in counts} == counts, f"frames: {paths}")
    check(not any(frames[name] for name in counts), f"times of frames: {frames}")
    depths = {row["name"]: row["depth"] for row in paths}
    check([depths[name] for name in ("tail_second", "tail_outer", "state_b", "is_odd")] == [1] * 4,
          f"frames: {paths}")
    done = sojourn.run(["tree", "--physical", "--all", "--csv", database], capture_output=True, text=True)
    check(done.returncode == 0 and "tail_outer" in done.stdout, f"tree --physical: {done.stderr}")


def relations(sojourn, program):
    rounds = 3000
    database = record(sojourn, program, rounds)
    rows = [row for row in sojourn.sql(database, ALL) if not row["name"].startswith("_")]
    found = collections.Counter()
    names = {row["call_id"]: row["name"] for row in rows}
    frames = Frames(rows, {**JUMPS, **machine_jumps(rounds)})
    for row in rows:
        call = row["call_id"]
        check(row["tail_caller_id"] == frames.tail_caller.get(call), f"{row}: {frames.tail_caller.get(call)}")
        check(row["parent_id"] == frames.parent[call], f"{row}: called by {frames.parent[call]}")
        check(row["end_ns"] == frames.end[call], f"{row}: ends at {frames.end[call]}")
        if row["tail_caller_id"] is not None:
            found[(names[row["tail_caller_id"]], row["name"])] += 1
    check(found == {**JUMPS, **machine_jumps(rounds)}, f"tail calls: {found}")
    unwound = {row["name"] for row in rows if row["ending"] == "unwound"}
    check(unwound == {"tail_throws", "tail_into_throw"}, f"left by an exception: {unwound}")
    sums_follow(sojourn, database, rows)


def long_chain(sojourn, program):
    """A chain of any length gives a few call paths and a shallow stack, and each of its calls is counted."""
    database = record(sojourn, program, ROUNDS)
    counts = {row["name"]: row["calls"] for row in sojourn.sql(
        database, "SELECT name, calls FROM function_stats JOIN functions USING (function_id)")}
    check([counts[f"state_{name}"] for name in "abc"] == [ROUNDS + 1, ROUNDS, ROUNDS], f"calls: {counts}")
    shape = sojourn.sql(database, "SELECT (SELECT count(*) FROM call_paths) AS paths, "
                                  "(SELECT max(depth) FROM call_paths) AS depth")[0]
    check(shape["paths"] < 60 and shape["depth"] <= 1 + 2 * CHAIN, f"call paths: {shape}")
    whole = sojourn.sql(
        database, "SELECT c.duration_ns AS whole, (SELECT sum(duration_ns) FROM calls AS s WHERE "
        "s.parent_id = c.call_id) AS below FROM calls AS c JOIN functions USING (function_id) "
        "WHERE name = 'machine_run'")[0]
    check(whole["whole"] >= whole["below"] > 0, f"the machine runs for {whole}")


def triggers(sojourn, program):
    """A call that is slow in the source fires the trigger, although its stack frame ends at once."""
    path = sojourn.path("slow.json")
    for name in ("tail_outer", "machine_run", "state_a"):
        policy = {"policy": 1, "triggers": [{"on": "slow_call", "function": name, "longer_than": "1us",
                                             "pause": "0s", "do": ["mark"]}]}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(policy, file)
        database = record(sojourn, program, 2000, ["--policy", path])
        slow = sojourn.sql(database, f"SELECT count(*) AS n FROM calls JOIN functions USING (function_id) "
                                     f"WHERE name = '{name}' AND duration_ns > 1000")[0]["n"]
        fired = sojourn.sql(database, "SELECT subject FROM triggers")
        check(slow > 0 and fired and fired[0]["subject"] == name, f"{name}: {slow} slow calls, {fired}")


def test(sojourn, arguments):
    for program in arguments:
        relations(sojourn, program)
        long_chain(sojourn, program)
        triggers(sojourn, program)


if __name__ == "__main__":
    main(test)
