"""Finds the functions of the agent that a thread can reach, from the text of the sources.

A function or macro is reached wherever its name is used. If a variable or field holds it, it is reached where
that is called. The folders of both machines form one graph. Code that a condition excludes is reached, too.
"""
import os
import re

WORD = re.compile(r"(->|\.)?\s*\b([A-Za-z_]\w*)\b(\s*\()?")
NO_CALL = re.compile(r"(if|while|for|switch|return|sizeof|offsetof|defined|typeof|volatile|asm|void|bool|"
                     r"tls_model|_\w+|atomic_\w+|u?int\d+_t|U?INT\d+_C|[A-Z][A-Z0-9_]*|ElfW)$")


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def functions_of(lines):
    """Yields (name, is_static, body) of each function: from a line with only `{` to a line with only `}`."""
    start = None
    for number, line in enumerate(lines):
        if line == "{" and start is None:
            start = number
        elif line == "}" and start is not None:
            head = start
            while head > 0 and lines[head - 1].strip() and not re.search(r"[;}]$|^#", lines[head - 1]):
                head -= 1
            heading = " ".join(lines[head:start])
            names = re.findall(r"(\w+)\s*\(", re.sub(r"__attribute__\s*\(\(.*?\)\)", "", heading))
            if names:
                yield names[0], "static" in heading, heading + "\n".join(lines[start + 1:number])
            start = None


class Sources:
    def __init__(self, texts):
        """`texts` is {file: its text}."""
        self.functions, self.given = {}, {}
        for name, text in texts.items():
            text = without_comments(text)
            found = list(functions_of(text.splitlines()))
            found += [(macro, False, body) for macro, body in
                      re.findall(r"^#\s*define (\w+)\(((?:.*\\\n)*.*)", text, re.MULTILINE)]
            for function, is_static, body in found:
                is_own = is_static and name.endswith(".c")
                self.functions.setdefault(function, []).append((name, is_own, body))
            for place, value in re.findall(r"\b(\w+)\s*=\s*&?([A-Za-z_]\w*)\b(?!\s*\()", text):
                self.given.setdefault(place, set()).add((name, value))

    def named(self, file, function):
        found = self.functions.get(function, ())
        own = [each for each in found if each[0] == file]
        return own or [each for each in found if not each[1]]

    def uses(self, file, body):
        """Returns (functions that a body uses, other names that it calls)."""
        used, foreign = [], set()
        for member, word, call in WORD.findall(body):
            found = [] if member else [(word, each) for each in self.named(file, word)]
            if call and not found:
                found = [(value, each) for home, value in self.given.get(word, ())
                         for each in self.named(home, value)]
                if not member and not found and not NO_CALL.match(word) and f"(*{word})" not in body:
                    foreign.add(word)
            used += found
        return used, foreign

    def reach(self, roots):
        """Returns ({(file, function): its first caller}, {foreign function: its first caller}). A root has None."""
        came_from, foreign = {}, {}
        waiting = [(root, each, None) for root in roots for each in self.functions[root]]
        while waiting:
            function, (file, _, body), source = waiting.pop()
            place = (file, function)
            if place in came_from:
                continue
            came_from[place] = source
            used, called = self.uses(file, body)
            waiting += [(name, each, place) for name, each in used]
            for name in called:
                foreign.setdefault(name, place)
        return came_from, foreign


def way_to(came_from, place):
    names = []
    while place is not None:
        names.append(place[1])
        place = came_from[place]
    return " < ".join(names)


def read_agent(root):
    texts = {}
    for top in ("agent/inproc", "agent/abi", "agent/include", "proto/base", "proto/block"):
        for folder, _, files in os.walk(os.path.join(root, top)):
            for name in files:
                if name.endswith((".c", ".h", ".S")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        texts[os.path.relpath(path, root)] = file.read()
    return texts
