#!/usr/bin/env python3
"""kill -9 of app, recorder, daemon and collector in random order. Nothing that was stored disappears, nothing is
stored twice, and at the end the collector has exactly the blocks that the devices sent.

fleet_kill.py BUILD_FOLDER [SEED]: 20 rounds, 1,000 with SJ_LONG=1.
"""
import json
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_testing import Device, Collector, enrol
from sojourn_testing import PATIENCE_S, Failure, check, children, main, wait_for

BLOCKS = """
SELECT lower(hex(s.uuid)) || '/' || st.number || '/' || b.kind || '/' || b.first_event || '+' ||
       b.event_count AS identity
FROM blocks AS b JOIN streams AS st USING (stream_id) JOIN sessions AS s USING (session_id)
"""


def read_blocks(database):
    """Reads the blocks from the file, so that it works without a collector, too."""
    done = subprocess.run(["sqlite3", "-cmd", ".timeout 5000", database, BLOCKS],
                          capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    lines = done.stdout.split()
    check(len(lines) == len(set(lines)), "a block is stored twice")
    return set(lines)


def recorders(device):
    folder = os.path.join(device.state, "sojourn/device/spool")
    found = {}
    for name in device.spool():
        if name.endswith(".to"):
            try:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found[name[:-3]] = int(file.read().split("\n")[2])
            except (FileNotFoundError, IndexError, ValueError):
                continue
    return {session: pid for session, pid in found.items() if is_recorder(pid)}


def is_recorder(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")[:2] == [b"sojourn-device", b"session"]
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def one_round(collector, device, ends, dice, orphans):
    """Kills one or two processes at a random moment, and restarts those that the test needs."""
    running = recorders(device)
    for pid in list(orphans):
        kill(pid)
        orphans.discard(pid)
    if not running:
        collector.device("--timeout", "240", "--no-wait", device.name, "launch", ends, "wait")
        wait_for("a recorder", lambda: recorders(device))
        running = recorders(device)
    time.sleep(dice.uniform(0, 0.4))
    for party in dice.sample(["app", "recorder", "daemon", "collector"], dice.choice([1, 1, 2, 3])):
        pid = dice.choice(list(running.values()))
        if party == "app":
            for child in children(pid):
                kill(child)
        elif party == "recorder":
            orphans.update(children(pid))
            kill(pid)
        elif party == "daemon" and device.process.poll() is None:
            device.stop(signal.SIGKILL)
        elif party == "collector" and collector.process.poll() is None:
            collector.stop(signal.SIGKILL)
        time.sleep(dice.choice([0, 0, 0.05]))


def restart(collector, device):
    if collector.process.poll() is not None:
        collector.start()
    if device.process.poll() is not None:
        device.start()


def end_all(device, orphans):
    for pid in recorders(device).values():
        os.kill(pid, signal.SIGTERM)
    for pid in orphans:
        kill(pid)


def check_sums(collector):
    for row in collector.sql("SELECT lower(hex(uuid)) AS uuid, state, stored_calls, sent_calls, "
                       "device_lost_calls, lost_calls, stored_blocks, sent_blocks FROM sessions"):
        check(row["sent_calls"] is not None, f"a session has no end: {row}")
        check(row["sent_calls"] == row["stored_calls"] + row["device_lost_calls"],
              f"calls are missing: {row}")
        check(row["sent_blocks"] == row["stored_blocks"], f"blocks are missing: {row}")
        check(row["lost_calls"] == row["device_lost_calls"], f"losses differ: {row}")
    done = subprocess.run(["sqlite3", collector.database, "PRAGMA integrity_check"], capture_output=True,
                          text=True, check=True)
    check(done.stdout.strip() == "ok", f"the database: {done.stdout}")


def report_state(collector, device):
    """Prints the state that explains a failure, because the files are gone afterwards."""
    for path in (collector.log.name, device.log.name):
        with open(path, encoding="utf-8", errors="replace") as log:
            print(path, *log.readlines()[-25:], sep="\n", file=sys.stderr)
    rows = subprocess.run(["sqlite3", "-json", collector.database,
                           "SELECT * FROM commands ORDER BY command_id DESC LIMIT 3"],
                          capture_output=True, text=True, check=False)
    for session in device.spool():
        folder = os.path.join(device.state, "sojourn/device/spool", session)
        for path, _, names in os.walk(folder):
            for name in names:
                with open(os.path.join(path, name), "rb") as file:
                    print(session, os.path.join(path[len(folder):], name), file.read()[:64].hex(),
                          file=sys.stderr)
    refused = subprocess.run(
        ["sqlite3", "-json", collector.database,
         "SELECT hex(uuid), q.* FROM (SELECT session_id, stream, first_event, event_count, reason FROM "
         "quarantined_blocks UNION ALL SELECT session_id, 0, 0, frames, reason FROM refused_frames) "
         "AS q JOIN sessions USING (session_id)"], capture_output=True, text=True, check=False)
    print(refused.stdout, refused.stderr, file=sys.stderr)
    print(rows.stdout, f"spool: {device.spool()}", f"recorders: {recorders(device)}",
          f"daemon: {device.process.poll()}, collector: {collector.process.poll()}", sep="\n", file=sys.stderr)


def kill_rounds(collector, device, ends, dice, rounds):
    """Runs `rounds` rounds. Nothing that was stored disappears, and everything that was sent is there at the end."""
    orphans = set()
    stored = set()
    # A test that is ended early still cleans up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        number = 0
        # On a loaded machine a kill often comes before the first block.
        while number < rounds or (len(stored) <= rounds // 4 and number < 20 * rounds):
            one_round(collector, device, ends, dice, orphans)
            now = read_blocks(collector.database)
            check(stored <= now, f"stored blocks are gone: {sorted(stored - now)[:5]}")
            stored = now
            restart(collector, device)
            number += 1
            if number % 100 == 0:
                print(f"{number} rounds, {len(stored)} blocks", flush=True)
        end_all(device, orphans)
        wait_for("an empty spool", lambda: not device.spool())
        now = read_blocks(collector.database)
        check(stored <= now, "stored blocks are gone at the end")
        check_sums(collector)
        states = collector.sql("SELECT state, count(*) AS n FROM sessions GROUP BY state")
        print(f"{len(now)} blocks of sessions {json.dumps(states)}")
        check(len(now) > rounds // 4, "the test stored next to nothing")
    except Failure:
        report_state(collector, device)
        raise
    finally:
        end_all(device, orphans)


def end_party(party):
    if party.process is not None and party.process.poll() is None:
        party.process.kill()
        party.process.wait()


def test(sojourn, arguments):
    seed = int(arguments[0]) if arguments else int(time.time())
    rounds = 1000 if os.environ.get("SJ_LONG") == "1" else 20
    print(f"seed {seed}, {rounds} rounds", flush=True)
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    collector = Collector(sojourn)
    device = Device(sojourn, "victim")
    try:
        enrol(collector, device)
        device.start()
        kill_rounds(collector, device, os.path.join(build, "tests/samples/ends"),
                    random.Random(seed), rounds)
    finally:
        for party in (device, collector):
            end_party(party)


if __name__ == "__main__":
    main(test)
