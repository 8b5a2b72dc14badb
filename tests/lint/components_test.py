#!/usr/bin/env python3
"""Tests the checks of layers, circles and locks.

They must fail on an include that leads upwards or out of the program, on files that include or call each other,
and on a lock that a fork may leave locked.
"""
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import lint
import reach


class Components(unittest.TestCase):
    def check(self, files, check=lint.check_components):
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(text)
            with self.assertRaises(SystemExit) as ended:
                check(None, root=root)
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

    def test_internal_headers_stay_inside(self):
        self.assertEqual(1, self.check({
            "agent/inproc/recorder/internal.h": "",
            "agent/inproc/mono/values.c": '#include "agent/inproc/recorder/internal.h"\n'}))
        self.assertEqual(0, self.check({
            "agent/inproc/recorder/internal.h": "",
            "agent/inproc/recorder/slow.c": '#include "agent/inproc/recorder/internal.h"\n'}))

    def test_machines_are_named_in_their_folders_only(self):
        text = "#if defined(__aarch64__)\n#endif\n"
        self.assertEqual(0, self.check({"agent/planner/arch/aarch64/machine.c": text}))
        self.assertEqual(1, self.check({"agent/planner/machine.c": text}))

    def test_lists_of_sources_name_no_machine(self):
        self.assertEqual(0, self.check({"agent/planner/CMakeLists.txt": "sj_arch_sources(found . *)\n"},
                                       lint.check_machines))
        self.assertEqual(1, self.check({"agent/planner/CMakeLists.txt": "sj_library(a arch/aarch64/a.c)\n"},
                                       lint.check_machines))

    def test_unknown_component_is_refused(self):
        self.assertEqual(1, self.check({"agent/shed/shed.c": ""}))


class Circles(unittest.TestCase):
    def compile(self, build, name, text):
        folder = os.path.join(build, "agent", "drain", "CMakeFiles", "sj_drain.dir")
        os.makedirs(folder, exist_ok=True)
        subprocess.run([lint.tool("gcc", "cc"), "-c", "-xc", "-", "-o", os.path.join(folder, name + ".o")],
                       input=text, text=True, check=True)

    def check(self, headers, sources):
        with tempfile.TemporaryDirectory() as root:
            for name, text in headers.items():
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(text)
            for name, text in sources.items():
                self.compile(os.path.join(root, "build"), name, text)
            with self.assertRaises(SystemExit) as ended:
                lint.check_circles(os.path.join(root, "build"), root=root)
            return ended.exception.code

    line = {"agent/drain/a.h": '#include "agent/drain/b.h"\n', "agent/drain/b.h": ""}
    calls = {"a.c": "int b(void); int a(void) { return b(); }\n", "b.c": "int b(void) { return 0; }\n"}

    def test_one_way_is_allowed(self):
        self.assertEqual(0, self.check(self.line, self.calls))

    def test_headers_that_include_each_other_are_refused(self):
        circle = {**self.line, "agent/drain/b.h": '#include "agent/drain/a.h"\n'}
        self.assertEqual(1, self.check(circle, self.calls))

    def test_files_that_call_each_other_are_refused(self):
        circle = {**self.calls, "b.c": "int a(void); int b(void) { return a(); }\n"}
        self.assertEqual(1, self.check(self.line, circle))

    def test_a_table_may_name_rows_that_use_its_file(self):
        table = {"a.c": "extern int row; int *rows[] = {&row}; int a(void) { return 0; }\n",
                 "b.c": "int a(void); int row; int b(void) { return a(); }\n"}
        self.assertEqual(0, self.check(self.line, table))


class Locks(unittest.TestCase):
    handler = "static void after(void)\n{\n    %s\n}\n"
    plain = "void plain(void)\n{\n    memcpy(a, b, 1);\n}\n"
    locking = "void locking(void)\n{\n    dl_iterate_phdr(0, 0); /* plain() */\n}\n"

    def check(self, body, *others):
        texts = {"a.c": self.handler % body, **{f"{i}.c": text for i, text in enumerate(others)}}
        return lint.find_locks(reach.Sources(texts), ["after"])

    def test_code_without_a_lock_is_allowed(self):
        self.assertEqual([], self.check("plain();", self.plain, self.locking))

    def test_a_lock_in_a_called_function_is_found(self):
        self.assertEqual(["dl_iterate_phdr may take a lock: locking < after"],
                         self.check("locking();", self.plain, self.locking))

    def test_a_lock_is_found_through_a_row_of_a_table_and_a_macro(self):
        row = "const monitor row = {.name = x, .after_fork = &locking};\n"
        self.assertEqual(1, len(self.check("rows[0]->after_fork();", self.locking, row)))
        self.assertEqual(0, len(self.check("rows[0]->name();", self.locking, row)))
        self.assertEqual(1, len(self.check("EACH(x);", self.locking, "#define EACH(x) \\\n    locking(x)\n")))

    def test_an_own_lock_has_to_be_freed(self):
        lock = "static sj_owner_lock own;\n"
        for freed, count in (("sj_owner_lock_free(&own);", 0), ("", 1)):
            texts = {"a.c": lock + self.handler % freed}
            self.assertEqual(count, len(lint.find_kept_locks(texts, reach.Sources(texts), "after")))

    def test_a_walk_that_does_not_wait_for_forks_is_found(self):
        self.assertEqual(["a.c:3: use sj_module_walk, which waits for forks"],
                         lint.find_raw_walks({"a.c": self.locking, "b.c": "/* dl_iterate_phdr */\n"}))
        self.assertEqual([], lint.find_raw_walks({"agent/inproc/hooks/module_walk.c": self.locking}))

    def test_page_sizes_are_asked_for_in_one_place(self):
        for line in ("enum { PAGE = 4096 };", "enum { A = 1, PAGE_BYTES = 0x1000 };", "at & ~UINT64_C(0xfff);",
                     "at &= ~(uint64_t)4095;", "sysconf(_SC_PAGESIZE);", "getauxval(AT_PAGESZ);",
                     "sj_sys_unmap(page, 4096);", "enum { FORK_PAGE_BYTES = 4096 };"):
            self.assertEqual(["agent/a.c:1: names a page size: use agent/abi/page.h"],
                             lint.find_page_sizes({"agent/a.c": line}), line)
        for line in ("enum { HUGE_PAGE = 1 << 21 };", "enum { CHANGES_PER_PAGE = 4 };", "char path[4096];",
                     "word >> 10 & 0xfff;", "/* PAGE = 4096 */", "page & ~(sj_page_bytes() - 1);"):
            self.assertEqual([], lint.find_page_sizes({"agent/a.c": line}), line)
        self.assertEqual([], lint.find_page_sizes({"agent/abi/page.c": "getauxval(AT_PAGESZ);"}))


if __name__ == "__main__":
    unittest.main()
