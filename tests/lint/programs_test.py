#!/usr/bin/env python3
"""The check of programs in strings finds programs, and no other strings of tests."""
import sys
import unittest

sys.dont_write_bytecode = True
from programs import program_problems

PROGRAMS = ("int main(void) { return 0; }", "#include <stdio.h>\n", "__attribute__((noipa)) int f(int);", "int f(int a)\n{\n",
            "class Large {\n", "public static class Shapes {", "using System; using System.Text;", "fn main() {", "package main\n",
            ".text\nnop\n", "\nimport os, sys\nprint(os.getcwd())\n", "def work():\n    pass\n", "failed = 0\nfor i in range(20):\n    f(i)\n",
            "sub f { 1 }\nf(2);", "function f() {\n}", "ls\nfor i in $(seq 3); do\n    ls\ndone")
OTHERS = ("SELECT name\nFROM main", "while (1) { $n++ }", "import json; json.loads('1')", "print 1 for 1 .. 3", "ready\ndone\n",
          "for all: of them", "{\"for\": 1}", "int (unsigned)", "struct { int a; }", "no class is like this one\n")


def python_with(text):
    return f"\"\"\"{{}} int main(void) {{}}: a description is no program.\"\"\"\nPROGRAM = {text!r}\n"


class Programs(unittest.TestCase):
    def test_programs_are_found(self):
        for text in PROGRAMS:
            self.assertEqual(1, len(program_problems("a.py", python_with(text))), text)
        self.assertEqual(1, len(program_problems("a.py", python_with(b"int main(void) {}"))))
        self.assertEqual(1, len(program_problems("a.py", "number = 3\nPART = f'int main(void) {{ return {number}; }}'\n")))

    def test_other_strings_are_not_programs(self):
        for text in OTHERS:
            self.assertEqual([], program_problems("a.py", python_with(text)), text)

    def test_other_languages_are_read_by_line(self):
        self.assertEqual(2, len(program_problems("a.sh", "cat >a.c <<'C'\n#include <stdio.h>\nint main(void) {\nC\n")))
        self.assertEqual([], program_problems("a.mjs", "for (const name of names) {\nimport a from 'b'\n}\n"))


if __name__ == "__main__":
    unittest.main()
