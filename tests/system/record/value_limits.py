#!/usr/bin/env python3
"""Limits of values: 256 rules about as many functions, 16 values of one, and texts and buffers of up to 4 KiB in
any memory. A value takes one system call at most, and none where nothing can fault. Values of a deep recursion that
do not fit are counted. Calls that a filter drops take no slot.

value_limits.py BUILD_FOLDER
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sojourn_testing import PATIENCE_S, check, check_accounts, main, sample_text

CALLS = 50
TEXTS = sample_text("values/texts.c")


def write_policy(sojourn, values):
    path = sojourn.path("policy.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"policy": 1, "values": values}, file)
    return path


def build(sojourn, name, source, *options):
    program = sojourn.path(name)
    subprocess.run(["gcc", "-O1", "-w", "-D_GNU_SOURCE", *options, "-x", "c", "-", "-pthread", "-o", program], input=source,
                   text=True, check=True)
    return program


def record(sojourn, program, *options):
    database = sojourn.path("limits.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    done, _ = sojourn.record([program], database, ["--block-ms", "10000", *options], text=True)
    check(done.returncode == 0, f"{done.stderr}")
    check_accounts(sojourn, database)
    return database, done.stdout


def values(sojourn, database, name):
    return [(row["position"], row["value"], row["note"] or "") for row in sojourn.sql(database, f"""
        SELECT position, value, note FROM arguments JOIN calls USING (session_id, call_id)
        JOIN functions USING (function_id) WHERE name = '{name}' ORDER BY call_id, position""")]


def test_rules(sojourn):
    """Each of 256 functions has a rule with conditions. A function without a rule has no values."""
    names = [f"ruled_{i:03}" for i in range(257)]
    source = "".join(f"__attribute__((noipa)) int {name}(int a) {{ return a + {i}; }}\n" for i, name in enumerate(names))
    source += f"int main(void) {{ int sum = 0; for (int i = 0; i < 3; i++) {{ {''.join(f'sum += {n}(i);' for n in names)} }} return sum == 0; }}"
    program = build(sojourn, "ruled", source, "-O0")
    rules = [{"function": name, "argument": 1, "as": "int", "name": f"rule {name}",
              "when": [{"result": True, "as": "int", "op": ">=", "value": i + 1}]} for i, name in enumerate(names[:256])]
    database, _ = record(sojourn, program, "--policy", write_policy(sojourn, rules))
    found = [(row["rule"], row["value"]) for row in
             sojourn.sql(database, "SELECT rule, value FROM rule_hits ORDER BY rule, value")]
    check(found == [(f"rule {name}", i) for name in names[:256] for i in (1, 2)], f"{len(found)}: {found[:5]}")
    done = sojourn.run(["policy", "check", write_policy(sojourn, rules + [{**rules[0], "function": names[256]}])],
                       capture_output=True, text=True)
    check(done.returncode != 0 and "at most 256" in done.stderr, f"{done}")


def test_sixteen(sojourn):
    """Records all sixteen values of one function, in registers and on the stack, by signature and by debug data."""
    kinds = ["int", "double"] * 7 + ["int"]
    program = build(sojourn, "sixteen", f"""
        __attribute__((noipa)) int sixteen({', '.join(f'{kind} a{i}' for i, kind in enumerate(kinds))}) {{ return (int)a14 + (int)a13; }}
        int main(void) {{ return sixteen({', '.join(f'{i + 0.5 if kind == "double" else i}' for i, kind in enumerate(kinds))}) == 0; }}""", "-g")
    rule = f"sixteen({', '.join(f'a{i}:{kind}' for i, kind in enumerate(kinds))}) -> int"
    expected = [(0, 27, "")] + [(i + 1, i + 0.5 if kind == "double" else i, "") for i, kind in enumerate(kinds)]
    for form in (rule, "sixteen"):
        database, _ = record(sojourn, program, "--value", form)
        found = values(sojourn, database, "sixteen")
        check(found == expected, f"{form}: {found}")


def test_crowded(sojourn):
    """Rules that are written differently share a function's slots. The rule that does not fit is reported."""
    program, database = sojourn.path("sixteen"), sojourn.path("crowded.db")
    kinds = ["int", "double"] * 7 + ["int"]
    rules = [{"function": "sixteen", "signature": f"({', '.join(f'a{i}:{kind}' for i, kind in enumerate(kinds))}) -> int"}]
    rules += [{"function": "sixtee*", "argument": number, "as": "hex", "name": f"bits {number}"} for number in range(1, 6)]
    done, _ = sojourn.record([program], database, ["--policy", write_policy(sojourn, rules)], text=True)
    said = "rule 'bits 5': other rules use the space for values of 1 function"
    check(done.returncode == 0 and said in done.stderr and "bits 4" not in done.stderr, f"{done}")
    check(len(values(sojourn, database, "sixteen")) == 20, f"{values(sojourn, database, 'sixteen')}")
    kept = sojourn.sql(database, "SELECT not_applied FROM policies")[0]["not_applied"]
    check(said in kept, f"not_applied: {kept}")


def text_of(length):
    return "".join(chr(ord("a") + (length + i) % 26) for i in range(length))


def test_texts(sojourn):
    program = build(sojourn, "texts", TEXTS)
    lengths = [0, 1, 63, 64, 65, 255, 256, 257, 1000, 4095, 4096, 5000]
    for limit in (64, 256, 4096):
        size = f"[{limit}]"
        rules = [f"on_stack(text:str{size})", f"on_heap(text:str{size})", f"at_end(text:str{size})",
                 "literal(text:str)", f"put(fd:int, data:bytes[count,{limit}], count:ulong) -> long",
                 f"apart(count:uint, _:double, other:int, data:str[count,{limit}]) -> long"]
        database, _ = record(sojourn, program, *(part for rule in rules for part in ("--value", rule)))
        cut = [(text_of(length)[:limit], "cut" if length >= limit else "") for length in lengths]
        counted = [(text_of(length)[:limit], "cut" if length > limit else "") for length in lengths]
        for name, position, expected in (("on_stack", 1, cut), ("on_heap", 1, cut), ("apart", 4, counted)):
            found = [row[1:] for row in values(sojourn, database, name) if row[0] == position]
            check(found == expected, f"{name}, {limit}: {[(len(v or ''), n) for v, n in found]}")
        found = values(sojourn, database, "put")
        data = [row[1:] for row in found if row[0] == 2]
        check(data == [("x" * 50, "cut"), (None, "null"), *counted], f"put, {limit}: {data[:3]}")
        check([row[1] for row in found if row[0] == 3] == [100, 9, *lengths], "the length is a value, too")
        found = [row[1:] for row in values(sojourn, database, "at_end")]
        check(found == [("x" * min(100, limit), "cut"), (None, "unreadable"), (None, "null")], f"at_end: {found}")
    policy = write_policy(sojourn, [{"function": "on_heap", "argument": 1, "as": "string", "text_bytes": 300,
                                     "when": {"op": "==", "value": "*" + text_of(257)[-20:]}}])
    database, _ = record(sojourn, program, "--policy", policy)
    hits = [row["value"] for row in sojourn.sql(database, "SELECT value FROM rule_hits")]
    check(hits == [text_of(257)], f"a condition on a long text: {hits}")
    check_calls(sojourn, program)


def check_calls(sojourn, program):
    """The agent makes one system call for each text on the heap, and none for literals."""
    trace = sojourn.path("trace")
    options = ["--value", "on_heap(text:str[4096])", "--value", "literal(text:str)"]
    subprocess.run(["strace", "-f", "-qq", "-e", "trace=process_vm_readv", "-o", trace, sojourn.program, "record", "-q",
                    "-o", sojourn.path("traced.db"), *options, "--", program, "counted"], env=sojourn.environment,
                   check=True, timeout=PATIENCE_S)
    with open(trace, encoding="utf-8") as file:
        reads = [line for line in file if "process_vm_readv" in line and "x" * 20 in line]
    check(len(reads) == CALLS, f"{len(reads)} reads of {CALLS} texts: {reads[:2]}")


DEEP = sample_text("values/deep.c")
KEPT_BUFFERS, LATE_VALUES = 4096, 65536  # buffers that a process keeps, and values that one stack keeps for its exits


def record_deep(sojourn, program, what, depth, *options):
    """Returns the values of the calls, the number reported as lost, and the messages."""
    database = sojourn.path("deep.db")
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(database + suffix):
            os.unlink(database + suffix)
    done, told = sojourn.record([program, what, str(depth)], database, ["--block-ms", "10000", *options], text=True)
    check(done.returncode == 0 and told["lost_calls"] == 0, f"{done}, {told}")
    check_accounts(sojourn, database)
    check((re.search(r"lost \d+ values? of calls", done.stderr) is not None) == (told["lost_values"] != 0),
          f"{told['lost_values']} lost, said: {done.stderr}")
    rows = sojourn.sql(database, "SELECT call_id, position, value, note FROM arguments JOIN calls USING (session_id, call_id) "
                                 "ORDER BY call_id, position DESC")
    return rows, told["lost_values"]


def test_lost(sojourn):
    """If more calls are open than the limit, their values are lost, and each loss is counted."""
    program = build(sojourn, "deep", DEEP)
    rule = "deep_fill(buffer:bytes[result], depth:int) -> long"
    rows, lost = record_deep(sojourn, program, "fill", 3 * KEPT_BUFFERS, "--value", rule)
    depths = {row["call_id"]: row["value"] for row in rows if row["position"] == 2}
    buffers = {row["call_id"]: (row["value"], row["note"]) for row in rows if row["position"] == 1}
    gone = [call for call, (_, note) in buffers.items() if note == "unreadable"]
    wrong = [call for call, (text, note) in buffers.items() if note is None and text != f"{depths[call]:07d}"]
    check(len(buffers) == len(depths) == 3 * KEPT_BUFFERS and not wrong, f"{len(buffers)} buffers, wrong: {wrong[:5]}")
    check(len(gone) == lost >= 2 * KEPT_BUFFERS, f"{len(gone)} are not there, {lost} are said to be lost")
    _, lost = record_deep(sojourn, program, "fill", 1, "--value", rule)
    check(lost == 0, f"of one call {lost} are said to be lost")
    policy = write_policy(sojourn, [{"name": "late", "function": "deep_count", "argument": 1, "as": "int",
                                     "when": [{"result": True, "as": "int", "op": ">", "value": 0}]}])
    rows, lost = record_deep(sojourn, program, "count", LATE_VALUES + 1000, "--policy", policy)
    check((len(rows), lost) == (LATE_VALUES, 1000), f"{len(rows)} values wait for the exit, {lost} lost")


FILTERED = sample_text("values/filtered.c")


def test_filtered(sojourn):
    """A filter drops short calls. Values are kept with the calls that pass, however many others are dropped
    meanwhile, and no value is lost with those."""
    program, database = build(sojourn, "filtered", FILTERED), sojourn.path("filtered.db")
    rules = ["--value", "inner(number:int) -> int", "--value", "outer(first:int, count:int) -> long"]
    done, told = sojourn.record([program], database, ["--block-ms", "10000", "--minimum", "2ms", *rules], text=True)
    check(done.returncode == 0 and told["lost_values"] == 0, f"{done}, {told['lost_values']} lost")
    check_accounts(sojourn, database)
    rows = sojourn.sql(database, """SELECT f.name, a.position, a.value FROM arguments AS a JOIN calls USING (session_id, call_id)
        JOIN functions AS f USING (function_id) WHERE f.name = 'outer' ORDER BY a.position DESC""")
    values = [(row["position"], row["value"]) for row in rows]
    check(values == [(2, 1000), (1, 41), (0, 500541)], f"{rows}")


def test(sojourn, arguments):
    test_rules(sojourn)
    test_sixteen(sojourn)
    test_crowded(sojourn)
    test_texts(sojourn)
    test_lost(sojourn)
    test_filtered(sojourn)


if __name__ == "__main__":
    main(test)
