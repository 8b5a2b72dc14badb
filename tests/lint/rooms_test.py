#!/usr/bin/env python3
"""The check of rooms fails on an include that leads upwards, in a circle or out of the program."""
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import lint


class Rooms(unittest.TestCase):
    def check(self, files):
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(text)
            with self.assertRaises(SystemExit) as ended:
                lint.check_rooms(None, root=root)
            return ended.exception.code

    def test_downwards_is_allowed(self):
        self.assertEqual(0, self.check({
            "proto/base/status.h": "",
            "agent/drain/drain.c": '#include "proto/base/status.h"\n'}))

    def test_upwards_is_refused(self):
        self.assertEqual(1, self.check({
            "agent/drain/drain.h": "",
            "agent/policy/policy.c": '#include "agent/drain/drain.h"\n'}))

    def test_agent_does_not_use_the_collector(self):
        self.assertEqual(1, self.check({
            "collector-server/store/store.h": "",
            "agent/daemon/daemon.c": '#  include "collector-server/store/store.h"\n'}))

    def test_same_floor_is_refused(self):
        self.assertEqual(1, self.check({
            "agent/ptrace/tracee.h": "",
            "agent/policy/policy.c": '#include "agent/ptrace/tracee.h"\n'}))

    def test_traced_program_uses_its_own_headers_only(self):
        self.assertEqual(1, self.check({
            "proto/wire/frame.h": "",
            "agent/inproc/core/agent.c": '#include "proto/wire/frame.h"\n'}))

    def test_unknown_room_is_refused(self):
        self.assertEqual(1, self.check({"agent/shed/shed.c": ""}))


if __name__ == "__main__":
    unittest.main()
