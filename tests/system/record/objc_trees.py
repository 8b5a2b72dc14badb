#!/usr/bin/env python3
"""Objective-C: the messages that the torture program prints equal the recorded ones, by both techniques, and
GNUstep's own tools behave the same with and without us.

objc_trees.py BUILD_FOLDER (SJ_LONG=1: every technique of all programs, all tools)
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from golden_trees import only, trees
from sojourn_testing import PATIENCE_S, check, check_accounts, main

LONG = os.environ.get("SJ_LONG") == "1"
PHYSICAL = (
    "SELECT call_id, stream_id, function_id, physical_parent_id, tail_caller_id, ending FROM calls "
    "ORDER BY call_id"
)
METHODS = (
    "SELECT function_id, name FROM functions WHERE name LIKE '%[Smp%' AND name NOT LIKE '%:NS%'"
)
PLIST = '{ a = 1; list = ( x, y, "z z" ); inner = { data = <00ff10>; text = "\\U00e4"; }; }'


TECHNIQUES = {
    "methods": ["--objc", "methods"],
    "receivers": ["--objc", "methods", "--receivers"],
    "receivers, counted": ["--objc", "methods", "--receivers", "--clock", "adaptive"],
    "dispatch": ["--objc", "dispatch"],
}


def plain_name(name):
    """Returns the name without the category: methods that are patched in place only have the defining class."""
    return re.sub(r"^(.\[)(?:[^ :]*:)?([^ (]*)(?:\([^)]*\))?", r"\1\2", name)


def strip_category(name):
    """Removes the category of the defining class from a name. The receiver stays."""
    return re.sub(r"^([^ (]*)\([^)]*\)", r"\1", name)


def strip_made_class(name):
    """Removes the class that the program creates from names. The program may have ended before the recorder asks for
    the name. system.objc_take_out tests it with a running program."""
    return re.sub(r"^(.\[)SmpMade:", r"\1", strip_category(name))


RENAME = {"methods": plain_name, "receivers": strip_made_class, "receivers, counted": strip_made_class, "dispatch": strip_category}


def physical(sojourn, database):
    """Returns the calls in the order of their stack frames, which the program prints. The frame of a method that
    ends by a tail call ends before the target enters."""
    rows = sojourn.sql(database, PHYSICAL)
    jumped = {row["tail_caller_id"] for row in rows}
    depths = {None: -1}
    for row in rows:
        depth = depths[row["call_id"]] = depths[row["physical_parent_id"]] + 1
        ending = "returned" if row["call_id"] in jumped else row["ending"]
        yield str(row["stream_id"]), depth, str(row["function_id"]), ending


def told(path, rename):
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return trees((lane, int(depth), rename(name), ending) for lane, depth, name, ending in rows)


def recorded(sojourn, database, rename):
    wanted = {
        str(row["function_id"]): rename(row["name"]) for row in sojourn.sql(database, METHODS)
    }
    return trees(only(physical(sojourn, database), wanted))


def the_view_splits_names(sojourn, database, label):
    """The view splits names and counts inherited methods as entered. It measures a thread from its first entry to
    its last exit."""
    rows = sojourn.sql(
        database, "SELECT DISTINCT kind, receiver, class, selector FROM methods "
        "JOIN function_stats USING (function_id) WHERE selector = 'recurse:'"
    )
    found = {(row["kind"], row["receiver"], row["class"]) for row in rows}
    expected = {("SmpDerived", "SmpBase"), (None, "SmpBase"), (None, "SmpDerived"),
                ("SmpLater", "SmpBase"), ("SmpLater", "SmpDerived"), (None, "SmpLater")}
    found = {row for row in found if row[1] != "SmpMade"}
    check(found == {("instance", *pair) for pair in expected}, f"{label}: {found}")
    rows = sojourn.sql(
        database, "SELECT kind, class, category FROM methods JOIN function_stats USING (function_id) "
        "WHERE receiver = 'SmpDerived' AND selector = 'classInCategory'"
    )
    found = [(row["kind"], row["class"], row["category"]) for row in rows]
    check(found == [("class", "SmpBase", "Category")], f"{label}: {found}")
    done = sojourn.run(["sql", "--query", "never_entered", "--csv", database], capture_output=True,
                       text=True)
    check(done.returncode == 0 and "module,function" in done.stdout, f"{label}: {done.stderr}")
    check("[SmpBase" not in done.stdout, f"{label} never entered: {done.stdout}")
    wrong = sojourn.sql(
        database, "SELECT thread_id, run_time_ns FROM thread_stats AS s WHERE run_time_ns IS NOT "
        "(SELECT max(start_ns + duration_ns) - min(start_ns) FROM calls AS c "
        "WHERE c.session_id = s.session_id AND c.thread_id = s.thread_id)"
    )
    check(not wrong, f"{label}: run times {wrong}")


def methods_have_their_category(sojourn, database, label):
    """Methods have the category that defines them. Only methods that were called are stored."""
    rows = sojourn.sql(
        database, "SELECT category FROM methods JOIN function_stats USING (function_id) "
        "WHERE receiver = 'SmpDerived' AND selector = 'classInCategory'")
    check([row["category"] for row in rows] == ["Category"], f"{label}: {rows}")
    rows = sojourn.sql(
        database, "SELECT name FROM functions JOIN modules USING (module_id) WHERE path GLOB 'objc:*' "
        "AND function_id NOT IN (SELECT function_id FROM function_stats)")
    check(not rows, f"{label} stores {len(rows)} methods that were not called: {rows[:5]}")


def one_torture(sojourn, program, technique):
    label = f"{'/'.join(program.split('/')[-2:])} by {technique}"
    truth, database = sojourn.path("truth"), sojourn.path("torture.db")
    for path in (truth, database):
        if os.path.exists(path):
            os.unlink(path)
    environment = dict(
        sojourn.environment,
        TRUTH_FILE=truth,
        OBJC_BUNDLE=os.path.join(os.path.dirname(program), "objc_bundle.so"),
    )
    if technique == "dispatch":
        environment["OBJC_ONLY_SENDS"] = "1"
    done, summary = sojourn.record(
        [program], database, [*TECHNIQUES[technique], "--block-ms", "10000"], env=environment
    )
    check(done.returncode == 0, f"{label} ended with {done.returncode}: {done.stdout} {done.stderr}")
    check_accounts(sojourn, database)
    gaps = sojourn.sql(database, "SELECT reason FROM gaps WHERE reason <> 'waited'")
    check(not gaps, f"{label} has gaps: {gaps[:3]}")
    rename = RENAME[technique]
    expected, found = told(truth, rename), recorded(sojourn, database, rename)
    check(sum(expected.values()) > 50, f"{label} printed little: {sum(expected.values())} trees")
    for tree in (expected - found).keys() | (found - expected).keys():
        check(
            False,
            f"{label}: {expected[tree]} told, {found[tree]} recorded of\n"
            + "\n".join(tree.split("\n")[:40]),
        )
    if technique == "receivers":
        the_view_splits_names(sojourn, database, label)
    if technique == "dispatch":
        methods_have_their_category(sojourn, database, label)
    print(f"{label}: {sum(expected.values())} trees, {summary['calls']} calls")


def one_filter(sojourn, program, options, expected):
    """The recorded messages of all modules have only the expected methods, and no other method is patched."""
    database = sojourn.path("filter.db")
    if os.path.exists(database):
        os.unlink(database)
    bundle = os.path.join(os.path.dirname(program), "objc_bundle.so")
    done, _ = sojourn.record(
        [program], database, ["--libs", "--block-ms", "10000", *options],
        env=dict(sojourn.environment, OBJC_BUNDLE=bundle),
    )
    check(done.returncode == 0, f"{options} ended with {done.returncode}: {done.stderr}")
    names = sojourn.sql(
        database, "SELECT DISTINCT name FROM function_stats JOIN functions USING (function_id) "
        "WHERE name GLOB '[-+][[]*'"
    )
    names = {row["name"] for row in names}
    check(names, f"{options} recorded no message")
    for name in names:
        check(re.fullmatch(expected, name), f"{options} recorded {name}")
    others = sojourn.sql(
        database, "SELECT DISTINCT name FROM functions WHERE name GLOB '[-+][[]*' "
        "AND function_id NOT IN (SELECT function_id FROM unhooked_functions)"
    )
    for row in others:
        check(re.fullmatch(expected, row["name"]), f"{options} patched {row['name']}")
    print(f"{' '.join(options)}: {len(names)} methods")
    return names


def filters(sojourn, program):
    derived = r".\[Smp(Derived|Later|Made)(:\w+)?(\(\w+\))? .*\]"
    for technique in ("methods", "dispatch"):
        how = ["--objc", technique]
        found = one_filter(sojourn, program, [*how, "--subclasses-of", "SmpDerived"], derived)
        # A class of a module that is loaded later; another module defines its ancestors.
        check(any("[SmpLater" in name for name in found), f"SmpLater by {technique}: {found}")
        # A class that the program creates while it runs; it defines no method itself.
        made = any("[SmpMade:SmpBase" in name for name in found)
        check(made == (technique == "dispatch"), f"SmpMade by {technique}: {found}")
        one_filter(sojourn, program, [*how, "--no-system-classes"], r".\[Smp.*\]")
        one_filter(sojourn, program, [*how, "--class", "SmpBase", "--selector", "re*"],
                   r".\[SmpBase(:\w+)?(\(\w+\))? re.*\]")


def gnustep_tools(sojourn):
    """Returns pairs of a command and the files that it writes, for tools that need no daemon."""
    source, merged, xml = (sojourn.path(name) for name in ("a.plist", "merged.plist", "a.strings"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(PLIST)
    with open(xml, "w", encoding="utf-8") as file:
        file.write('"key" = "value";\n')
    serialized, document = sojourn.path("a.ser"), sojourn.path("a.xml")
    with open(document, "w", encoding="utf-8") as file:
        file.write("<?xml version='1.0'?>\n<plist><dict><key>a</key><string>b</string></dict></plist>\n")
    return [
        (["plmerge", merged, source], [merged]),
        (["plser", source, "-Destination", serialized], []),
        (["pl2link", source, sojourn.path("a.desktop")], [sojourn.path("a.desktop")]),
        (["sfparse", xml], []),
        (["xmlparse", document], []),
        (["plparse", source], []),
        (["cvtenc", xml], []),
        (["defaults", "domains"], []),
        (["gdomap", "-H"], []),
        (["autogsdoc", "--help"], []),
        (["HTMLLinker", "--help"], []),
        (["plget", "inner"], []),
    ]


def outcome(run, files):
    for path in files:
        if os.path.exists(path):
            os.unlink(path)
    done = run()
    contents = [open(path, "rb").read() if os.path.exists(path) else None for path in files]
    # Log lines have the time and the process id.
    strip = lambda text: re.sub(rb"(?m)^\d{4}-\d\d-\d\d [0-9:.]+ (\S+)\[\d+:\d+\]", rb"\1", text)
    return done.returncode, strip(done.stdout), strip(done.stderr), contents


def one_tool(sojourn, command, files, technique):
    home = dict(sojourn.environment, HOME=sojourn.folder)
    with open(sojourn.path("a.plist"), "rb") as file:
        text = file.read()
    plain = outcome(
        lambda: subprocess.run(command, capture_output=True, input=text, env=home, timeout=PATIENCE_S,
                               check=False),
        files,
    )
    database = sojourn.path("tool.db")
    if os.path.exists(database):
        os.unlink(database)
    summaries = []

    def recorded_run():
        done, summary = sojourn.record(
            command, database, ["--libs", "--objc", technique, "--block-ms", "10000"], env=home,
            input=text,
        )
        summaries.append(summary)
        return done

    traced = outcome(recorded_run, files)
    check(plain == traced, f"{command} by {technique} differs:\n{plain}\n{traced}")
    check_accounts(sojourn, database)
    # Methods that end by a tail call to a library function have ended before that function runs.
    gaps = sojourn.sql(database, "SELECT reason, count(*) AS n FROM gaps WHERE reason <> 'waited' GROUP BY 1")
    check(not gaps, f"{command} by {technique} has gaps: {gaps}")
    methods = sojourn.sql(
        database,
        "SELECT count(*) AS calls FROM calls JOIN functions USING (function_id) "
        "WHERE name LIKE '-[%' OR name LIKE '+[%'",
    )[0]["calls"]
    check(summaries[0]["calls"] > 0, f"{command} by {technique}: {summaries[0]}")
    # gdomap is a C program among Objective-C programs.
    check(methods > (100 if command[0] != "gdomap" else -1),
          f"{command} by {technique}: {methods} messages: {summaries[0]}")
    print(f"{command[0]} by {technique}: {methods} messages of {summaries[0]['calls']} calls")


# For each machine, the programs that differ most: all techniques, and dispatch for each program.
CHOSEN = {
    "O0/objc_torture_sealed": ("receivers, counted", "dispatch"),
    "O2/objc_torture": ("methods", "receivers", "dispatch"),
    "aarch64-pac/objc_torture": ("receivers, counted", "dispatch"),
}


def programs():
    """Returns pairs of a program and the techniques to test it with."""
    if not LONG:
        return CHOSEN.items()
    every = [f"{level}/{name}" for level in ("O0", "O2")
             for name in ("objc_torture", "objc_torture_sealed")]
    every += [f"aarch64-{variant}/objc_torture" for variant in ("O0", "O2", "pac")]
    return [(name, TECHNIQUES) for name in every]


# Short forms: a tool that writes a file, and one that reads XML.
TOOLS = {"plmerge": ("methods",), "xmlparse": ("dispatch",)}
TOOLS_OF_DISPATCH = ("plmerge", "xmlparse", "plparse", "defaults")


def techniques_of_tool(name):
    if not LONG:
        return TOOLS.get(name, ())
    return ("methods", "dispatch") if name in TOOLS_OF_DISPATCH else ("methods",)


def test(sojourn, arguments):
    build = os.path.dirname(os.path.dirname(sojourn.program))
    folder = os.path.join(build, "tests/samples/objc")
    for program, techniques in programs():
        for technique in techniques:
            one_torture(sojourn, os.path.join(folder, program), technique)
    filters(sojourn, os.path.join(folder, "O2/objc_torture"))
    for command, files in gnustep_tools(sojourn):
        for technique in techniques_of_tool(command[0]):
            one_tool(sojourn, command, files, technique)


if __name__ == "__main__":
    main(test)
