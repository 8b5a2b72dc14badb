#!/usr/bin/env python3
"""Times of calls are multiples of the step that the policy asks for, and the session names the step. Order, counts
and containment equal those of exact times. resolution.py BUILD_FOLDER PROGRAM"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import check, check_accounts, main

COUNTS = "SELECT name, calls FROM function_stats JOIN functions USING (function_id) WHERE name != '_start'"
SESSION = ("SELECT clock_step, clock_step * 1.0 * tick_ns_numerator / tick_ns_denominator AS step_ns,"
           " stored_calls FROM sessions")
TICKS = "SELECT first_ticks, last_ticks FROM blocks WHERE event_count > 0"
OUTSIDE = ("SELECT count(*) AS n FROM calls c JOIN calls p ON p.call_id = c.parent_id"
           " WHERE c.start_ns < p.start_ns OR c.end_ns > p.end_ns OR c.self_ns < 0 OR c.duration_ns < 0")


def recorded(sojourn, folder, program, resolution):
    database = os.path.join(folder, f"{resolution or 'default'}.db")
    options = ["--resolution", resolution] if resolution else []
    done, _ = sojourn.record([program], database, options)
    check(done.returncode == 0, f"{resolution}: {done.stderr}")
    check_accounts(sojourn, database)
    session, = sojourn.sql(database, SESSION)
    counts = {row["name"]: row["calls"] for row in sojourn.sql(database, COUNTS)}
    outside, = sojourn.sql(database, OUTSIDE)
    check(outside["n"] == 0, f"{resolution}: {outside['n']} calls lie outside of their callers")
    times = sojourn.sql(database, TICKS)
    check(times, f"{resolution}: no blocks")
    return session, counts, [row[which] for row in times for which in ("first_ticks", "last_ticks")]


def test(sojourn, arguments):
    program = arguments[-1]
    exact, counts, exact_times = recorded(sojourn, sojourn.folder, program, "exact")
    for resolution, ns in ((None, 10), ("100ns", 100), ("1us", 1000)):
        session, others, times = recorded(sojourn, sojourn.folder, program, resolution)
        step, limit = session["clock_step"], max(ns, exact["step_ns"])
        check(others == counts, f"{resolution}: {others}, exact: {counts}")
        check(session["step_ns"] <= limit * 1.001, f"{resolution}: steps of {session['step_ns']} ns")
        check(step % exact["clock_step"] == 0, f"{resolution}: {step}, the clock's: {exact}")
        check(all(time % step == 0 for time in times), f"{resolution}: {times} in steps of {step}")
        if step > exact["clock_step"] and ns > 10:
            check(any(time % step != 0 for time in exact_times), f"exact times lie at steps of {step}")
    refused, _ = sojourn.record([program], sojourn.path("no.db"), ["--resolution", "2s"], text=True)
    check(refused.returncode != 0 and '"1ms" is needed' in refused.stderr, refused.stderr)


main(test)
