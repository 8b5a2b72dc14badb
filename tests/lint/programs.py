"""Finds programs in the strings of tests. They belong in tests/samples, where they can be read, formatted and run."""
import ast
import re

# Patterns of programs in C, C++, assembly, Java, C#, Rust and Go, and of scripts with several lines.
COMPILED = re.compile(r"^\s*#\s*include\b|__attribute__\(\(|\b(?:int|void|long|double|char|unsigned) \*?\w+\([^;{}()]*\)\s*\{"
                      r"|\bstatic (?:void|int) [Mm]ain\(|\b(?:public|static) class \w|^\s*class \w+[\w<>: ]*\{|^using [A-Z][\w.]*;"
                      r"|\bfn \w+\([^;{}()]*\).*\{|^package main$|^\s*\.(?:text|globl|rept)\b", re.MULTILINE)
SCRIPT = re.compile(r"^(?:import [a-z]|from \w+ import |\s*def \w+\(.*:$|\s*sub \w+ ?\{|\s*function \w+ ?\("
                    r"|\s*(?:for|while|if|elif|try)\b.*(?::|\{|; ?do)$|for .*: \w)", re.MULTILINE)
# Tests that generate their programs, which therefore cannot be in a file.
GENERATED = {
    "tests/bench/cost_line.py": "300 functions for a compiler to read",
    "tests/bench/many_paths.py": "as many functions as it is told",
    "tests/bench/mono_bench.py": "as many methods as it is told",
    "tests/system/record/mono_programs.py": "as many classes as it is told",
    "tests/system/record/value_debug_data.py": "types within types in three languages",
    "tests/system/record/value_languages.py": "functions of random parameters",
    "tests/system/record/value_limits.py": "as many functions and parameters as there can be rules",
    "tests/system/record/value_signatures.py": "functions of random parameters",
    "tests/system/record/value_types.py": "functions of random parameters",
}


def documentation(tree):
    """Returns the ids of the docstrings of a module, its classes and functions."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return {id(node.body[0].value) for node in ast.walk(tree)
            if isinstance(node, kinds) and node.body and isinstance(node.body[0], ast.Expr)}


def is_program(text):
    return COMPILED.search(text) is not None or ("\n" in text.strip() and SCRIPT.search(text) is not None)


def strings_of(text):
    """Yields (line, string) of each string in the text of a Python file."""
    tree = ast.parse(text)
    described = documentation(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)) and id(node) not in described:
            yield node.lineno, node.value if isinstance(node.value, str) else node.value.decode("latin-1")


def program_problems(name, text):
    """Returns the problems of one test: in the strings of Python, and in any line of another language."""
    parts = strings_of(text) if name.endswith(".py") else enumerate(text.splitlines(), 1)
    found = COMPILED.search if not name.endswith(".py") else is_program
    return [f"{name}:{line}: a program in a string, for tests/samples: {part.strip().splitlines()[0][:60]}"
            for line, part in parts if found(part)]
