"""Calls that are open at the attach have their place in the tree. Forked children and libraries loaded during the
recording are recorded. A detach ends the recording of the process and of its children."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, check_same, code_bytes, look, start_attach
from sojourn_testing import PATIENCE_S, check, check_accounts, children, main, wait_for


def order(target, letter):
    target.process.stdin.write(letter)
    target.process.stdin.flush()
    check(target.process.stdout.readline() == "done\n", f"{letter} was not obeyed")


def check_alive(pid):
    """Checks that the process works and sleeps as before: none of its threads waits for the loader."""
    def is_out_of_futex():
        with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
            return file.read().split()[0] != "202"

    wait_for(f"{pid} continues", is_out_of_futex)


def test_forks_at_every_moment(sojourn, sample, rounds):
    """A child that is forked at any moment of an attach is recorded from its start or not at all. A detach also
    leaves the child, even if the parent forked it by a bare system call."""
    forked, recorded, i = 0, 0, -1
    # A loaded machine may fork too late for a window. Then the test adds windows.
    while i + 1 < rounds or (recorded == 0 and i < 20 * rounds):
        i += 1
        target = Target([sample]).ready()
        code = code_bytes(target.pid)
        database = sojourn.path(f"forks-{i}.db")
        summary = sojourn.path(f"forks-{i}.json")
        recorder = subprocess.Popen(
            [sojourn.program, "attach", "--quiet", "--for", "50ms", "-o", database, "--summary",
             summary, str(target.pid)], env=sojourn.environment)
        # A busy machine forks rarely in 50 ms. The check below needs some children that stay.
        while recorder.poll() is None or len(children(target.pid)) <= 2:
            order(target, "fffrffkf"[forked % 8] if len(children(target.pid)) < 60 else "f")
            forked += 1
        check(recorder.wait() == 0, f"round {i} failed")
        kept = children(target.pid)
        check(len(kept) > 2, f"round {i}: only {len(kept)} children stay")
        check_same({}, {}, code, code_bytes(target.pid), f"in {target.pid}")
        # A child that was forked while another thread loaded the agent keeps the agent mapped.
        stays = 0
        for pid in kept:
            now = code_bytes(pid)
            stays += sum(key not in code and "libsojourn-agent" in key[2] for key in now)
            check_same({}, {}, code, {key: value for key, value in now.items() if key in code},
                       f"in {pid}, child of {target.pid}")
            check_alive(pid)
        with open(summary, encoding="utf-8") as file:
            # Short-lived children may have kept it, too, and have ended by now.
            check(json.load(file)["left_bytes"] > 0 or stays == 0,
                  f"round {i}: {stays} children keep the agent, which the summary does not say")
        rows = sojourn.sql(database, "SELECT p.number, p.pid, sum(f.name = 'open_child') AS children, "
                                     "count(c.call_id) AS calls FROM processes p "
                                     "LEFT JOIN threads t ON t.process_number = p.number "
                                     "LEFT JOIN calls c USING (thread_id) "
                                     "LEFT JOIN functions f USING (function_id) "
                                     "WHERE p.how = 'forked' GROUP BY 1 ORDER BY 1")
        # Children that are forked during the detach come last and make no recorded call.
        without = [row["number"] for row in rows if not row["children"]]
        check(without == [row["number"] for row in rows][len(rows) - len(without):],
              f"children without calls: {without} of {rows}")
        recorded += len(rows) - len(without)
        check_accounts(sojourn, database)
        check(target.finish()[0] == 0, "the target failed")
    check(recorded > 0, "no forked child was recorded")


def check_before(sojourn, database, pid):
    """Every query returns the calls that were open at the attach, and marks them as such."""
    rows = sojourn.sql(
        database,
        "SELECT f.name, t.tid, c.depth, c.ending, p.name AS parent, c.start_ns, c.call_id "
        "FROM calls c JOIN functions f USING (function_id) JOIN threads t USING (thread_id) "
        "LEFT JOIN functions p ON p.function_id = c.caller_function_id "
        "WHERE c.flags & 1 ORDER BY f.name")
    found = {row["name"]: (row["depth"], row["parent"], row["ending"]) for row in rows}
    check(found == {"main": (0, None, "open"), "open_outer": (1, "main", "open"),
                    "open_middle": (2, "open_outer", "open"),
                    "open_loop": (3, "open_middle", "open"), "open_waiter": (0, None, "open")},
          f"calls open before recording: {rows}")
    waiting = {row["tid"] for row in rows if row["name"] == "open_waiter"}
    check(waiting and pid not in waiting, f"a thread that only waits: {rows}")
    check(len({row["start_ns"] for row in rows}) == 1, f"recording begins once: {rows}")
    ids = {row["name"]: row["call_id"] for row in rows}
    above = sojourn.sql(database, f"SELECT name FROM ancestors({ids['open_loop']}) "
                                  "JOIN functions USING (function_id) ORDER BY depth")
    check([row["name"] for row in above] == ["main", "open_outer", "open_middle"], f"{above}")
    tree = sojourn.run(["tree", database], capture_output=True, text=True).stdout
    check(all(name in tree for name in found if name != "open_waiter"), f"tree: {tree}")
    told = sojourn.sql(database, "SELECT (SELECT sum(stored_calls) FROM sessions) AS stored, "
                                 "(SELECT count(*) FROM calls) AS calls, "
                                 "(SELECT sum(calls) FROM call_paths) AS paths")[0]
    check(told["stored"] == told["calls"] == told["paths"], f"sums: {told}")


def listed(sojourn, pid):
    lines = sojourn.run(["ps", "--recorded"], capture_output=True, text=True).stdout.splitlines()
    return next((line for line in lines if line.split()[:1] == [str(pid)]), "")


def test_joining(sojourn, sample):
    """A process is listed as recorded only once every watch has begun. Its hooks alone do not suffice if no thread
    can begin to keep freed blocks. The recorder may be quicker than the program, so the test tries again."""
    policy = sojourn.path("kept.json")
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "name": "kept", "zombies": {"heap": {"one_in": 1, "delayed_free": True}}}, file)
    early = ""
    for i in range(20):
        target = Target([sample]).ready()
        recorder = subprocess.Popen([sojourn.program, "attach", "-q", "--policy", policy, "-o",
                                     sojourn.path(f"joining-{i}.db"), str(target.pid)], env=sojourn.environment)
        check(target.process.stdout.readline() == "held\n", "it has hooks")
        early = listed(sojourn, target.pid)
        target.process.stdin.write("\n")
        target.process.stdin.flush()
        wait_for("it is recorded", lambda pid=target.pid: " recorded: " in listed(sojourn, pid))
        check(target.finish()[0] == 0 and recorder.wait(PATIENCE_S) == 0, "both end")
        if " being attached to" in early:
            return
    check(False, f"it was recorded at once: {early}")


def test(sojourn, arguments):
    sample, plugin, held = arguments
    test_joining(sojourn, held)
    test_forks_at_every_moment(sojourn, sample, 20 if os.environ.get("SJ_LONG") else 2)
    target = Target([sample, plugin]).ready()
    before, code = look(target.pid), code_bytes(target.pid)
    database = sojourn.path("run.db")
    recorder = start_attach(sojourn, target.pid, database)
    # Before each command, the program calls open_leaf a hundred times.
    for letter in "fllf" + 30 * "n":
        order(target, letter)
    done = sojourn.run(["detach", str(target.pid)], capture_output=True, text=True)
    check(done.returncode == 0 and recorder.wait(PATIENCE_S) == 0, f"detach: {done}")
    check_same(before, look(target.pid), code, code_bytes(target.pid), "after detach")

    rows = sojourn.sql(database, "SELECT name, count(*) AS calls FROM calls JOIN functions "
                                 "USING (function_id) GROUP BY name")
    counts = {row["name"]: row["calls"] for row in rows}
    check(counts.get("open_child") == 2, f"forked children: {counts}")
    check(counts.get("plugin_step") == 500, f"the library: {counts}")
    check(counts.get("open_leaf", 0) > 2000, f"the loop: {counts}")
    chain = sojourn.sql(
        database,
        "SELECT f.name AS child, p.name AS parent, c.depth AS depth, count(*) AS calls FROM calls c "
        "JOIN functions f ON f.function_id = c.function_id "
        "LEFT JOIN functions p ON p.function_id = c.caller_function_id "
        "WHERE f.name LIKE 'open_%' GROUP BY 1, 2, 3")
    parents = {(row["child"], row["parent"]) for row in chain}
    for pair in (("open_leaf", "open_loop"), ("open_leaf", "open_child")):
        check(pair in parents, f"{pair} is missing: {chain}")
    check({row["depth"] for row in chain if row["parent"] == "open_loop"} == {4},
          f"the calls below main, open_outer, open_middle and open_loop: {chain}")
    still = sojourn.sql(database, "SELECT name FROM open_calls JOIN functions USING (function_id) "
                                  "ORDER BY depth, name")
    check([row["name"] for row in still] ==
          ["main", "open_waiter", "open_outer", "open_middle", "open_loop"],
          f"open at the end: {still}")
    check_before(sojourn, database, target.pid)
    check(not any(child == "open_leaf" and parent is None for child, parent in parents),
          f"a call whose caller was open has none: {chain}")
    check_accounts(sojourn, database)
    processes = sojourn.sql(database, "SELECT how FROM processes ORDER BY number")
    check([row["how"] for row in processes] == ["attached", "forked", "forked"], f"{processes}")
    status, output = target.finish()
    check(status == 0, f"the target: {status}, {output}")


main(test)
