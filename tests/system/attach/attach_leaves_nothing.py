"""Attaches and detaches many times. The process computes the same results as without Sojourn, and nothing stays
mapped in it."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from attaching import Target, attach, check_same, code_bytes, look
from sojourn_testing import check, check_accounts, main


def test(sojourn, arguments):
    rounds = 1000 if os.environ.get("SJ_LONG") else int(arguments[1])
    target = Target([arguments[0]]).ready()
    before, code = look(target.pid), code_bytes(target.pid)
    database = sojourn.path("run.db")
    recorded = 0
    stops, leaves, moved, kept = [], [], 0, 0
    i = 0
    # A process on a loaded machine may be asleep during a window. Then the test adds windows.
    while i < rounds or (recorded <= 1000 * rounds and i < 20 * rounds):
        database = sojourn.path(f"run-{i % 4}.db")
        if os.path.exists(database):
            os.unlink(database)
        done, summary = attach(sojourn, target.pid, database, ["--for", "15ms"])
        check(done.returncode == 0 and summary, f"round {i}: {done}")
        kept += summary["left_bytes"] != 0
        stops.append(summary["attach_stopped_ns"])
        leaves.append(summary["detach_stopped_ns"])
        moved += summary["attach_moved"]
        recorded += summary["calls"]
        check(summary["attach_refused"] == 0, f"round {i}: some functions were refused: {summary}")
        if summary["left_bytes"] == 0 and (i % 10 == 0 or i >= rounds - 1):
            check_same(before, look(target.pid), code, code_bytes(target.pid), f"in round {i}")
            check_accounts(sojourn, database)
        i += 1
    check(recorded > 1000 * rounds, f"{recorded} calls in {i} rounds: nothing was recorded")
    done = sojourn.run(["detach", str(target.pid)], capture_output=True, text=True)
    check(done.returncode == 0, f"detach: {done}")
    check_same(before, look(target.pid), code, code_bytes(target.pid), "at the end")
    code, output = target.finish()
    check(code == 0 and "mistakes 0, work 1, ticks 1" in output, f"the target: {code}, {output}")
    for call in ("nanosleep", "poll", "epoll_wait", "futex", "select"):
        check(f"{call} 0" in output, f"{call} was interrupted: {output}")
    stops.sort()
    leaves.sort()
    print(f"{i} rounds, {recorded} calls, {moved} threads moved, {kept} rounds left pages; "
          f"stopped {stops[len(stops) // 2] / 1e6:.2f} ms (worst {stops[-1] / 1e6:.2f}), leaving "
          f"{leaves[len(leaves) // 2] / 1e6:.2f} ms (worst {leaves[-1] / 1e6:.2f})")
    print(output.splitlines()[-1])


main(test)
