"""Reads callgrind's counts by the address of the callee. Symbols are not needed, so stripped programs are counted,
too."""
import collections
import re
import subprocess

OPTIONS = ["--tool=callgrind", "--dump-instr=yes", "--compress-pos=no", "--collect-jumps=yes"]
OBJECT = re.compile(r"(c?ob)=\((\d+)\)(.*)")
NAME = re.compile(r"(c?fn)=\((\d+)\)(.*)")
CALLS = re.compile(r"calls=(\d+) 0x([0-9a-f]+)")
JUMP = re.compile(r"(?:jump|jcnd)=(\d+)(?:/\d+)? 0x([0-9a-f]+)")
PLACE = re.compile(r"0x([0-9a-f]+) ")


def read_calls(path, program, sizes, calls, self_jumps):
    """Adds up the calls of the functions of `program`, {offset: bytes}. Callgrind counts a jump as a call only if
    symbols show that it leaves the function. So a jump from another function to a first byte counts as a call, too.
    Jumps from the function to itself are kept apart, because they are tail calls of itself or loops."""
    names, own, callee, jump = {}, None, None, None
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            match = OBJECT.match(line)
            if match:
                # Callgrind names an object once and refers to it by its number afterwards.
                names.setdefault(match[2], match[3].strip())
                callee = names[match[2]]
                own = callee if match[1] == "ob" else own
                continue
            match = CALLS.match(line)
            if match:
                if callee == program:
                    calls[int(match[2], 16)] += int(match[1])
                callee = own
                continue
            match = JUMP.match(line)
            if match:
                jump = int(match[1]), int(match[2], 16)
                continue
            match = jump and PLACE.match(line)
            if match:
                count, target = jump
                jump = None
                if own == program and target in sizes:
                    is_own = 0 <= int(match[1], 16) - target < sizes[target]
                    (self_jumps if is_own else calls)[target] += count


def counters():
    return collections.Counter(), collections.Counter()


def count_by_name(command, given, output):
    """Returns the calls of the functions of a program with symbols, by name, as callgrind_annotate prints them."""
    with open(given, encoding="utf-8") as file:
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", *command],
                       stdin=file, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
                       timeout=900)
    names, objects, counts = {}, {}, collections.Counter()
    own, callee, callee_object = None, None, None
    with open(output, encoding="utf-8", errors="replace") as file:
        for line in file:
            match = OBJECT.match(line)
            if match:
                objects.setdefault(match[2], match[3].strip())
                callee_object = objects[match[2]]
                own = callee_object if match[1] == "ob" else own
                continue
            match = NAME.match(line)
            if match:
                names.setdefault(match[2], match[3].strip().split("'")[0])
                callee = names[match[2]] if match[1] == "cfn" else callee
            elif line.startswith("calls="):
                if callee_object == command[0]:
                    counts[callee] += int(line[6:].split()[0])
                callee_object = own
    return counts
