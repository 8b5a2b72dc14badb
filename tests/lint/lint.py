#!/usr/bin/env python3
"""Checks rules of the project automatically. lint.py CHECK BUILD_FOLDER; CHECK names a check_ function below.

Every check fails if it finds no files, so that a broken glob cannot pass.
"""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys

import plain
import programs
import reach
import schema_readme
import statements

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
MAX_FILE_LINES, MAX_FUNCTION_LINES = 800, 70
# Generated tables and interpreters with a single switch may be longer. Each needs a reason here.
LONG_FUNCTIONS = {"spoil": 80}  # a single switch, which damages a block in another way in each case


def tracked(*endings, root=ROOT):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root,
                            capture_output=True, text=True)
    if listed.returncode == 0:
        names = listed.stdout.splitlines()
    else:
        names = [os.path.relpath(os.path.join(folder, name), root)
                 for folder, folders, files in os.walk(root)
                 if not folders.__setitem__(slice(None), [f for f in folders if f not in
                                                          ("build", "node_modules", ".git")])
                 for name in files]
    names = [name for name in names if name.endswith(endings) and os.path.exists(os.path.join(root, name))]
    if not names:
        sys.exit("no files found")
    return names


def fail(problems):
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


def tool(*names):
    for name in names:
        if shutil.which(name):
            return name
    sys.exit(f"{names[0]} is missing: run .ci/packages test")


def check_format(_build):
    """Checks the format of each changed source, or of all sources if .clang-format changed."""
    changed = changed_files()
    everything = changed is None or ".clang-format" in changed
    files = [name for name in tracked(".c", ".h", ".cpp") if everything or name in changed]
    print(f"{len(files)} files")
    done = subprocess.run([tool("clang-format", "clang-format-14"), "--dry-run", "-Werror", *files],
                          cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    fail(done.stderr.splitlines()[:60] if done.returncode else [])


def function_lengths(lines):
    """Yields (name, first line, length) of each function: from a line with only `{` to a line with only `}`."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{" and start is None:
            start = number
        elif line == "}" and start is not None:
            before = " ".join(lines[max(0, start - 6):start - 1])
            names = re.findall(r"(\w+)\s*\(", before)
            yield (names[-1] if names else "?", start, number - start - 1)
            start = None


def check_length(_build):
    problems = []
    for name in tracked(".c", ".h", ".ts", ".tsx", ".py"):
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            lines = file.read().splitlines()
        if len(lines) > MAX_FILE_LINES:
            problems.append(f"{name}: {len(lines)} lines, more than {MAX_FILE_LINES}")
        if name.endswith(".c"):
            for function, at, length in function_lengths(lines):
                if length > LONG_FUNCTIONS.get(function, MAX_FUNCTION_LINES):
                    problems.append(f"{name}:{at}: {function} has {length} lines")
    fail(problems)


def check_words(_build):
    wrong = re.compile(r"^(<{7}|>{7}) |\b(TODO|FIXME|XXX|HACK)\b|not (yet )?implemented|placeholder", re.ASCII)
    paths = re.compile(r"/(work|farm)/|/root/")
    unsafe = re.compile(r"\b(strcpy|strcat|sprintf|vsprintf|gets|atoi|atol)\s*\(")
    in_app = re.compile(r"\b(abort|exit|_exit|assert|printf|fprintf|malloc|calloc|realloc)\s*\(")
    problems = []
    for name in tracked(".c", ".h", ".S", ".ts", ".tsx", ".sql", ".sh", ".md", ".py", ".txt"):
        if name == "tests/lint/lint.py":
            continue
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if wrong.search(line) or paths.search(line):
                    if name.endswith((".tsx", ".ts")) and "placeholder=" in line:
                        continue
                    problems.append(f"{name}:{number}: {line.strip()}")
                if name.endswith((".c", ".h")) and not name.startswith("tests/samples"):
                    if unsafe.search(line) and not name.startswith("tests/"):
                        problems.append(f"{name}:{number}: unbounded call: {line.strip()}")
                    inside = name.startswith("agent/inproc/")
                    code = line.split("/*")[0].strip()
                    if inside and not code.startswith("*") and in_app.search(code):
                        problems.append(f"{name}:{number}: not in the traced app: {line.strip()}")
    fail(problems)


# The layers of components, lowest first. A component may include only components of the lines above its own,
# so there are no circles. Components inside the traced program may include only those of INSIDE.
FLOORS = """
    proto/base agent/include
    proto/wire proto/block
    proto/callgraph agent/abi
    agent/inproc/recorder
    agent/inproc/link agent/inproc/hooks
    agent/inproc/objc agent/inproc/mono agent/inproc/jvm agent/inproc/heap_guard
    agent/inproc/objc_zombies
    agent/inproc/core
    agent/uplink
    agent/objfile agent/host
    agent/runtimes
    agent/policy agent/ptrace
    agent/assembler
    agent/planner
    agent/session
    agent/registry
    agent/livepatch agent/link agent/launch
    agent/attach agent/modes agent/zombies
    agent/drain
    agent/recording
    agent/daemon agent/direct
    collector-server/store
    collector-server/edge
    collector-server/ingest collector-server/query
    collector-server/export collector-server/import collector-server/maintenance collector-server/forward
    collector-server/fleet
    collector-server/http
    collector-server/cli
    collector-server/sojournd
"""
# The files that ask the system for the size of a page, and how other code would state one: a constant named
# after pages, another question to the system, a mask, or a size in a call that maps, protects or frees memory.
PAGE_FILES = {"agent/abi/page.h", "agent/abi/page.c"}
PAGE_SIZE = re.compile(
    r"\b(?!HUGE_|SJ_SKIP_)(?:\w*(?<!PER)_)?PAGE(?:_BYTES|_SIZE|_SHIFT|_MASK)? *= *(?:0x)?\d"
    r"|\bAT_PAGESZ\b|\b_SC_PAGE_?SIZE\b|\bgetpagesize\b|\bPAGE_SIZE\b"
    r"|~ *\(?(?:\(\w+\) *)?\(?(?:UINT64_C\()?(?:0xfff|4095|0xffff|65535)\b"
    r"|(?:map|protect|unmap|madvise|populate)\w*\(.*\b(?:4096|16384|65536)\b")
# Names of machines. Only the agent's arch folders, and the header that chooses one of them, may use these.
MACHINE = re.compile(r"__x86_64__|__aarch64__|\bEM_(X86_64|AARCH64)\b|\bR_(X86_64|AARCH64)_")
ARCH_FOLDER = re.compile(r"\barch/(x86_64|aarch64)/")
INSIDE = ("agent/inproc/", "agent/abi/", "agent/include/", "proto/base/", "proto/block/value.h")


def component_of(name):
    parts = name.split("/")
    return "/".join(parts[:3 if parts[1] == "inproc" else 2])


SETS = ("quick", "default", "all")


def labels_of_tests(build):
    """Returns {test: its labels}. See tests/cases.cmake."""
    listed = subprocess.run(["ctest", "--show-only=json-v1", "--test-dir", build], capture_output=True, text=True)
    return {test["name"]: {label for entry in test.get("properties", ()) if entry["name"] == "LABELS"
                           for label in entry["value"]}
            for test in json.loads(listed.stdout)["tests"]}


def set_problems(labels):
    """Checks that each test has exactly one kind and is in the set of all tests."""
    return [f"{name} has labels {sorted(own)}: declare it by sj_add_test" for name, own in labels.items()
            if "all" not in own or len(own.difference(SETS, ("threads",))) != 1]


MOST_WORDS_OF_A_PROMISE = 25


def promise_ids(cell):
    """Returns the ids of a line: "SAFE-02, 13, HOOK-07" names SAFE-02, SAFE-13 and HOOK-07."""
    ids, prefix = [], ""
    for part in cell.split(", "):
        prefix = part.rsplit("-", 1)[0] if "-" in part else prefix
        ids.append(part if "-" in part else f"{prefix}-{part}")
    return ids


def wording_problems(number, promise):
    """Checks that a promise is one sentence that is not too long."""
    words = len(promise.split())
    if words > MOST_WORDS_OF_A_PROMISE:
        return [f"{number}: has {words} words; {MOST_WORDS_OF_A_PROMISE} at most"]
    if not promise.endswith(".") or not (promise[0].isupper() or promise[0] in "`0123456789"):
        return [f"{number}: is not a sentence: {promise}"]
    return []


def promise_problems(text, labels):
    """Checks that each line has unique ids, one sentence, and names existing tests. If no test of the default set
    proves a promise, its line must say SJ_LONG=1."""
    problems, ids = [], set()
    rows = re.findall(r"^\| ([A-Z0-9]+-\d+(?:, [A-Z0-9-]+)*) \| (.*) \| (.*) \|$", text, re.MULTILINE)
    named = r"(?<![\w/.])(?:aarch64|agent|collector-server|docs|fuzz|lint|proto|system|web)\.[\w.-]*\w"
    for cell, promise, proof in rows:
        for number in promise_ids(cell):
            if number in ids:
                problems.append(f"{number} stands twice")
            ids.add(number)
        problems += wording_problems(cell, promise)
        proofs = []
        for name in re.findall(named, proof):
            found = [test for test in labels if test == name or test.startswith(name + ".")]
            proofs += found
            if not found:
                problems.append(f"{cell}: there is no test {name}")
        if proofs and "SJ_LONG=1" not in promise + proof and not any("default" in labels[test] for test in proofs):
            problems.append(f"{cell}: no test of the default set proves it, and SJ_LONG=1 is not said")
    return problems if rows else ["no promises found"]


def check_promises(build):
    labels = labels_of_tests(build)
    with open(os.path.join(ROOT, "tests", "PROMISES.md"), encoding="utf-8") as file:
        problems = promise_problems(file.read(), labels)
    fail(problems + set_problems(labels) if labels else ["no tests found"])


# Ports and names that two checkouts on one machine would share. No program listens on ports 1 and 9.
PORT = re.compile(r"(?:127(?:\.\d+){3}|localhost|0\.0\.0\.0|\[::1?\]):(?!0\b|1\b|9\b)\d{1,5}\b|htons\([1-9]"
                  r"|\b(?:bind|listen|connect)\(\W*(?:[\w.]+\W+)?[2-9]\d{3,4}\b|--port\W+(?!0\b)\d+|[Pp]ort\w* ?= ?[1-9]\d{3}")
NAME = re.compile(r"[\"'`= ](?:/var)?/tmp/\w|/dev/shm/\w|\b(?:shm|sem|mq)_open\(\"")
OWN_NAME = re.compile(r"XXXXXX|getpid|\$\$")
# Files whose ports and names are only text: the tests do not open them.
ONLY_TEXT = {
    "tests/agent/uplink/sp_wire_test.c": "addresses that are parsed",
    "tests/agent/drain/chunk_reader_test.c": "a file that does not exist",
    "tests/agent/host/directories_test.c": "the folder of a user without a home, which the test expects to find",
    "tests/collector-server/cli/cmd_ui_test.c": "a port that is refused",
    "tests/collector-server/cli/examples.py": "the examples of the manuals, which are replaced",
    "tests/collector-server/cli/screens.py": "the command line of a recorded program",
    "tests/fuzz/plan_seeds.py": "run by hand: a plan names its module",
    "tests/system/attach/attach_faults.py": "the folder of a user without a home",
    "tests/system/attach/attach_refusals.py": "a database that is never made",
    "tests/system/fleet/direct.py": "an address that is refused",
    "tests/system/fleet/questions.py": "a statement that is refused",
    "tests/system/fleet/units.py": "inside of a machine with its own network and folders",
    "tests/system/packages/device_folder.py": "inside of a root with its own network and folders",
    "tests/system/support/package_roots.py": "inside of a root with its own network and folders",
}


def place_problems(name, lines):
    return [f"{name}:{number}: a port or a name that two checkouts share: {line.strip()}"
            for number, line in enumerate(lines, 1)
            if PORT.search(line) or (NAME.search(line) and not OWN_NAME.search(line))]


def check_places(_build):
    """Checks that no test uses a fixed port or a global name, so that two checkouts can run their tests at once."""
    problems = []
    for name in tracked(".c", ".h", ".cpp", ".m", ".py", ".sh", ".mjs"):
        if name.startswith("tests/") and not name.startswith(("tests/bench/", "tests/lint/")) and name not in ONLY_TEXT:
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                problems += place_problems(name, file)
    fail(problems)


def check_programs(_build):
    """Checks that the programs of tests are in tests/samples, except for programs that a test generates."""
    texts = {}
    for name in tracked(".py", ".sh", ".mjs"):
        if name.startswith("tests/") and not name.startswith(("tests/lint/", "tests/samples/")):
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                texts[name] = file.read()
    found = {name: programs.program_problems(name, text) for name, text in texts.items()}
    fail([problem for name, problems in found.items() if name not in programs.GENERATED for problem in problems] +
         [f"{name}: in GENERATED, but without a program" for name in programs.GENERATED if not found.get(name)])


def check_statements(_build):
    """Checks that long SQL is in schema/queries, and that the header of a function's own folder declares it."""
    texts = {}
    for name in tracked(".c", ".h", ".ts", ".tsx"):
        if not name.startswith("tests/"):
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                texts[name] = file.read()
    fail([problem for name, text in texts.items()
          for problem in statements.statement_problems(name, text)] + statements.definition_problems(texts) + statements.loop_problems(texts))


def check_machines(_build, root=ROOT):
    """Checks that no list of sources names the folder of a machine: agent/arch.cmake chooses it."""
    problems = []
    for name in tracked("CMakeLists.txt", ".cmake", root=root):
        with open(os.path.join(root, name), encoding="utf-8") as file:
            problems += [f"{name}:{number}: names the folder of a machine: use sj_arch_sources"
                         for number, line in enumerate(file, 1) if ARCH_FOLDER.search(line)]
    fail(problems)


def find_page_sizes(texts):
    """Returns the lines of code that state the size of a page, or ask for it in a second place."""
    return [f"{name}:{number}: names a page size: use agent/abi/page.h"
            for name, text in texts.items() if name not in PAGE_FILES
            for number, line in enumerate(reach.without_comments(text).splitlines(), 1)
            if PAGE_SIZE.search(line)]


def check_pages(_build):
    texts = {}
    for name in tracked(".c", ".h", ".S", ".inc"):
        if name.startswith(("agent/", "proto/")):
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                texts[name] = file.read()
    if not all(name in texts for name in PAGE_FILES):
        sys.exit("agent/abi/page.h is missing")
    fail(find_page_sizes(texts))


def check_components(_build, root=ROOT):
    floor = {component: number for number, line in enumerate(FLOORS.strip().splitlines())
             for component in line.split()}
    problems = []
    for name in tracked(".c", ".h", ".S", root=root):
        if not name.startswith(("proto/", "agent/", "collector-server/")):
            continue
        component = component_of(name)
        if component not in floor:
            problems.append(f"{name}: component {component} has no floor in FLOORS")
            continue
        with open(os.path.join(root, name), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if (component.startswith("agent/") and "/arch/" not in name
                        and name != "agent/abi/machine.h" and MACHINE.search(line)):
                    problems.append(f"{name}:{number}: names a machine outside of arch/")
                include = re.match(r'#\s*include\s*"([^"]+)"', line)
                if not include or not os.path.exists(os.path.join(root, include[1])):
                    continue
                used = include[1]
                if component_of(used) != component and floor.get(component_of(used), len(floor)) >= floor[component]:
                    problems.append(f"{name}:{number}: {used} is not on a lower floor")
                if component_of(used) != component and used.endswith("internal.h"):
                    problems.append(f"{name}:{number}: {used} is internal to another component")
                if name.startswith("agent/inproc/") and not used.startswith(INSIDE):
                    problems.append(f"{name}:{number}: {used} is not for the traced program")
    fail(problems)


def find_circles(uses):
    """Returns the circles of a graph {name: names that it uses}, each as the sorted list of its members."""
    sys.setrecursionlimit(10000)
    place, lowest, stack, circles = {}, {}, [], []

    def visit(name):
        place[name] = lowest[name] = len(place)
        stack.append(name)
        for used in uses.get(name, ()):
            if used not in place:
                visit(used)
            if used in stack:
                lowest[name] = min(lowest[name], lowest[used])
        if lowest[name] == place[name]:
            at = stack.index(name)
            circle = sorted(stack[at:])
            del stack[at:]
            if len(circle) > 1 or name in uses.get(name, ()):
                circles.append(circle)

    for name in sorted(uses):
        if name not in place:
            visit(name)
    return circles


def includes_of(root):
    uses = {}
    for name in tracked(".c", ".h", ".S", root=root):
        if name.startswith(("proto/", "agent/", "collector-server/")):
            with open(os.path.join(root, name), encoding="utf-8") as file:
                named = re.findall(r'^#\s*include\s*"([^"]+)"', file.read(), re.MULTILINE)
            uses[name] = {used for used in named if os.path.exists(os.path.join(root, used))}
    return uses


def calls_of(objects):
    """Returns {source: sources whose functions it refers to} for {object file: source}. Data does not count: a
    table of descriptors names its rows, and their functions use functions of the table's file."""
    listed = subprocess.run(["nm", "-P", "-A", *objects], capture_output=True, text=True, check=True)
    homes, wanted = {}, {}
    for line in listed.stdout.splitlines():
        name, _, rest = line.partition(": ")
        symbol, kind = rest.split()[:2]
        if kind == "U":
            wanted.setdefault(objects[name], set()).add(symbol)
        elif kind in "TW":
            homes[symbol] = objects[name]
    return {source: {homes[symbol] for symbol in symbols if symbol in homes} - {source}
            for source, symbols in wanted.items()}


def built_objects(build):
    """Returns the object files of the components' libraries. Leaves out assembly, because a trampoline and its C
    file call each other."""
    objects = {}
    for top in ("proto", "agent", "collector-server"):
        for folder, _, files in os.walk(os.path.join(build, top)):
            path = os.path.relpath(folder, build).replace(os.sep, "/")
            inside = re.match(r"(.*)/CMakeFiles/[^/]+\.dir(?:/(.*))?$", path)
            for name in files if inside else ():
                if name.endswith(".c.o"):
                    source = os.path.normpath(os.path.join(inside[1], inside[2] or "", name[:-2]))
                    objects[os.path.join(folder, name)] = source
    return objects


def check_circles(build, root=ROOT):
    problems = [f"include each other: {', '.join(circle)}" for circle in find_circles(includes_of(root))]
    objects = built_objects(build)
    if not objects:
        sys.exit("no objects found: build first")
    problems += [f"call each other: {', '.join(circle)}" for circle in find_circles(calls_of(objects))]
    fail(problems)


CHECKED_COMMITS = 10


def git(*words):
    """Returns the lines that git prints, or None if git fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else None


def base_of_changes():
    """Returns the commit since which changed files are checked: where the branch left origin/main. On main itself,
    this is CHECKED_COMMITS merges and commits ago. None: this checkout does not have the history."""
    left = git("merge-base", "HEAD", "origin/main")
    if left and left != git("rev-parse", "HEAD"):
        return left[0]
    past = git("rev-parse", "--verify", "--quiet", f"HEAD~{CHECKED_COMMITS}")
    return past[0] if past else None


def changed_files():
    """Returns the set of changed files. None: all files count as changed (SJ_LONG=1, or without history)."""
    base = None if os.environ.get("SJ_LONG") else base_of_changes()
    changed = git("diff", "--name-only", base) if base else None
    return None if changed is None else set(changed + git("ls-files", "-o", "--exclude-standard"))


def reach_of(name, uses):
    """Returns a file and all files that it includes, directly or not."""
    found, waiting = set(), [name]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += uses.get(name, ())
    return found


def check_plain(_build):
    """Checks comments, documents and messages of the rewritten components, and subjects of new commits."""
    base = base_of_changes()
    subjects = git("log", "--no-merges", "--format=%s", f"{base}..HEAD") if base else []
    fail(plain.subject_problems(subjects) + plain.problems_below(["."]))


# Entry points for threads that may hold any lock of the C library, or whose locks lost their owner in a fork.
FORK_HANDLERS = ("before_fork", "after_fork_in_parent", "after_fork_in_child")
ENTERED_ANYWHERE = ("handle_fault", "sj_allocation_handler", "sj_free_handler", "sj_delayed_free_entry",
                    "sj_buffer_call", "sj_faults_sigaction", "sj_faults_sigmask",
                    "free_object", "register_method", "sj_modules_is_excluded")  # called through the variables below
# Functions that assembly calls while the thread holds the loader's lock.
LOADERS = ("sj_modules_on_loader_event", "sj_agent_on_initialisation")
# Functions that assembly calls for managed code, which does not hold any lock of the C library.
RUNTIMES = ("sj_mono_on_enter",)
# Variables that hold a function which the program itself was calling, or a function of the lists above.
VARIABLES = {"original", "real", "real_dispose", "free_object", "registers", "is_excluded"}
# Files that may name dl_iterate_phdr: the walker, and the files that replace the function for the program.
WALKERS = {"agent/inproc/hooks/module_walk.c", "agent/inproc/core/find_object.c",
           "agent/inproc/core/find_object_slots.c"}
LOCK_FREE = {"memcpy", "memmove", "memset", "memcmp", "strlen", "strnlen", "strcmp", "strncmp", "strchr",
             "strrchr", "strstr", "getauxval"}


def find_locks(sources, roots):
    """Returns the calls of functions that may take a lock, from functions that `roots` reach."""
    came_from, foreign = sources.reach(roots)
    return [f"{name} may take a lock: {reach.way_to(came_from, place)}"
            for name, place in sorted(foreign.items()) if name not in LOCK_FREE | VARIABLES]


def find_kept_locks(texts, sources, handler):
    """Returns the agent's own locks that a forked child does not release."""
    reached = {place for place in sources.reach([handler])[0]}
    bodies = {(file, name): body for name, each in sources.functions.items() for file, _, body in each}
    return [f"{file}: {lock} is not freed in a forked child" for file, text in texts.items()
            for lock in re.findall(r"^(?:static )?sj_owner_lock (\w+);", text, re.MULTILINE)
            if not any(re.search(rf"\b{lock}\b", bodies[place]) for place in reached
                       if place[0] == file)]


def check_locks(_build):
    texts = reach.read_agent(ROOT)
    sources = reach.Sources({name: text for name, text in texts.items() if not name.endswith(".S")})
    called = {name for file, text in texts.items() if file.endswith(".S")
              for name in re.findall(r"^\s+(?:call|bl|b|jmp)\s+(sj_\w+)", text, re.MULTILINE)}
    roots = sorted(called.intersection(sources.functions) - set(LOADERS + RUNTIMES))
    if len(roots) < len(LOADERS):
        sys.exit("no calls from assembly found")
    fail(find_locks(sources, [*FORK_HANDLERS, *ENTERED_ANYWHERE, *roots]) +
         find_kept_locks(texts, sources, "after_fork_in_child"))


def find_raw_walks(texts):
    """Returns the calls of dl_iterate_phdr that do not wait for forks as sj_module_walk does."""
    return [f"{file}:{number}: use sj_module_walk, which waits for forks"
            for file, text in texts.items() if file not in WALKERS
            for number, line in enumerate(reach.without_comments(text).splitlines(), 1)
            if re.search(r"\bdl_iterate_phdr\b", line)]


def check_walks(_build):
    texts = reach.read_agent(ROOT)
    if not all(name in texts for name in WALKERS):
        sys.exit("no walker found")
    fail(find_raw_walks(texts))


def check_headers(_build):
    """Checks headers.

    Each header that changed, or includes a changed one, compiles alone. Each function that returns sj_status says
    which errors it returns.
    """
    # Debian's JDK has the headers of the JVM interface here.
    jvm = [option for folder in ("include", "include/linux") for option in
           ("-isystem", os.path.join("/usr/lib/jvm/java-17-openjdk-amd64", folder))]

    def alone(name):
        done = subprocess.run(
            [tool("gcc"), "-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-I", ROOT, "-I",
             os.path.join(sys.argv[2], "generated"), *jvm, "-fsyntax-only", "-xc", "-"],
            input=f'#include "{name}"\n', capture_output=True, text=True, cwd=ROOT)
        return f"{name}: {done.stderr}" if done.returncode else None

    changed, uses = changed_files(), includes_of(ROOT)
    headers = [name for name in tracked(".h") if not name.startswith("tests/")
               and (changed is None or reach_of(name, uses) & changed)]
    print(f"{len(headers)} headers")
    nameless = [f"{name}: {function}: say which errors it returns" for name in tracked(".h")
                if not name.startswith("tests/") for function in plain.nameless_errors(plain.read(name))]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        fail(nameless + [problem for problem in pool.map(alone, headers) if problem])


def check_schema(_build):
    """Checks that schema/README.md describes each table and column as the comments of the migrations do."""
    fail(schema_readme.find_problems())


def check_tidy(build):
    """Runs clang-tidy on each source that changed or whose own header changed."""
    folder = os.path.join(build, "tidy")

    def tidy(name):
        done = subprocess.run([tool("clang-tidy", "clang-tidy-14"), "-p", folder, "--quiet",
                               "--extra-arg=-Wno-cast-align", name],
                              cwd=ROOT, capture_output=True, text=True)
        return done.stdout if done.returncode else None

    # Removes options of gcc that clang does not know.
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        built = file.read().replace("-fno-tree-loop-distribute-patterns", "")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "compile_commands.json"), "w", encoding="utf-8") as file:
        file.write(built)
    files = [name for name in tracked(".c") if os.path.join(ROOT, name) in built and not name.startswith("tests/")]
    if not files:
        sys.exit("no files found")
    changed = changed_files()
    stems = {os.path.splitext(name)[0] for name in changed or ()}
    chosen = [name for name in files if changed is None or os.path.splitext(name)[0] in stems]
    print(f"{len(chosen)} of {len(files)} files")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        fail([problem for problem in pool.map(tidy, chosen) if problem])


if __name__ == "__main__":
    globals()["check_" + sys.argv[1]](sys.argv[2])
