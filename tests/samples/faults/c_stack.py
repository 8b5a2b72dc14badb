"""Writes what makes the stack of programs with gnulib's c-stack overflow: `nested` for grep, which has a
handler of its own, and `nested.m4` for m4, which has libsigsegv's."""
with open("nested", "w", encoding="ascii") as file:
    file.write("(" * 200000 + "x" + ")" * 200000)
with open("nested.m4", "w", encoding="ascii") as file:
    file.write("define(`f', `$1')\n" + "f(" * 300000)
