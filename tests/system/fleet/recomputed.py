#!/usr/bin/env python3
"""Computes calls and their sums again, from rows of single calls, in plain Python that shares no code with Sojourn.
The results must equal what Sojourn says of depths, callers, self times, functions, edges, call paths, run times of
threads, and calls that never ended.

The subjects are perl, redis-server, C++ that throws, coroutines and threads. Further subjects are a recording that
lost calls, one that was read while it was written, and one whose recorder was killed. Times lie on steps of the clock,
so that sums are exact. Only the times of the last subject do not: its nanoseconds are rounded.

recomputed.py BUILD_FOLDER
"""
import collections
import concurrent.futures
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, SAMPLES, check, check_accounts, children, main, wait_for

PROGRAMS = os.path.join(SAMPLES, "questions")
BEFORE_RECORDING, GAP = 1, 2  # bits of calls.flags
FOREVER = 1 << 62

Call = collections.namedtuple("Call", "id stream thread function start end depth parent self ending flags")
Sum = collections.namedtuple("Sum", "calls total own least most unwound untrusted rounding")


class Clock:
    """Converts nanoseconds to ticks that the times of a session's calls can have, if there is exactly one."""

    def __init__(self, row):
        self.started, self.step = row["started_ticks"], row["clock_step"]
        self.numerator, self.denominator = row["tick_ns_numerator"], row["tick_ns_denominator"]

    def ns(self, ticks):
        return ticks * self.numerator // self.denominator

    def ticks(self, at_ns):
        """Returns the time on the clock's steps that is shown as `at_ns`, or None if there is none or more than
        one."""
        def first(ns):
            least = -(-ns * self.denominator // self.numerator)  # the fewest ticks that are shown as ns or later
            return -(-(least + self.started) // self.step) * self.step - self.started
        if at_ns >= 0:
            low, behind = first(at_ns), first(at_ns + 1)
            return low if behind - low == self.step else None
        mirrored = [ticks for ticks in range(first(at_ns - 1) - self.step, first(at_ns + 1) + 2 * self.step, self.step)
                    if ticks < 0 and -self.ns(-ticks) == at_ns]
        return mirrored[0] if len(mirrored) == 1 else None


def read_calls(sojourn, database, session):
    def number(word):
        return int(word) if word else None
    columns = ("call_id, stream_id, thread_id, function_id, start_ns, end_ns, depth, parent_id, self_ns, "
               "ending, flags")
    with sojourn.sql_lines(database, f"SELECT {columns} FROM calls WHERE session_id = {session} "
                           "ORDER BY call_id") as lines:
        for line in lines:
            words = line.rstrip("\n").split(",")
            yield Call(*map(number, words[:9]), words[9], int(words[10]))


class Tree:
    """Nests the calls of a session by their order of entry and their times. If a call ends at the tick at which the
    next is entered, both orders are possible, and only then the stored depth decides. Sums are kept in ticks, or in
    ns if ticks are not known. Sums in ns may differ by one ns."""

    def __init__(self, clock, exact):
        self.clock, self.exact = clock, exact
        self.stacks = collections.defaultdict(list)  # stream: open calls, [call, path, own time, end, callees]
        self.paths = collections.defaultdict(list)  # functions from the root: figures of calls that ended
        self.functions, self.edges = collections.defaultdict(list), collections.defaultdict(list)
        self.outer = collections.Counter()  # function or edge: time in it, without those inside it
        self.first, self.last, self.calls = {}, {}, collections.Counter()
        self.deepest, self.open, self.wrong = collections.Counter(), [], []

    def time(self, at_ns):
        ticks = self.clock.ticks(at_ns) if self.exact else None
        if ticks is None and self.exact:
            raise ValueError(f"{at_ns} ns is at no step of the clock, or at several")
        return ticks if self.exact else at_ns

    def shown(self, amount):
        return self.clock.ns(amount) if self.exact else amount

    def add(self, call):
        start = self.time(call.start)
        end = FOREVER if call.end is None else self.time(call.end)
        stack = self.stacks[call.stream]
        while stack and stack[-1][3] <= start and (stack[-1][3] < start or len(stack) > call.depth):
            self.finish(stack)
        caller = stack[-1] if stack else None
        if caller is not None and end > caller[3]:
            self.wrong.append(f"{call} ends after its caller {caller[0]}")
        if len(stack) != call.depth or call.parent != (caller[0].id if caller else None):
            self.wrong.append(f"{call} lies in {[frame[0].id for frame in stack]}")
        path = (caller[1] if caller else ()) + (call.function,)
        stack.append([call, path, 0 if end == FOREVER else end - start, end, 0])
        if caller is not None and end != FOREVER:
            caller[2] -= end - start
            caller[4] += 1
        self.calls[call.stream] += 1
        self.deepest[call.stream] = max(self.deepest[call.stream], len(stack))
        self.first.setdefault(call.stream, call.start)
        if call.end is not None:
            self.last[call.stream] = max(self.last.get(call.stream, call.end), call.end)

    def finish(self, stack):
        call, path, own, end, callees = stack.pop()
        if call.ending == "open":
            self.open.append((call.stream, call.depth, call.function, call.start, call.flags & BEFORE_RECORDING))
        if end == FOREVER:
            check(call.ending == "open" and call.self is None, f"open: {call}")
            return
        total = end - self.time(call.start)
        made_self = call.end - call.start if own == total else self.shown(own)
        if abs(made_self - call.self) > (0 if self.exact else callees + 1):
            self.wrong.append(f"{call} has {made_self} ns of its own")
        figures = (total, own, call.ending == "unwound", call.flags != 0 or call.ending == "truncated", callees + 1)
        self.paths[path].append(figures)
        self.functions[call.function].append(figures)
        edges = list(zip((0,) + path[:-1], path))
        self.edges[edges[-1]].append(figures)
        if edges[-1] not in edges[:-1]:
            self.outer[edges[-1]] += total
        if call.function not in path[:-1]:
            self.outer[call.function] += total

    def finish_all(self):
        for stack in self.stacks.values():
            while stack:
                self.finish(stack)

    def sum(self, figures, total=None):
        totals = [figure[0] for figure in figures]
        return Sum(len(figures), self.shown(sum(totals) if total is None else total),
                   self.shown(sum(figure[1] for figure in figures)), self.shown(min(totals)),
                   self.shown(max(totals)), sum(figure[2] for figure in figures),
                   sum(figure[3] for figure in figures), 0 if self.exact else sum(figure[4] for figure in figures))


def same(made, stored):
    """True if two figures of a key agree. Sums of rounded times may differ by the rounding."""
    if not isinstance(made, Sum) or not isinstance(stored, Sum):
        return made == stored
    return all(one == other or (other is None and name not in ("calls", "total", "own"))
               or (name in ("total", "own", "least", "most") and abs(one - other) <= made.rounding)
               for name, one, other in zip(Sum._fields[:-1], made, stored))


def compare(what, made, stored):
    """Compares both by key. Any difference is a failure."""
    wrong = [f"{key}: computed {made.get(key)}, stored {stored.get(key)}"
             for key in made.keys() | stored.keys() if not same(made.get(key), stored.get(key))]
    check(not wrong, f"{what}: {len(wrong)} of {len(stored)} differ, such as {wrong[:3]}")


SUMS = "calls, total_ns, self_ns, min_ns, max_ns, unwound, untrusted"


def sum_of(row):
    """Returns a row's sums. Missing sums are None and not compared."""
    return Sum(*(row.get(name) for name in SUMS.split(", ")), 0)


def stored_paths(sojourn, database, session):
    paths, known = {}, {}
    for row in sojourn.sql(database, f"SELECT path_id, parent_path_id, function_id, depth, recursive, rare, {SUMS} "
                           f"FROM call_paths WHERE session_id = {session} ORDER BY path_id"):
        parent = known.get(row["parent_path_id"], ())
        path = known[row["path_id"]] = parent + (row["function_id"],)
        check(row["depth"] == len(parent) and row["recursive"] == (path[-1] in parent) and not row["rare"],
              f"path {row}")
        if row["calls"]:
            paths[path] = sum_of(row)
    return paths


def compare_sums(sojourn, database, session, tree):
    compare("call_paths", {path: tree.sum(figures) for path, figures in tree.paths.items()},
            stored_paths(sojourn, database, session))
    compare("function_stats",
            {function: tree.sum(figures, tree.outer[function]) for function, figures in tree.functions.items()},
            {row["function_id"]: sum_of(row) for row in sojourn.sql(
                database, f"SELECT function_id, {SUMS} FROM function_stats WHERE session_id = {session} AND calls")})
    compare("call_edges",
            {edge: tree.sum(figures, tree.outer[edge]) for edge, figures in tree.edges.items()},
            {(row["caller_function_id"], row["callee_function_id"]): sum_of(row)
             for row in sojourn.sql(database, "SELECT caller_function_id, callee_function_id, calls, total_ns, self_ns "
                                    f"FROM call_edges WHERE session_id = {session} AND calls")})


def compare_streams(sojourn, database, session, tree):
    compare("streams",
            {stream: (calls, tree.first[stream], tree.last.get(stream), tree.deepest[stream])
             for stream, calls in tree.calls.items()},
            {row["stream_id"]: (row["calls"], row["first_enter_ns"], row["last_leave_ns"], row["max_depth"])
             for row in sojourn.sql(database, "SELECT * FROM streams WHERE calls AND "
                                    f"session_id = {session}")})
    ended = {row["stream_id"] for row in sojourn.sql(database, "SELECT stream_id FROM streams WHERE ended")}
    compare("open_calls", collections.Counter(row for row in tree.open if row[0] in ended),
            collections.Counter((row["stream_id"], row["depth"], row["function_id"], row["start_ns"], row["flags"] & 1)
                                for row in sojourn.sql(database, "SELECT o.* FROM open_calls o JOIN streams USING "
                                                       f"(stream_id) WHERE session_id = {session}")))


def recompute(sojourn, database, name, least, exact=True):
    """Compares all sessions of a database. Returns what was seen in them."""
    seen = collections.Counter()
    for row in sojourn.sql(database, "SELECT * FROM sessions"):
        tree = Tree(Clock(row), exact)
        for call in read_calls(sojourn, database, row["session_id"]):
            tree.add(call)
            seen[call.ending] += 1
            seen["gap"] += call.flags & GAP != 0
        tree.finish_all()
        check(not tree.wrong, f"{name}: {len(tree.wrong)} rows are wrong, such as {tree.wrong[:3]}")
        compare_sums(sojourn, database, row["session_id"], tree)
        compare_streams(sojourn, database, row["session_id"], tree)
        seen["streams"] += len(tree.calls)
        seen["calls"] += sum(tree.calls.values())
        seen["paths"] += len(tree.paths)
    for what, count in least.items():
        check(seen[what] >= count, f"{name}: {what} {seen[what]}, not {count}: {seen}")
    print(f"{name}: {dict(seen)}, nothing differs")


def record(sojourn, command, name, ended=0):
    database = sojourn.path(f"{name}.db")
    done, _summary = sojourn.record(command, database)
    check(done.returncode == ended, f"{name}: {done.returncode} {done.stderr}")
    return database


def redis(sojourn):
    """Runs a server that gets a few requests, and ends by a command."""
    database, socket = sojourn.path("redis.db"), sojourn.path("s")
    recorder = subprocess.Popen(
        [sojourn.program, "record", "--quiet", "-o", database, "--", "redis-server", "--port", "0",
         "--unixsocket", socket, "--save", "", "--dir", sojourn.folder],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=sojourn.environment)

    def ask(*words):
        return subprocess.run(["redis-cli", "-s", socket, *words], capture_output=True, text=True, check=False)

    wait_for("redis-server answers", lambda: ask("PING").stdout == "PONG\n")
    for i in range(20):
        ask("ZADD", "board", str(i * 37 % 100), f"member{i}")
    ask("EVAL", "return redis.call('ZRANGE', 'board', 0, -1)", "0")
    ask("SHUTDOWN", "NOSAVE")
    _, errors = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0, f"redis: {recorder.returncode} {errors}")
    return database


def start_steps(sojourn, database, options):
    command = [sojourn.program, "record", "--quiet", "-o", database, *options, "--", "perl", os.path.join(PROGRAMS, "steps.pl")]
    recorder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=sojourn.environment)
    check(recorder.stdout.readline() == "1\n", "the program does not begin")
    return recorder


def continue_recorder(recorder, number):
    recorder.stdin.write("\n")
    recorder.stdin.flush()
    check(recorder.stdout.readline() == f"{number}\n", f"the program does not reach step {number}")


def stored_calls(sojourn, database):
    return sum(row["stored_calls"] for row in sojourn.sql_once_made(database, "SELECT stored_calls FROM sessions"))


def lossy(sojourn):
    """The recorder is stopped while the program makes more calls than its memory holds."""
    database = sojourn.path("lossy.db")
    recorder = start_steps(sojourn, database, ["--when-full", "drop"])
    wait_for("calls are stored", lambda: stored_calls(sojourn, database))
    os.kill(recorder.pid, signal.SIGSTOP)
    known = stored_calls(sojourn, database)
    continue_recorder(recorder, 2)
    os.kill(recorder.pid, signal.SIGCONT)
    wait_for("the recorder continues", lambda: stored_calls(sojourn, database) > known)  # now there is free memory
    continue_recorder(recorder, 3)
    _, errors = recorder.communicate("\n", timeout=PATIENCE_S)
    check(recorder.returncode == 0, f"lossy: {recorder.returncode} {errors}")
    lost = sojourn.sql(database, "SELECT lost_calls FROM sessions")[0]["lost_calls"]
    check(lost > 1000, f"only {lost} calls were lost")
    return database


def killed(sojourn):
    """Recorder and program are killed. `flush` finishes the session from shared memory."""
    database = sojourn.path("killed.db")
    recorder = start_steps(sojourn, database, [])
    wait_for("calls are stored", lambda: stored_calls(sojourn, database))
    program = children(recorder.pid)
    recorder.kill()
    recorder.communicate()
    for pid in program:
        os.kill(pid, signal.SIGKILL)
    done = sojourn.run(["flush"], capture_output=True, text=True)
    check(done.returncode == 0, f"flush: {done.stdout}{done.stderr}")
    return database


SNAPSHOT = """SELECT (SELECT sum(call_count) FROM blocks WHERE kind = 1) AS stored,
(SELECT count(*) FROM calls WHERE depth >= 0) AS calls, (SELECT count(*) FROM calls WHERE start_ns IS NULL) AS odd"""


def read_beside(sojourn, database, seen):
    """Asks until the answer has changed twice. All rows of one statement must be from one moment."""
    while len(set(seen)) < 3:
        row = sojourn.sql(database, SNAPSHOT)[0]
        check(row["stored"] == row["calls"] and row["odd"] == 0, f"beside a writer: {row}")
        check(not seen or row["calls"] >= seen[-1], f"calls are gone: {row} after {seen[-1:]}")
        seen.append(row["calls"])


def readers_do_not_disturb_a_recording(sojourn):
    """Two readers read a file while a recording is written to it. Each sees consistent states, no process waits for
    another, and the recording is as if there were no readers."""
    database, stop = sojourn.path("beside.db"), sojourn.path("stop")
    recorder = subprocess.Popen([sojourn.program, "record", "--quiet", "-o", database, "--", "perl", os.path.join(PROGRAMS, "busy.pl"), stop],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=sojourn.environment)
    try:
        wait_for("calls are stored", lambda: stored_calls(sojourn, database))
        with concurrent.futures.ThreadPoolExecutor() as readers:
            for reader in [readers.submit(read_beside, sojourn, database, []) for _ in range(2)]:
                reader.result(PATIENCE_S)
    finally:
        with open(stop, "wb"):
            pass
    _, errors = recorder.communicate(timeout=PATIENCE_S)
    check(recorder.returncode == 0, f"beside readers: {recorder.returncode} {errors}")
    check_accounts(sojourn, database)
    return database


def test(sojourn, _arguments):
    samples = os.path.join(os.path.dirname(sojourn.program), "..", "tests", "samples", "gcc-O2")
    recompute(sojourn, record(sojourn, ["perl", os.path.join(PROGRAMS, "texts.pl")], "perl"), "perl", {"calls": 20000, "paths": 500})
    recompute(sojourn, redis(sojourn), "redis", {"calls": 10000, "streams": 2})
    for name, ended, least in (("s_throw", 0, {"unwound": 3}), ("throws", 42, {"unwound": 100}),
                               ("s_coroutine", 0, {"streams": 4}), ("s_threads", 0, {"streams": 2}),
                               ("s_longjmp", 0, {"unwound": 1})):
        recompute(sojourn, record(sojourn, [os.path.join(samples, name)], name, ended), name, least)
    recompute(sojourn, readers_do_not_disturb_a_recording(sojourn), "beside two readers", {"calls": 1000})
    recompute(sojourn, lossy(sojourn), "lossy", {"gap": 1, "calls": 1000})
    recompute(sojourn, killed(sojourn), "killed", {"open": 1, "calls": 1000}, exact=False)


if __name__ == "__main__":
    main(test)
