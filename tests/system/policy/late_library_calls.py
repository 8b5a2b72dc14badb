#!/usr/bin/env python3
"""Rules about calls into libraries begin in a running program, bound lazily or at once, by signature and by the
library's debug data, also where the library is hooked. They change results, and calls that are open end unchanged.

late_library_calls.py BUILD_FOLDER
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, set_policy
from late_testing import goes_on, permit, stands, typed_calls, write_policy
from sojourn_testing import build_sample, check, check_accounts, children, main

IMPORTS = [{"function": "!late_apart"},
           {"name": "less", "function": "!late_twice", "result": True, "as": "int", "change": {"set": -1}},
           {"function": "!late_block", "signature": "(file:int, line:pointer) -> int"}]


def build_caller(sojourn, binding):
    library, caller = sojourn.path("liblate.so.1"), sojourn.path("caller")
    build_sample(sojourn, "policy/late_library.c", "-O1", "-g", "-shared", "-fPIC", "-Wl,-soname,liblate.so.1", program=library)
    return build_sample(sojourn, "policy/late_caller.c", "-O1", "-D_GNU_SOURCE", library, "-pthread",
                        "-Wl,-rpath," + sojourn.path(""), "-Wl,-z," + binding, program=caller)


def check_apart(sojourn, database):
    calls = [call for call in typed_calls(sojourn, database, "liblate.so.1!late_apart", "!late_apart") if len(call) == 2]
    check(len(calls) > 300 and all(call["result"] == call["number"] + 1 for call in calls), f"{len(calls)}: {calls[:3]}")
    return len(calls)


def test_hooked_library(sojourn):
    """If the library is hooked, too, its functions record results for calls into it from then on. A message says
    that a rule about such calls does not change results."""
    permit(sojourn, ["return", "errno", "set"])
    caller, database = build_caller(sojourn, "lazy"), sojourn.path("hooked.db")
    target = Target([sojourn.program, "record", "-q", "-o", database, "--library-calls", "--module", "caller", "--module", "liblate*",
                     "--", caller], env=sojourn.environment).ready()
    try:
        policy = write_policy(sojourn, "hooked", IMPORTS[:1], modules={"library_calls": True, "include": ["caller", "liblate*"]})
        answer = set_policy(sojourn, children(target.pid)[0], "--policy", policy)
        check(not answer["not_applied"], f"{answer}")
        for _ in range(5):
            goes_on(target, 0, "calls with results of a hooked library")
        policy = write_policy(sojourn, "reach", IMPORTS[:2], modules={"library_calls": True, "include": ["caller", "liblate*"]})
        said = "\n".join(set_policy(sojourn, children(target.pid)[0], "--policy", policy)["not_applied"])
        check("'less': results of 1 function do not change, because the library itself is recorded: name" in said, said)
        check(target.finish()[0] == 0, "it did not end well")
    finally:
        target.kill()
    check_accounts(sojourn, database)
    print(f"calls into a hooked library: {check_apart(sojourn, database)}")


def test_imports(sojourn, options, binding):
    """Calls into libraries that were recorded without values, or not at all, have values from then on, also by the
    library's debug data. Rules change their results. A call that was open meanwhile ends unchanged."""
    permit(sojourn, ["return", "errno", "set"])
    caller, database = build_caller(sojourn, binding), sojourn.path("imports.db")
    if os.path.exists(database):
        os.unlink(database)
    target = Target([sojourn.program, "record", "-q", "-o", database, *options, "--module", "caller", "--", caller],
                    env=sojourn.environment).ready()
    modules = {"library_calls": True, "include": ["caller"]}
    try:
        pid = children(target.pid)[0]
        for round_number in range(3):
            for rules, column in ((IMPORTS[:1], 0), (IMPORTS[:2], 1), (IMPORTS, 1), ([], 0)):
                answer = set_policy(sojourn, pid, "--policy", write_policy(sojourn, "imports", rules, modules=modules))
                said = [text for text in answer["not_applied"] if "rules of the old policy record until the end" not in text]
                check(not said, f"{round_number}: {rules}: {answer}")
                goes_on(target, column, f"calls under {len(rules)} rules")
        stands(target, 1, "a result that was changed after all")
        status, output = target.finish()
        check(status == 0, f"it ended with {status}: {output}")
    finally:
        target.kill()
    check_accounts(sojourn, database)
    changed = int(re.findall(r"\d+", output.splitlines()[-1])[1])
    count = sojourn.sql(database, "SELECT count(*) AS n FROM rule_hits WHERE rule = 'less' AND value = -1")[0]["n"]
    check(count == changed and changed > 0, f"{count} hits, {changed} results changed")
    apart = check_apart(sojourn, database)
    blocked = sojourn.sql(database, "SELECT call_id, ending FROM calls JOIN functions USING (function_id) "
                          "WHERE name LIKE '%!late_block'")
    check([row["ending"] for row in blocked] == (["returned"] if options else []), f"{blocked}")
    results = sojourn.sql(database, f"SELECT value FROM arguments WHERE position = 0 AND call_id = {blocked[0]['call_id']}"
                          ) if options else []
    check([row["value"] for row in results] == ([5] if options else []), f"of the open call: {results}")
    print(f"calls into libraries: {apart} with values, {changed} changed")


def test(sojourn, arguments):
    sojourn.environment["XDG_CONFIG_HOME"] = sojourn.path("config")
    permit(sojourn, ["return", "errno", "set"])
    test_imports(sojourn, ["--library-calls"], "lazy")
    test_imports(sojourn, ["--library-calls"], "now")
    test_imports(sojourn, [], "lazy")
    test_hooked_library(sojourn)


if __name__ == "__main__":
    main(test)
