#!/usr/bin/env python3
"""Checks that stubs touch the stack as deep as the slow path of a record reaches, and as values do. Mono's values
of methods do not count here.

stack_depth.py AGENT HEADER AARCH64_AGENT: the agent's machine code, agent/abi/stub_map.h with SJ_STUB_TOUCHED_BYTES
and SJ_STUB_VALUES_TOUCHED_BYTES, and the agent for AArch64.
"""
import functools
import re
import subprocess
import sys

STUB_BYTES = 152 + 8 + 8 + 15  # the skipped bytes, the pushed tag, the return address, and the alignment of the stack
AARCH64_STUB_BYTES = 16  # the saved frame pointer and link register


# The functions that a function calls through a pointer. Other functions make no such calls.
CALLEES = {"wait_for": ("has_free_chunk", "sj_recorder_claim"), "sj_recorder_judge": ("sj_return_slots_true_address",),
           "record_values": ("sj_recorder_slow",)}  # without Mono's


def functions_of(agent):
    """Returns {name: [bytes that the function pushes or reserves, {(instruction, callee)}, calls through
    pointers]}."""
    found, current = {}, None
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", agent], capture_output=True, text=True, check=True)
    for line in listing.stdout.splitlines():
        if begin := re.match(r"[0-9a-f]+ <(.+)>:$", line):
            current = found[begin[1]] = [0, set(), 0]
        elif current is not None:
            current[0] += 8 * bool(re.search(r"\tpush", line))
            if room := re.search(r"\tlea +-0x([0-9a-f]+)\(%rsp\),%rsp", line):
                current[0] += int(room[1], 16)
            if changed := re.search(r"\t(sub|add) +\$0x([0-9a-f]+),%rsp", line):
                by = int(changed[2], 16)
                by -= (by >> 63) << 64
                current[0] += max(by if changed[1] == "sub" else -by, 0)
            if call := re.search(r"\t(call|jmp) +[0-9a-f]+ <([^+>]+)>", line):
                current[1].add((call[1], call[2]))
            current[2] += bool(re.search(r"\tcall +\*", line))
    return found


def functions_of_aarch64(agent):
    """Returns the same as functions_of for AArch64 code. A call pushes nothing there."""
    found, current = {}, None
    listing = subprocess.run(["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", agent], capture_output=True,
                             text=True, check=True)
    for line in listing.stdout.splitlines():
        if begin := re.match(r"[0-9a-f]+ <(.+)>:$", line):
            current = found[begin[1]] = [0, set(), 0]
        elif current is not None:
            if pushed := re.search(r"\tst[pr]\t.*\[sp, #-(\d+)\]!", line):
                current[0] += int(pushed[1])
            if room := re.search(r"\tsub\tsp, sp, #0x([0-9a-f]+)(, lsl #12)?", line):
                current[0] += int(room[1], 16) << (12 if room[2] else 0)
            if call := re.search(r"\t(?:bl|b)\t[0-9a-f]+ <([^+>]+)>", line):
                current[1].add(("call", call[1]))
            current[2] += bool(re.search(r"\tblr\t", line))
    return found


def check_depths(functions, stub_bytes, call_bytes, text):
    """Checks the depths of both entries against the header's text. A call pushes `call_bytes`."""
    @functools.cache
    def depth(name):
        own, calls, pointers = functions.get(name, (0, (), 0))
        known = CALLEES.get(name, ())
        if bool(pointers) != bool(known) or not all(callee in functions for callee in known):
            sys.exit(f"FAILED: {name} calls others through a pointer than {known}")
        calls = {*calls, *(("call", callee) for callee in known)}
        return own + max((depth(callee) + call_bytes * (kind == "call") for kind, callee in calls if callee != name), default=0)

    for entry, name in (("sj_arch_slow_entry", "SJ_STUB_TOUCHED_BYTES"), ("sj_arch_values_entry", "SJ_STUB_VALUES_TOUCHED_BYTES")):
        touched = int(re.search(rf"{name} = (\d+)", text)[1])
        needed = depth(entry) + stub_bytes
        if not 512 < needed <= touched:
            sys.exit(f"FAILED: {entry} takes up to {needed} bytes of stack, and stubs touch {touched}")
        print(f"{entry}: {needed} of {touched} bytes")


def main():
    with open(sys.argv[2], encoding="utf-8") as header:
        text = header.read()
    check_depths(functions_of(sys.argv[1]), STUB_BYTES, 8, text)
    check_depths(functions_of_aarch64(sys.argv[3]), AARCH64_STUB_BYTES, 0, text)


main()
