"""Changes the policy of a running recording: modes, functions, modules, filters. The program's own counts equal the
stored calls over all policies."""
import collections
import json
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, check_same, code_bytes, let_work, look, set_policy, start_attach
from sojourn_testing import PATIENCE_S, check, check_accounts, children, main, wait_for

FUNCTIONS = ["policy_round", "policy_outer", "policy_middle", "policy_inner", "policy_wait"]
ALL = ["--function", "policy_*"]
DEPTH = 4  # calls that are open at once on a thread of policy_target, at most


def counts(sojourn, database, where="1"):
    """Returns the calls by function. A call that is open where a dump ends continues in its session."""
    found = collections.Counter()
    for row in sojourn.sql(database, "SELECT f.name, sum(s.calls) AS calls FROM function_stats s JOIN functions f "
                                     f"USING (function_id) WHERE {where} GROUP BY 1"):
        found[row["name"]] += row["calls"]
    for row in sojourn.sql(database, "SELECT f.name FROM calls c JOIN functions f USING (function_id) JOIN sessions s "
                                     f"USING (session_id) WHERE s.mode = 'flight' AND c.ending = 'open' AND {where}"):
        found[row["name"]] -= 1
    return found


def start_recorded(sojourn, program, database, options=()):
    """Starts the program under `record`. Returns the recorder and the program's pid."""
    recorder = subprocess.Popen(
        [sojourn.program, "record", "-q", "-o", database, *options, "--", program],
        env=sojourn.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    check(recorder.stdout.readline() == "ready\n", "the program did not start")
    return recorder, children(recorder.pid)[0]


def finish(process, code=0):
    output, _ = process.communicate(timeout=PATIENCE_S)
    check(process.returncode == code and "mistakes 0" in output, f"the program: {output}")
    rows = (line.split() for line in output.splitlines())
    return {row[0]: int(row[1]) for row in rows if row[0] in FUNCTIONS}


def modes_add_up(sojourn, programs):
    """Each call is counted once, in every mode."""
    database, policy = sojourn.path("modes.db"), sojourn.path("flight.json")
    with open(policy, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "mode": "flight", "functions": {"include": ["policy_*"]},
                   "flight": {"before": "5m", "after": "5m", "memory": "256M"},
                   "triggers": [{"on": "command", "name": "keep", "do": ["dump"]}]}, file)
    recorder, pid = start_recorded(sojourn, os.path.join(programs, "policy_target"), database, ALL)
    numbers = []
    for options in (["--profile", *ALL], ALL, ["--policy", policy], ["--profile", *ALL], ALL,
                    ["--minimum", "1ms", *ALL], ALL):
        let_work(recorder)
        if "--policy" in options:
            flight = set_policy(sojourn, pid, *options)
            let_work(recorder)
            done = sojourn.run(["trigger", "keep"], capture_output=True, text=True)
            check(done.returncode == 0, f"the dump is not asked for: {done}")
            numbers.append(flight["policy"])
        else:
            answer = set_policy(sojourn, pid, *options)
            check(answer["processes"] == 0, f"no hook changes with the mode: {answer}")
            numbers.append(answer["policy"])
    own = finish(recorder)
    check(numbers == list(range(2, 9)), f"policies are not counted: {numbers}")
    check_accounts(sojourn, database)
    sessions = sojourn.sql(database, "SELECT cause, lost_calls FROM sessions ORDER BY session_id")
    check(len(sessions) == 2 and sessions[1]["cause"] == "command keep", f"no dump: {sessions}")
    check(all(row["lost_calls"] == 0 for row in sessions), f"calls were lost: {sessions}")
    found = counts(sojourn, database)
    for row in sojourn.sql(database, "SELECT f.name, sum(c.calls) AS calls FROM filtered_calls c "
                                     "JOIN functions f USING (function_id) GROUP BY 1"):
        found[row["name"]] += row["calls"]
    check(dict(found) == own, f"the program counted {own}, stored are {dict(found)}")
    modes = [row["mode"] for row in
             sojourn.sql(database, "SELECT mode FROM policies ORDER BY number")]
    check(modes == ["trace", "profile", "trace", "flight", "profile", "trace", "trace", "trace"],
          f"the policies that were obeyed: {modes}")
    reports = sojourn.sql(database, "SELECT count(*) AS n FROM profiles")[0]["n"]
    check(reports >= 2, f"{reports} profiles")
    wrong = sojourn.sql(database, "SELECT f.name AS child, p.name AS parent, count(*) AS n FROM calls c "
                        "JOIN functions f USING (function_id) "
                        "JOIN functions p ON p.function_id = c.caller_function_id GROUP BY 1, 2")
    check_parents(wrong, exact=False)
    print(f"{sum(own.values())} calls in three modes, each stored once")


def check_parents(rows, exact):
    """Checks that the parent of a call is its nearest recorded caller."""
    chain = {"policy_inner": ["policy_middle", "policy_outer", "policy_round", "policy_wait"],
             "policy_middle": ["policy_outer", "policy_round", "policy_wait"],
             "policy_outer": ["policy_round", "policy_wait"]}
    for row in rows:
        expected = chain.get(row["child"], [])
        expected = expected[:1] if exact and row["child"] != "policy_outer" else expected
        check(row["parent"] in expected, f"a wrong parent: {row}")


def functions_are_added_and_removed_repeatedly(sojourn, programs):
    """Adds functions to the policy and removes them repeatedly, while threads and a child work."""
    target = Target([os.path.join(programs, "policy_target")]).ready()
    before, code = look(target.pid), code_bytes(target.pid)
    database = sojourn.path("loop.db")
    recorder = start_attach(sojourn, target.pid, database, ["--function", "policy_inner"])
    rounds = 300 if os.environ.get("SJ_LONG") else 12
    refused, stops = 0, []
    selections = [ALL, ["--function", "policy_outer"], [*ALL, "--exclude", "policy_middle"],
                  ["--function", "policy_w*"], [*ALL, "--exclude", "policy_outer", "--exclude",
                                                "policy_wait"], ["--function", "no_such_function"]]
    for i in range(rounds):
        answer = set_policy(sojourn, target.pid, *selections[i % len(selections)])
        absent = ['"no_such_function" matches no function so far'] if "no_such_function" in selections[i % len(selections)] else []
        check(answer["processes"] == 1 and answer["not_applied"] == absent, f"round {i}: {answer}")
        check(answer["hooked"] + answer["freed"] > 0, f"round {i} changed nothing: {answer}")
        refused += answer["refused"]
        stops.append(answer["stopped_ns"])
        let_work(target.process, 1)
    last = set_policy(sojourn, target.pid, *ALL)
    let_work(target.process, 5)
    done = sojourn.run(["detach", str(target.pid)], capture_output=True, text=True)
    check(done.returncode == 0 and recorder.wait(PATIENCE_S) == 0, f"detach: {done}")
    check_same(before, look(target.pid), code, code_bytes(target.pid), "after detach")
    own = finish(target.process)
    check_accounts(sojourn, database)
    found = counts(sojourn, database)
    check(all(0 < found[name] <= own[name] for name in FUNCTIONS), f"{own} made, {found} stored")
    pairs = ("SELECT f.name AS child, p.name AS parent, count(*) AS n FROM calls c "
             "JOIN functions f USING (function_id) "
             "JOIN functions p ON p.function_id = c.caller_function_id WHERE {} GROUP BY 1, 2")
    check_parents(sojourn.sql(database, pairs.format("1")), exact=False)
    applied = sojourn.sql(database, "SELECT max(applied_ns) AS ns FROM policies")[0]["ns"]
    rows = sojourn.sql(database, pairs.format(f"c.start_ns > {applied}"))
    check_parents(rows, exact=True)
    check({row["child"] for row in rows} >= {"policy_inner", "policy_middle", "policy_outer"},
          f"not all functions are recorded in the end: {rows}")
    # A call of policy_wait whose entry or exit was not seen must not count as a complete call.
    short = sojourn.sql(database, "SELECT c.* FROM calls c JOIN functions f USING (function_id) "
                                  "WHERE f.name = 'policy_wait' AND c.flags = 0 AND (CASE c.ending "
                                  "WHEN 'returned' THEN c.duration_ns < 19000000 "
                                  f"WHEN 'open' THEN c.start_ns < {applied} "
                                  "WHEN 'truncated' THEN 0 ELSE 1 END)")
    check(not short, f"calls that were cut short and do not say so: {short}")
    numbers = sojourn.sql(database, "SELECT count(*) AS n FROM policies")[0]["n"]
    check(numbers == rounds + 2 and last["policy"] == numbers, f"{numbers} policies")
    listed = {row["name"] for row in sojourn.sql(database, "SELECT name FROM unhooked_functions")}
    check(not listed & set(FUNCTIONS), f"hooked in the end, listed as not: {listed}")
    print(f"{rounds} selections, {sum(found.values())} calls, {refused} pieces refused, stopped "
          f"{sorted(stops)[len(stops) // 2] / 1e6:.2f} ms (worst {max(stops) / 1e6:.2f})")


def killed_in_a_change(sojourn, programs):
    """Kills the recorder at random moments of a change of the selection. The process keeps running, and `detach`
    restores every byte."""
    target = Target([os.path.join(programs, "policy_target")]).ready()
    before, code = look(target.pid), code_bytes(target.pid)
    chance = random.Random(5)
    for i in range(60 if os.environ.get("SJ_LONG") else 5):
        recorder = start_attach(sojourn, target.pid, sojourn.path(f"killed-{i}.db"),
                                ["--function", "policy_inner"])
        change = subprocess.Popen([sojourn.program, "policy", "set", *ALL, str(target.pid)],
                                  env=sojourn.environment, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0, 0.06))
        recorder.kill()
        recorder.wait()
        check(change.wait(PATIENCE_S) in (0, 1, 3), f"policy set ended with {change.returncode}")
        # Code that a thread, interrupted there by a signal, still runs is removed at the next attempt.
        done = sojourn.run(["detach", str(target.pid)], capture_output=True, text=True)
        check(done.returncode == 0, f"round {i}: {done}")
        check_same(before, look(target.pid), code, code_bytes(target.pid), f"in round {i}")
    finish(target.process)


def a_killed_profile_is_finished(sojourn, programs):
    """Sums that the profile had not sent are counted as a gap, and unread records are recovered. The budget unhooks
    functions. Their later calls are not recorded, and the decisions say so."""
    database = sojourn.path("profile.db")
    for options in (["--profile"], ["--profile", "--budget", "50%"], []):
        remove_database(sojourn, "profile.db")
        recorder, pid = start_recorded(sojourn, os.path.join(programs, "policy_target"), database,
                                       [*ALL, *options])
        let_work(recorder)
        if not options:
            set_policy(sojourn, pid, "--profile", *ALL)
            let_work(recorder)
        recorder.kill()
        own = finish_program(recorder)
        check_events(sojourn, database, own, options)


def drops_are_counted_by_recovery(sojourn, programs):
    """Stops a recorder, and kills it soon after it has read about the drops."""
    database = sojourn.path("profile.db")
    for options in ([], ["--profile"]):
        for pause in (0.01, 0.1, 0.4):
            remove_database(sojourn, "profile.db")
            recorder, _ = start_recorded(sojourn, os.path.join(programs, "policy_target"), database,
                                         [*ALL, *options, "--buffer", "2", "--when-full", "drop"])
            let_work(recorder, 1)
            recorder.send_signal(signal.SIGSTOP)
            let_work(recorder, 10)
            recorder.send_signal(signal.SIGCONT)
            time.sleep(pause)  # a moment, not a wait
            recorder.kill()
            own = finish_program(recorder)
            check_events(sojourn, database, own, options)


def remove_database(sojourn, name):
    for found in os.listdir(sojourn.folder):
        if found.startswith(name):
            os.unlink(sojourn.path(found))


def check_events(sojourn, database, own, options):
    """Each call of the program is two events, and each event is stored or counted as lost, once. The calls that a
    loss or the end of a stream ends have one more event each, without a record."""
    done = sojourn.run(["flush"], capture_output=True, text=True)
    check(done.returncode == 0 and "1 session finished" in done.stdout, f"flush: {done}")
    row = sojourn.sql(database, "SELECT state, stored_calls, stored_events, device_lost_calls, "
                                "lost_events FROM sessions")[0]
    check(row["state"] == "lost" and row["stored_calls"] > 0, f"not finished: {row}")
    check_accounts(sojourn, database)
    events = row["stored_events"] + row["lost_events"]
    least = 2 * (recorded_before_unhooked(sojourn, database) if "--budget" in options else own)
    endings = sojourn.sql(database, "SELECT (SELECT count(*) FROM gaps) + (SELECT 2 * count(*) FROM threads) AS n")
    check(least <= events <= 2 * own + DEPTH * endings[0]["n"],
          f"of {own} calls {least} events at least were recorded, {events} are counted: {row}")


def recorded_before_unhooked(sojourn, database):
    """Returns the recorded calls of the functions that the budget unhooked, up to its last decision."""
    return sojourn.sql(database, "SELECT coalesce(sum(n), 0) AS n FROM (SELECT max(total_calls) AS n "
                                 "FROM decisions WHERE what = 'unhook' "
                                 "GROUP BY process_number, function_id)")[0]["n"]


def finish_program(recorder):
    """The program of a recorder that is gone ends with its input. Returns the program's counts."""
    recorder.stdin.close()
    rows = (line.split() for line in recorder.stdout.read().splitlines())
    recorder.wait(timeout=PATIENCE_S)
    return sum(int(row[1]) for row in rows if row[0] in FUNCTIONS)


def children_follow_the_policy(sojourn, programs):
    """A child that was forked before follows the policy, too. Unhooked functions are listed and not recorded."""
    database = sojourn.path("children.db")
    recorder, pid = start_recorded(sojourn, os.path.join(programs, "policy_target"), database,
                                   ["--function", "policy_outer"])
    answer = set_policy(sojourn, pid, "--function", "policy_round")
    check(answer["processes"] == 2, f"both processes: {answer}")
    check((answer["hooked"], answer["freed"]) == (2, 2), f"one function for one in each: {answer}")
    let_work(recorder)
    finish(recorder)
    check_accounts(sojourn, database)
    applied = sojourn.sql(database, "SELECT max(applied_ns) AS ns FROM policies")[0]["ns"]
    rows = sojourn.sql(database, "SELECT DISTINCT f.name, t.process_number AS process FROM calls c "
                                 "JOIN functions f USING (function_id) JOIN threads t "
                                 "USING (thread_id) "
                                 f"WHERE c.start_ns > {applied}")
    found = {(row["name"], row["process"]) for row in rows}
    check(found == {("policy_round", 1), ("policy_round", 2)}, f"after the change: {found}")
    listed = {row["name"] for row in sojourn.sql(
        database, "SELECT name FROM unhooked_functions WHERE reason = 'not selected by the policy'")}
    check("policy_outer" in listed and "policy_round" not in listed, f"listed as not hooked: {listed}")


def libraries_follow(sojourn, programs):
    """A library that was not hooked is planned when a policy selects it. A library that is loaded later follows the
    policy of that moment. The first library is Debian's."""
    target = Target(["sqlite3", "-batch", ":memory:"])
    ask(target, "CREATE TABLE t(a); SELECT 'ready';")
    before, code = look(target.pid), code_bytes(target.pid)
    database = sojourn.path("libraries.db")
    recorder = start_attach(sojourn, target.pid, database)
    set_policy(sojourn, target.pid, "--libs", "--module", "*libsqlite3*")
    ask(target, "INSERT INTO t VALUES (1), (2), (3); SELECT 'ready';")
    sojourn.run(["detach", str(target.pid)], check=True, stdout=subprocess.DEVNULL)
    check(recorder.wait(PATIENCE_S) == 0, "the recorder failed")
    check_same(before, look(target.pid), code, code_bytes(target.pid), "after detach")
    target.finish()
    check_accounts(sojourn, database)
    found = counts(sojourn, database)
    check(found["sqlite3_step"] >= 2 and found["sqlite3_finalize"] >= 2, f"the library: {found}")

    sample = os.path.join(programs, "attach_open")
    target = Target([sample, os.path.join(programs, "libattach_plugin.so")]).ready()
    database = sojourn.path("later.db")
    recorder = start_attach(sojourn, target.pid, database)
    set_policy(sojourn, target.pid, "--function", "plugin_step")
    for _ in range(2):
        ask(target, "l", "done\n")
    sojourn.run(["detach", str(target.pid)], check=True, stdout=subprocess.DEVNULL)
    check(recorder.wait(PATIENCE_S) == 0, "the recorder failed")
    target.finish()
    check_accounts(sojourn, database)
    found = counts(sojourn, database)
    check(found["plugin_step"] == 500 and found["plugin_work"] == 0, f"the later library: {found}")
    unloaded = sojourn.sql(database, "SELECT m.path FROM mappings a JOIN session_modules s ON "
                           "s.session_id = a.session_id AND s.number = a.module_number "
                           "JOIN modules m USING (module_id) WHERE a.unloaded_ns IS NOT NULL")
    check(unloaded and "plugin" in unloaded[0]["path"], f"unloaded: {unloaded}")


def ask(target, text, answer="ready\n"):
    target.process.stdin.write(text + ("" if answer == "done\n" else "\n"))
    target.process.stdin.flush()
    check(target.process.stdout.readline() == answer, "another answer")


def budgets_begin_and_end(sojourn, programs):
    """A budget that is set later is kept. Without a budget, the functions that it had unhooked are hooked again."""
    database = sojourn.path("budget.db")
    target = Target([os.path.join(programs, "attach_target")]).ready()
    recorder = start_attach(sojourn, target.pid, database, ["--profile"])
    set_policy(sojourn, target.pid, "--profile", "--budget", "1%")
    decided = ("SELECT f.name FROM decisions d JOIN functions f USING (function_id) "
               "WHERE what = 'unhook' ORDER BY d.number")
    wait_for("a decision of the budget", lambda: sojourn.sql(database, decided))
    answer = set_policy(sojourn, target.pid, "--profile", "--function", "target_round")
    sojourn.run(["detach", str(target.pid)], check=True, stdout=subprocess.DEVNULL)
    check(recorder.wait(PATIENCE_S) == 0, "the recorder failed")
    _, output = target.finish()
    check("mistakes 0" in output, f"the target: {output}")
    check_accounts(sojourn, database)
    unhooked = sojourn.sql(database, decided)
    check(unhooked[0]["name"] == "target_mix", f"not the hottest first: {unhooked}")
    check(answer["processes"] == 1 and not answer["not_applied"], f"{answer}")


def a_budget_with_receivers_is_refused(sojourn, programs):
    """Recording by receiver gives many functions for each function that can be unhooked. A budget is refused at the
    start, and reported as not applied later."""
    database = sojourn.path("receivers.db")
    recorder, pid = start_recorded(sojourn, os.path.join(programs, "attach_target"), database,
                                   ["--receivers"])
    answer = set_policy(sojourn, pid, "--budget", "1%")
    check("receivers" in str(answer["not_applied"]), f"{answer}")
    finish(recorder)
    decisions = sojourn.sql(database, "SELECT * FROM decisions")
    check(not decisions, f"decisions: {decisions}")


def nonsense_is_refused(sojourn, programs):
    target = Target([os.path.join(programs, "policy_target")]).ready()
    recorder = start_attach(sojourn, target.pid, sojourn.path("nonsense.db"), ALL)
    for arguments, code, words in (
            (["--mode", "tracing", str(target.pid)], 2, "trace"),
            (["--policy", "/no/such/file", str(target.pid)], 3, "/no/such/file"),
            (["--budget", "0%", str(target.pid)], 2, "budget"),
            (["--function"], 2, "needs a value"),
            ([], 2, "name one process"),
            (["1x"], 3, "no process is named \"1x\""),
            ([str(os.getpid())], 3, "not being recorded"),
            (["999999999"], 3, "no process")):
        done = sojourn.run(["policy", "set", *arguments], capture_output=True, text=True)
        check(done.returncode == code and words in done.stderr, f"{arguments}: {done}")
    big = sojourn.path("big.json")
    with open(big, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "description": "x" * 70000}, file)
    done = sojourn.run(["policy", "set", "--policy", big, str(target.pid)], capture_output=True, text=True)
    check(done.returncode == 1 and "too long" in done.stderr, f"a large policy: {done}")
    shown = sojourn.run(["policy", "show", str(target.pid)], capture_output=True, text=True)
    check(json.loads(shown.stdout)["functions"] == {"include": ["policy_*"]}, f"not kept: {shown}")
    set_policy(sojourn, target.pid, "--value", "policy_*(1:int)", *ALL)
    answer = set_policy(sojourn, target.pid, *ALL)
    check(answer["not_applied"] == ["values: the rules of the old policy record until the end"], f"values go on: {answer}")
    answer = set_policy(sojourn, target.pid, "--buffer", "8", *ALL)
    check("buffer" in str(answer["not_applied"]), f"buffers cannot change: {answer}")
    sojourn.run(["detach", str(target.pid)], check=True, stdout=subprocess.DEVNULL)
    recorder.wait(PATIENCE_S)
    finish(target.process)
    stored = sojourn.sql(sojourn.path("nonsense.db"),
                         "SELECT not_applied FROM policies ORDER BY number DESC LIMIT 1")
    check("buffer" in stored[0]["not_applied"], f"not stored: {stored}")


TESTS = [modes_add_up, functions_are_added_and_removed_repeatedly, killed_in_a_change, a_killed_profile_is_finished,
         drops_are_counted_by_recovery, children_follow_the_policy, libraries_follow, budgets_begin_and_end,
         a_budget_with_receivers_is_refused, nonsense_is_refused]


def test(sojourn, arguments):
    # Commands look for live recordings. A separate runtime directory hides those of other tests.
    sojourn.environment["XDG_RUNTIME_DIR"] = sojourn.folder
    for each in TESTS:
        if len(arguments) < 2 or arguments[1] in each.__name__:
            started = time.monotonic()
            each(sojourn, arguments[0])
            print(f"{each.__name__.replace('_', ' ')}: {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main(test)
