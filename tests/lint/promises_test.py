#!/usr/bin/env python3
"""The checks of promises, of labels and of ports and names find each of their problems."""
import sys
import unittest

sys.dont_write_bytecode = True
import lint

LABELS = {"system.short": {"system", "default", "all"}, "system.long": {"system", "all"},
          "agent.unit": {"unit", "quick", "default", "all"}}


class Promises(unittest.TestCase):
    def problems(self, *rows):
        return lint.promise_problems("\n".join(f"| {row} |" for row in rows), LABELS)

    def test_a_default_test_proves(self):
        self.assertEqual([], self.problems("A-01 | It runs. | system.short", "A-02 | It runs. | system.long, agent.unit"))

    def test_a_bench_needs_no_test(self):
        self.assertEqual([], self.problems("A-01 | It is fast. | tests/bench/fast.py"))

    def test_long_proof_is_said(self):
        self.assertEqual(1, len(self.problems("A-01 | It runs. | system.long")))
        self.assertEqual([], self.problems("A-01 | It runs. | system.long (SJ_LONG=1)"))

    def test_unknown_tests_and_equal_ids_are_found(self):
        self.assertEqual(1, len(self.problems("A-01 | It runs. | system.gone, system.short")))
        self.assertEqual(1, len(self.problems("A-01 | It runs. | system.short", "A-01 | It walks. | system.short")))
        self.assertEqual(1, len(self.problems("A-01, 02 | It runs. | system.short", "A-02 | It walks. | system.short")))
        self.assertEqual([], self.problems("A-01, 02, B-01 | It runs. | system.short", "B-02 | It walks. | system.short"))
        self.assertEqual(1, len(self.problems()))

    def test_a_promise_is_one_short_sentence(self):
        self.assertEqual([], self.problems(f"A-01 | The{' word' * 24}. | system.short"))
        self.assertEqual(1, len(self.problems(f"A-01 | The{' word' * 25}. | system.short")))
        self.assertEqual(1, len(self.problems("A-01 | It runs | system.short")))
        self.assertEqual(1, len(self.problems("A-01 | it runs. | system.short")))

    def test_tests_without_sets_are_found(self):
        self.assertEqual([], lint.set_problems(LABELS))
        self.assertEqual(2, len(lint.set_problems({"a": {"system"}, "b": {"all"}})))


class Places(unittest.TestCase):
    def count(self, *lines):
        return len(lint.place_problems("a.py", lines))

    def test_shared_places_are_found(self):
        for line in ('listen("tcp://127.0.0.1:7654")', 'server.bind(("", 8080))', "htons(8080)", "sojourn ui --port 8439",
                     "port = 7654", 'open("/tmp/report.txt")', "> /var/tmp/log", 'shm_open("/ring", 0)',
                     '"/dev/shm/ring"'):
            self.assertEqual(1, self.count(line), line)

    def test_own_places_are_allowed(self):
        self.assertEqual(0, self.count(
            'server.bind(("127.0.0.1", 0))', "tcp://127.0.0.1:0", "tcp://127.0.0.1:1", f"tcp://127.0.0.1:{'{port}'}",
            '"/tmp/sj-XXXXXX"', 'snprintf(path, size, "/tmp/sj.%d", getpid())', "--port 0", "listen(fd, 8)"))


if __name__ == "__main__":
    unittest.main()
