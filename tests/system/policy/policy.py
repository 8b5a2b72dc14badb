"""Tests policies on a program whose calls are known: modes, filters, triggers, budget."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, main, wait_for

CALLS = """SELECT f.name, s.calls FROM function_stats s JOIN functions f USING (function_id)
           WHERE s.session_id = {}"""

# The program waits up to 10 s for free chunks, however late the recorder gets the processor.
WITHOUT_LOSS = ["--block-ms", "10000"]


def counts(sojourn, database, session=1):
    return {row["name"]: row["calls"] for row in sojourn.sql(database, CALLS.format(session))}


def filtered(sojourn, database):
    rows = sojourn.sql(database, "SELECT f.name, c.reason, c.calls FROM filtered_calls c "
                                 "JOIN functions f USING (function_id)")
    return {(row["name"], row["reason"]): row["calls"] for row in rows}


def recorded(sojourn, program, how, name, options=(), policy=None, code=3):
    database = sojourn.path(f"{name}.db")
    options = list(options)
    if policy is not None:
        path = sojourn.path(f"{name}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"policy": 1, **policy}, file)
        options += ["--policy", path]
    done, summary = sojourn.record([program, how], database, options)
    check(done.returncode == code, f"{name} ended with {done.returncode}: {done.stderr.decode()}")
    return database, summary


def a_profile_equals_the_sums_of_a_trace(sojourn, program):
    traced, _ = recorded(sojourn, program, "flood", "trace", WITHOUT_LOSS)
    profiled, _ = recorded(sojourn, program, "flood", "profile", ["--mode", "profile", *WITHOUT_LOSS])
    check_accounts(sojourn, profiled)
    check(counts(sojourn, traced) == counts(sojourn, profiled), "profile and trace differ")
    row = sojourn.sql(profiled, "SELECT mode, stored_bytes, stored_blocks FROM sessions")[0]
    check(row["mode"] == "profile" and row["stored_blocks"] == 0, f"no profile: {row}")
    check(0 < row["stored_bytes"] < 4096, f"a profile has a few KB: {row}")
    paths = "SELECT depth, calls FROM call_paths ORDER BY depth, calls"
    check(sojourn.sql(traced, paths) == sojourn.sql(profiled, paths), "call paths differ")
    policy = sojourn.sql(profiled, "SELECT mode, document FROM policies")[0]
    check(json.loads(policy["document"])["mode"] == "profile", "the policy is not stored")


def profiling_ends_with_its_window(sojourn, program):
    database, _ = recorded(sojourn, program, "flood", "window",
                           policy={"mode": "profile", "profile": {"window": "1ms"}})
    check_accounts(sojourn, database)
    calls = counts(sojourn, database).get("ends_step", 0)
    check(calls < 3001000, f"the window did not end: {calls}")


def filters_count_excluded_calls(sojourn, program):
    database, _ = recorded(sojourn, program, "", "static",
                           policy={"functions": {"exclude": ["/^ends_st/"]}})
    check("ends_step" not in counts(sojourn, database), "an excluded function was recorded")
    check(counts(sojourn, database)["ends_work"] == 1, "the others are not recorded")
    check(filtered(sojourn, database) == {}, "a static filter costs nothing")

    database, _ = recorded(sojourn, program, "", "depth", ["--depth", "2"])
    check_accounts(sojourn, database)
    found = counts(sojourn, database)
    check(found == {"main": 1, "ends_work": 1, "ends_die": 1}, f"depth 2 kept {found}")
    check(filtered(sojourn, database) == {("ends_step", "depth"): 1000}, "depth is not counted")

    database, _ = recorded(sojourn, program, "", "sampled",
                           policy={"calls": {"one_in": [{"function": "*_step", "n": 100}]}})
    check_accounts(sojourn, database)
    check(counts(sojourn, database)["ends_step"] == 10, "one in 100 of 1000 is 10")
    check(filtered(sojourn, database) == {("ends_step", "sampled"): 990}, "samples do not add up")

    database, _ = recorded(sojourn, program, "threads", "names", ["--thread", "nobody*"])
    check_accounts(sojourn, database)
    check(counts(sojourn, database) == {}, "threads of other names were recorded")
    check(filtered(sojourn, database)[("ends_step", "thread")] == 3000, "steps are not counted")


def empty_selections_are_reported(sojourn, program):
    """A selection that matches nothing is refused before the start, or the summary lists what was there."""
    done, _ = sojourn.record([program, ""], sojourn.path("none.db"),
                                   ["--function", "ends_step", "--exclude", "ends_*"])
    check(done.returncode == 125, f"it ran: {done.returncode}")
    check(b"the policy selects no function" in done.stderr, f"said {done.stderr}")
    for name, options, words in (
            ("module", ["--module", "nomatch"], 'loaded were "ends"'),
            ("thread", ["--thread", "nobody*"], 'no thread matched --thread; threads were "ends"'),
            ("flight", ["--flight"], "name one in a policy (\"triggers\""),
            ("sources", ["--allow-unmatched", "--function", "nomatch"],
             "the policy selects none of the functions")):
        done, summary = sojourn.record([program, ""], sojourn.path(f"empty_{name}.db"), options)
        check(done.returncode == 3, f"{name} ended with {done.returncode}: {done.stderr}")
        check("nothing was recorded: " in done.stderr.decode() and words in done.stderr.decode(),
              f"{name} says {done.stderr}")
        check(words in summary["empty_because"], f"{name}: {summary}")
    _, summary = sojourn.record([program, ""], sojourn.path("some.db"), [])
    check("empty_because" not in summary, f"a full recording: {summary}")


def short_calls_are_only_counted(sojourn, program):
    database, _ = recorded(sojourn, program, "", "minimum", ["--minimum", "100ms"])
    check_accounts(sojourn, database)
    kept, out = counts(sojourn, database), filtered(sojourn, database)
    for name, calls in (("ends_step", 1000), ("ends_work", 1), ("ends_die", 1), ("main", 1)):
        total = kept.get(name, 0) + out.get((name, "minimum"), 0)
        check(total == calls, f"{name}: {total} of {calls} are accounted for")
    # On a loaded machine a step may be interrupted for a long time.
    short = sojourn.sql(database, "SELECT count(*) AS n FROM calls WHERE duration_ns < 100000000")
    check(out[("ends_step", "minimum")] > 0 and short[0]["n"] == 0, f"short calls were kept: {kept}")
    database, _ = recorded(sojourn, program, "flood", "minimum2", ["--minimum", "1ms"])
    tree = sojourn.sql(database, "SELECT f.name, c.depth FROM calls c JOIN functions f "
                                 "USING (function_id) WHERE f.name <> 'ends_step' "
                                 "ORDER BY c.start_ns")
    found = [(row["name"], row["depth"]) for row in tree]
    check(("ends_die", 1) in found and ("ends_work", 2) in found, f"wrong parents: {found}")


def triggers_ship_the_time_before_them(sojourn, program):
    policy = {"mode": "flight", "flight": {"before": "5m", "after": "50ms", "memory": "16M"},
              "triggers": [{"on": "nth_call", "function": "ends_step", "times": 500,
                            "do": ["dump", "mark"]},
                           {"on": "rate", "function": "ends_step", "times": 10, "within": "1m",
                            "pause": "5m", "do": ["mark"]}]}
    database, _ = recorded(sojourn, program, "", "flight", policy=policy)
    check_accounts(sojourn, database)
    sessions = sojourn.sql(database, "SELECT session_id, cause, parent_session_id, stored_calls "
                                     "FROM sessions ORDER BY session_id")
    check(len(sessions) == 2, f"one child session, not {sessions}")
    check(sessions[0]["stored_calls"] == 0, "flight mode ships nothing without a trigger")
    check(sessions[1]["parent_session_id"] == 1, "the child does not know its parent")
    check("nth_call ends_step" in sessions[1]["cause"], f"no cause: {sessions[1]}")
    check(counts(sojourn, database, 2).get("ends_step") == 1000, "the dump misses calls")
    fired = sojourn.sql(database, "SELECT event FROM triggers WHERE actions <> '' ORDER BY event")
    check([row["event"] for row in fired] == ["nth_call", "rate"], f"fired: {fired}")
    marks = sojourn.sql(database, "SELECT count(*) AS n FROM marks WHERE source = 'trigger'")
    check(marks[0]["n"] == 2, f"marks of triggers: {marks}")
    for session, said in (("1", "a flight recording, whose calls are in its dumps: session 2"), ("2", "a flight dump of session 1")):
        shown = sojourn.run(["report", "--session", session, database], capture_output=True, text=True).stdout
        check(said in shown, f"report of session {session}: {shown[:600]}")


def commands_reach_the_trigger(sojourn, program):
    policy = {"mode": "flight", "flight": {"before": "5m", "after": "10ms", "memory": "8M"},
              "triggers": [{"on": "command", "name": "keep*", "do": ["dump"]}]}
    database, path = sojourn.path("command.db"), sojourn.path("command.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, **policy}, file)
    recorder = subprocess.Popen(
        [sojourn.program, "record", "-q", "-o", database, "--policy", path, "--", program, "wait"],
        env=sojourn.environment, stdout=subprocess.PIPE)
    # The program's output shows that it has made calls. A command may come before there are any.
    check(recorder.stdout.readline() != b"", "the program did not start")
    wait_for("the command is taken",
             lambda: sojourn.run(["trigger", "keep it"], capture_output=True).returncode == 0)
    unknown = sojourn.run(["trigger", "other"], capture_output=True, text=True)
    check(unknown.returncode == 1 and "has that name" in unknown.stderr, f"{unknown.stderr}")
    shipped = "SELECT cause, stored_calls FROM sessions WHERE parent_session_id = 1"
    wait_for("the dump", lambda: sojourn.sql(database, shipped))
    recorder.terminate()
    recorder.wait(timeout=PATIENCE_S)
    check_accounts(sojourn, database)
    child = sojourn.sql(database, shipped)
    check(len(child) == 1 and child[0]["cause"] == "command keep it", f"no dump: {child}")
    check(child[0]["stored_calls"] > 0, "the dump is empty")
    whole = sojourn.sql(database, "SELECT s.calls, s.total_ns, (SELECT max(end_ns) - min(start_ns) FROM calls AS c "
                                  "WHERE c.session_id = s.session_id) AS dumped_ns FROM function_stats AS s "
                                  "JOIN functions USING (function_id) JOIN sessions AS d USING (session_id) "
                                  "WHERE d.parent_session_id = 1 AND functions.name = 'main'")[0]
    check(whole["calls"] == 1 and abs(whole["total_ns"] - whole["dumped_ns"]) <= 1, f"open in the dump: {whole}")


def a_dump_begins_within_calls(sojourn, program):
    """Sums of a dump include calls that began before the dump. Single calls do not include them, and that is
    reported."""
    policy = {"mode": "flight", "flight": {"before": "1ms", "after": "10ms", "memory": "8M"},
              "triggers": [{"on": "nth_call", "function": "ends_step", "times": 2900000, "do": ["dump"]}]}
    database, _ = recorded(sojourn, program, "flood", "within", policy=policy)
    check_accounts(sojourn, database)
    before = sojourn.sql(database, "SELECT name, depth, s.calls, (SELECT count(*) FROM calls AS c WHERE c.session_id = 2 "
                                   "AND c.function_id = b.function_id) AS rows FROM open_before(2) AS b JOIN functions "
                                   "USING (function_id) JOIN function_stats AS s ON s.session_id = 2 AND s.function_id = "
                                   "b.function_id WHERE depth < 2")
    check([(row["name"], row["calls"], row["rows"]) for row in before] == [("main", 1, 0), ("ends_die", 1, 0)],
          f"began before the dump: {before}")
    count = sojourn.sql(database, "SELECT count(*) AS n FROM open_before(2)")[0]["n"]
    shown = sojourn.run(["report", "--session", "2", database], capture_output=True, text=True).stdout
    check(f"a flight dump of session 1; sums count {count} calls that began before it, single calls do not\n" in shown,
          f"report of a dump: {shown[:600]}")


def refused(sojourn, program, text, options=()):
    """Returns the messages about a policy that is refused. The program is not started."""
    path, database = sojourn.path("nonsense.json"), sojourn.path("nonsense.db")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done, _ = sojourn.record([program], database, [*options, "--policy", path])
    check(done.returncode == 125 and done.stdout == b"", f"{text} was taken: {done}")
    check(not os.path.exists(database), f"{text} left a database")
    return done.stderr.decode()


def nonsense_is_refused_with_its_place(sojourn, program):
    for text, place, words in (
            ('{"policy": 1,\n "mood": "trace"}', ":2:2:", "unknown key"),
            ('{"policy": 1,\n "budget": 0}', ":2:12:", "budget"),
            ('{"policy": 1, "budget": "0%"}', ":1:25:", "budget"),
            ('{"policy": 1, "functions":\n {"include": ["main", "/(/"]}}', ":2:23:", "expression"),
            ('{"policy": 1, "functions": {"include": ["/a{1,9999}/"]}}', ":1:41:", "repetition"),
            ('{"policy": 1, "functions": {"include": ["ends_*",\n "no_such_*"]}}', ":2:2:",
             'no function of the program matches "no_such_*"'),
            ('{"policy": 1, "sources": {"exclude": ["nowhere.c"]}}', ":1:39:", "no source file"),
            ('{"policy": 1, "calls": {"one_in":\n [{"n": 2, "function": "ends_stepp"}]}}', ":2:24:",
             "no function"),
            ('{"policy": 1, "triggers": [{"on": "slow_call", "longer_than": "1s", "do": ["mark"],\n'
             ' "function": "draw_frame"}]}', ":2:14:", "no function")):
        error = refused(sojourn, program, text)
        check(place in error and words in error, f"{text}: {error}")
    error = refused(sojourn, program, '{"policy": 1}', ["--function", "no_such"])
    check("the command line: no function" in error, f"a flag: {error}")


def unmatched_patterns_are_listed(sojourn, program):
    database, _ = recorded(sojourn, program, "", "nothing",
                           ["--exclude", "no_such_*", "--allow-unmatched"])
    listed = sojourn.sql(database, "SELECT not_applied FROM policies")[0]["not_applied"]
    check(json.loads(listed) == ["no_such_*"], f"listed: {listed}")
    # The functions of a module that is loaded later cannot be known.
    database, _ = recorded(sojourn, program, "", "module",
                           ["--module", "plugin.so", "--function", "plugin_*"])
    listed = json.loads(sojourn.sql(database, "SELECT not_applied FROM policies")[0]["not_applied"])
    check(listed == ["plugin.so", "plugin_*"], f"listed: {listed}")


def crashes_ship_their_last_seconds(sojourn, program):
    policy = {"base": "jank", "budget": None}
    database, _ = recorded(sojourn, program, "segv", "crash", policy=policy, code=139)
    cause = sojourn.sql(database, "SELECT cause, stored_calls FROM sessions "
                                  "WHERE parent_session_id IS NOT NULL")
    check(len(cause) == 1 and "crash" in cause[0]["cause"], f"no dump of the crash: {cause}")
    check(counts(sojourn, database, 2).get("ends_step") == 1000, "the dump misses calls")


def a_flood_of_triggers_is_held_back(sojourn, program):
    policy = {"triggers": [{"on": "slow_call", "function": "ends_step", "longer_than": "1ns",
                            "pause": "10s", "most": 3, "do": ["mark"]}]}
    database, _ = recorded(sojourn, program, "", "often", policy=policy)
    fired = sojourn.sql(database, "SELECT count(*) AS n FROM triggers WHERE actions <> ''")[0]["n"]
    check(fired == 1, f"a trigger with a pause of 10 s fired {fired} times")
    check(counts(sojourn, database)["ends_step"] == 1000, "triggers cost calls")


def stopping_and_starting_leaves_a_gap(sojourn, program):
    policy = {"triggers": [{"on": "nth_call", "function": "ends_step", "times": 500,
                            "do": ["stop"]}]}
    database, _ = recorded(sojourn, program, "", "stop", policy=policy)
    check_accounts(sojourn, database)
    check(counts(sojourn, database)["ends_step"] == 500, "recording continued after stop")


def budgets_are_kept_by_unhooking_functions(sojourn, program):
    database = sojourn.path("budget.db")
    recorder = subprocess.Popen(
        [sojourn.program, "record", "-q", "-o", database, "--mode", "profile", "--budget", "3%",
         *WITHOUT_LOSS, "--", program, "spin"], env=sojourn.environment, stdout=subprocess.DEVNULL)
    recorder.wait(timeout=PATIENCE_S)
    check(recorder.returncode == 3, f"the program ended with {recorder.returncode}")
    check_accounts(sojourn, database)
    decisions = sojourn.sql(
        database, "SELECT d.what, f.name, d.overhead_ppm FROM decisions d "
                  "LEFT JOIN functions f USING (function_id) ORDER BY d.number")
    check(decisions and decisions[0]["what"] == "unhook", f"nothing was decided: {decisions}")
    check(decisions[0]["name"] == "ends_step", f"not the hottest first: {decisions[0]}")
    check(decisions[0]["overhead_ppm"] > 30000, "inside of the budget already")
    found = counts(sojourn, database)
    # On a busy machine the other function may exceed the budget, too.
    unhooked = {decision["name"] for decision in decisions if decision["what"] == "unhook"}
    check(found["ends_work"] == 201 or "ends_work" in unhooked, f"the remaining calls are wrong: {found}, {decisions}")
    check(found["ends_step"] < 100000000, "the hottest function was recorded on")


TESTS = [a_profile_equals_the_sums_of_a_trace, profiling_ends_with_its_window,
         filters_count_excluded_calls, empty_selections_are_reported,
         short_calls_are_only_counted, triggers_ship_the_time_before_them,
         commands_reach_the_trigger, a_dump_begins_within_calls, nonsense_is_refused_with_its_place,
         unmatched_patterns_are_listed, crashes_ship_their_last_seconds, a_flood_of_triggers_is_held_back,
         stopping_and_starting_leaves_a_gap, budgets_are_kept_by_unhooking_functions]


def test(sojourn, arguments):
    build = os.path.dirname(os.path.dirname(sojourn.program))
    program = os.path.join(build, "tests/samples/ends")
    # Commands look for live recordings. A separate runtime directory hides those of other tests.
    sojourn.environment["XDG_RUNTIME_DIR"] = sojourn.folder
    for each in TESTS:
        if not arguments or arguments[0] in each.__name__:
            started = time.monotonic()
            each(sojourn, program)
            print(f"{each.__name__.replace('_', ' ')}: {time.monotonic() - started:.1f} s")
            for name in os.listdir(sojourn.folder):
                if ".db" in name:
                    os.unlink(sojourn.path(name))


if __name__ == "__main__":
    main(test)
