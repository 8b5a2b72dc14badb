"""Programs linked against musl are recorded, with forks, threads and dlopen. Some programs cannot join a session:
those with AddressSanitizer's runtime, which must come first, without a loader, in another root directory, or of
another user. They behave the same as without Sojourn, print nothing else, and are listed in the summary."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, main


def record(sojourn, command, name, may_lose=False):
    """Records a command, which must behave and print the same as without Sojourn. Returns the database and the
    summary.

    With `may_lose` the recorder may report lost calls on its stderr.
    """
    plain = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    database = sojourn.path(f"{name}.db")
    done, told = sojourn.record(command, database, text=True)
    stderr = re.sub(r"^sojourn: .*\n", "", done.stderr, flags=re.MULTILINE) if may_lose and told["lost_calls"] else done.stderr
    check((done.returncode, done.stdout, stderr) ==
          (plain.returncode, plain.stdout, plain.stderr),
          f"{name}: {done.returncode}, {done.stdout!r}, {done.stderr!r}, and without "
          f"{plain.returncode}, {plain.stdout!r}, {plain.stderr!r}")
    check_accounts(sojourn, database)
    return database, told


def musl(sojourn, samples):
    for how, steps, processes, threads in [("fork", 1050, 2, 2), ("threads", 3000, 1, 21),
                                            ("load", 1050, 1, 1)]:
        database, told = record(sojourn, [f"{samples}/ends_musl", how], f"musl-{how}")
        calls = sojourn.sql(database, "SELECT sum(s.calls) AS calls FROM function_stats s JOIN functions "
                            "f ON f.function_id = s.function_id WHERE f.name = 'ends_step'")[0]["calls"]
        check((calls, told["processes"], told["threads"], told["lost_calls"]) ==
              (steps, processes, threads, 0), f"{how}: {calls} steps, {told}")


def children(sojourn, samples):
    command = f"{samples}/ends_sanitized return; {samples}/ends_static return; true"
    _, told = record(sojourn, ["sh", "-c", command], "children")
    check(told["unrecorded_programs"] == {"static or for another machine": 1,
                                          "built with AddressSanitizer's shared runtime": 1},
          f"told: {told['unrecorded_programs']}")


def other_root(sojourn, samples):
    root = sojourn.path("root")
    listed = subprocess.run(["ldd", f"{samples}/ends"], capture_output=True, text=True, check=True)
    for path in [f"{samples}/ends"] + [word for word in listed.stdout.split() if word[0] == "/"]:
        to = root + ("/ends" if path.startswith(samples) else path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(path, to)
    _, told = record(sojourn, ["chroot", root, "/ends", "return"], "root")
    check(told["unrecorded_programs"] ==
          {"under a root directory without the agent or the recorder": 1},
          f"told: {told['unrecorded_programs']}")


def fixed_addresses(sojourn):
    """If addresses are not random, the recorder's arena lies directly below the libraries."""
    database = sojourn.path("fixed.db")
    done = subprocess.run(["setarch", "-R", sojourn.program, "record", "--quiet", "-o", database, "--libs", "--module",
                           "*libsqlite3*", "--", "sqlite3", ":memory:", "SELECT 1"],
                          env=sojourn.environment, capture_output=True, text=True, timeout=PATIENCE_S)
    check((done.returncode, done.stdout, done.stderr) == (0, "1\n", ""), f"fixed addresses: {done}")
    check_accounts(sojourn, database)
    calls = sojourn.sql(database, "SELECT count(*) AS calls FROM calls")[0]["calls"]
    check(calls > 1000, f"fixed addresses: {calls} calls")


def limits(sojourn):
    """A program whose limits leave no memory for the recorder runs as without it, and is reported. A recorder that
    may not write ends with an error. The program has its usual signals."""
    database = sojourn.path("space.db")
    done, told = sojourn.record(["sh", "-c", "ulimit -v 500000; exec perl -e 'print 1 + 1'"], database, text=True)
    check((done.returncode, done.stdout, done.stderr) == (0, "2", ""), f"address space: {done}")
    rows = sojourn.sql(database, "SELECT disarm_reason FROM processes ORDER BY number")
    check([row["disarm_reason"] for row in rows] == ["", "no shared memory for records"], f"address space: {rows}")
    check(told["processes_without_arena"] == 1, f"address space: {told}")
    done = subprocess.run(["sh", "-c", f"ulimit -v 1500000; exec {sojourn.program} record -q -o {sojourn.path('own.db')} -- echo yes"],
                          env=sojourn.environment, capture_output=True, text=True, timeout=PATIENCE_S)
    # The limit may leave the recorder enough memory for so small a program.
    check((done.returncode, done.stdout) == (0, "yes\n") and (done.stderr == "" or '"ulimit -v" is 1500000 here' in done.stderr),
          f"its own address space: {done}")
    done, told = sojourn.record(["sh", "-c", "ulimit -v 1500000; exec perl -e 'print 1 + 1'"], database, text=True)
    check((done.returncode, done.stdout, done.stderr) == (0, "2", "") and told["processes_without_arena"] == 0 and
          told["calls"] > 1000, f"its address space: {done} {told}")
    record(sojourn, ["grep", "^Sig[BI]", "/proc/self/status"], "signals")
    done = subprocess.run(["sh", "-c", f"ulimit -f 100; exec {sojourn.program} record -o {sojourn.path('small.db')} -- echo no"],
                          env=sojourn.environment, capture_output=True, text=True, timeout=PATIENCE_S)
    check((done.returncode, done.stdout) == (125, "") and "File too large; \"ulimit -f\"" in done.stderr, f"size of a file: {done}")


def count_leaves(sojourn, database):
    return sojourn.sql(database, "SELECT count(*) AS calls FROM calls JOIN functions USING (function_id) "
                       "WHERE name = 'leaf'")[0]["calls"]


def limits_itself(sojourn, samples):
    """A program that limits its own address space gets the memory that it would have. Threads beyond the recorder's
    memory are counted."""
    program, leaves = f"{samples}/limits_space", 1 + 25 * 1000
    for how in ("setrlimit", "prlimit", "syscall"):
        database, told = record(sojourn, [program, how], how, may_lose=True)
        recorded = count_leaves(sojourn, database)
        # A thread without a slot loses its calls of leaf, and the call of its start function.
        lost = told["lost_calls"] - told["refused_threads"]
        check(recorded > 2000 and recorded + lost == leaves, f"{how}: {recorded} of {leaves}: {told}")
    database = sojourn.path("limits_attached.db")
    with subprocess.Popen([program, "setrlimit", "wait"], stdout=subprocess.PIPE, text=True) as process:
        check(process.stdout.readline() == "ready\n", "it does not begin")
        sojourn.run(["attach", "--quiet", "-o", database, str(process.pid)], capture_output=True)
        output, _ = process.communicate(timeout=PATIENCE_S)
    check((process.returncode, output) == (0, "set 0, mapped 9, child 9, whole 9, sum 24000\n"), f"attached: {output}")
    check(count_leaves(sojourn, database) > 1000, "attached: few calls")


def limited(sojourn, limit, command):
    """Records a command with `ulimit LIMIT`."""
    words = ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", sojourn.program, "record", "-q", "-o", sojourn.path("few.db"),
             "--", *command]
    return subprocess.run(words, env=sojourn.environment, capture_output=True, text=True, timeout=PATIENCE_S)


def own_limits(sojourn):
    """The recorder raises its limit of descriptors, and the program keeps its own limit. If a limit is too low, the
    recorder ends with the name of the limit. It also names the command that sets the limit for the program alone."""
    done = limited(sojourn, "-Sn 16", ["perl", "-e", "exec 'sh', '-c', 'ulimit -Sn'"])
    check((done.returncode, done.stdout, done.stderr) == (0, "16\n", ""), f"few descriptors: {done}")
    done = limited(sojourn, "-n 16", ["echo", "no"])
    check((done.returncode, done.stdout) == (125, "") and '"ulimit -n" is 16 here' in done.stderr, f"descriptors: {done}")
    for limit in ("-s 64", "-s 200", "-v 65536", "-v 200000"):
        done = limited(sojourn, limit, ["echo", "no"])
        check((done.returncode, done.stdout) == (125, "") and f"sh -c 'ulimit {limit}; exec PROGRAM'" in done.stderr,
              f"ulimit {limit}: {done}")
    done = limited(sojourn, "-s 256", ["perl", "-e", "exec 'sh', '-c', 'ulimit -s'"])
    check((done.returncode, done.stdout) == (0, "256\n"), f"a small stack: {done}")


def no_proc(sojourn):
    done = subprocess.run(["unshare", "-m", "sh", "-c", 'umount -l /proc; exec "$@"', "sh", sojourn.program, "record", "-o",
                           sojourn.path("proc.db"), "--", "echo", "no"],
                          env=sojourn.environment, capture_output=True, text=True, timeout=PATIENCE_S)
    check((done.returncode, done.stdout) == (125, "") and "; mount /proc first: " in done.stderr, f"no /proc: {done}")


def other_user(sojourn, samples):
    _, told = record(sojourn, [f"{samples}/other_user", "/bin/true"], "user")
    check(told["unrecorded_programs"] == {"of a user who may not reach the recorder": 1},
          f"told: {told['unrecorded_programs']}")


def forked(sojourn, samples):
    """A process that changes its root or its user is still recorded. Children that it forks afterwards are reported."""
    root = sojourn.path("empty")
    os.mkdir(root, 0o755)
    for how, why in [("root", "under a root directory without the agent or the recorder"),
                     ("user", "of a user who may not reach the recorder")]:
        database, told = record(sojourn, [f"{samples}/other_fork", how, root], f"fork-{how}")
        calls = sojourn.sql(database, "SELECT sum(s.calls) AS calls FROM function_stats s JOIN functions "
                            "f ON f.function_id = s.function_id WHERE f.name = 'other_work'")[0]["calls"]
        check((calls, told["processes"], told["unrecorded_programs"]) == (2, 2, {why: 1}),
              f"{how}: {calls} calls, {told}")


def test(sojourn, arguments):
    musl(sojourn, arguments[0])
    children(sojourn, arguments[0])
    fixed_addresses(sojourn)
    limits(sojourn)
    limits_itself(sojourn, arguments[0])
    own_limits(sojourn)
    if os.geteuid() == 0:
        no_proc(sojourn)
        other_root(sojourn, arguments[0])
        other_user(sojourn, arguments[0])
        forked(sojourn, arguments[0])


main(test)
