#!/usr/bin/env python3
"""kill -9 of app, recorder, daemon and collector in random order (fleet_kill.py), while hostile peers
(hostile_peers.py) attack the collector's addresses. At the end the collector has exactly what the good device sent,
and no other data.

hostile_kill.py BUILD_FOLDER [SEED [ROUNDS]]: a few rounds, 1,000 with SJ_LONG=1.
"""
import os
import random
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from fleet_kill import end_party, kill_rounds
from fleet_testing import Collector, Device, device_id, enrol, free_port
from hostile_peers import Attack
from sojourn_testing import check, main

ROUNDS = 1000 if os.environ.get("SJ_LONG") else 8
ATTACKERS = 3


def sessions_of(lab):
    return [row["uuid"] for row in lab.sql("SELECT lower(hex(uuid)) AS uuid FROM sessions")]


def test(sojourn, arguments):
    seed = int(arguments[0]) if arguments else random.randrange(1 << 30)
    rounds = int(arguments[1]) if len(arguments) > 1 else ROUNDS
    print(f"seed {seed}, {rounds} rounds", flush=True)
    build = os.path.dirname(os.path.dirname(os.path.abspath(sojourn.program)))
    clear, http, ipc = free_port(), free_port(), sojourn.path("edge.ipc")
    lab = Collector(sojourn, "--listen", f"tcp://127.0.0.1:{clear}", "--listen", f"ipc://{ipc}",
                    "--http", f"127.0.0.1:{http}")
    device, insider = Device(sojourn, "victim"), Device(sojourn, "insider")
    attack = Attack(lab.port, clear, ipc, http, seed)
    ends = os.path.join(build, "tests/samples/ends")
    dice = random.Random(seed)
    try:
        enrol(lab, device)
        token = enrol(lab, insider)
        attack.insider = (device_id(lab, "insider"), token.encode())
        attack.victim = device_id(lab, "victim")
        device.start()
        kill_rounds(lab, device, ends, dice, min(rounds, 3))
        attack.sessions = sessions_of(lab)  # the attackers name these sessions in false frames
        attack.start(ATTACKERS)
        kill_rounds(lab, device, ends, dice, rounds)
        attack.stop()
        print(f"{sum(attack.counts.values())} attacks {attack.counts}")
        check(not attack.believed, f"{len(attack.believed)} lies about another's session were taken")
        check(lab.sql("SELECT 1 FROM sessions WHERE name = 'stolen'") == [], "a session was renamed")
        check(lab.sql("SELECT count(*) AS n FROM devices")[0]["n"] == 2, "a stranger has made a device")
        lab.stop(signal.SIGTERM)
        check(lab.process.returncode == 0, f"the collector ended with {lab.process.returncode}")
    finally:
        attack.stop()
        for party in (device, lab):
            end_party(party)


if __name__ == "__main__":
    main(test)
