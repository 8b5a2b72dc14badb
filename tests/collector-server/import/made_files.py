#!/usr/bin/env python3
"""Imports files that this test makes by the documents of their formats, because Debian has no tool that writes them:
Android's method traces, XRay's flight data recorder, and Perfetto's clocks, compressed packets and whole calls. Each is
refused when it is cut.

made_files.py BUILD_FOLDER
made_files.py --seeds FOLDER    writes the files as seeds of fuzz.import_source
"""
import gzip
import os
import struct
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "system", "support"))
from sojourn_testing import check, main
from foreign_files import asked, imported, refused

IMPORTERS = ["speedscope", "chrome-json", "perf-script", "folded", "uftrace", "callgrind", "pprof", "function.txt", "xray",
             "android-trace", "perfetto"]  # in the order of importers.c
CALLS = ("SELECT t.tid AS tid, f.name, c.depth, c.start_ns - (SELECT min(start_ns) FROM calls WHERE session_id = {0}) AS start, "
         "c.end_ns - c.start_ns AS duration, c.ending FROM calls c JOIN functions f USING (function_id) JOIN threads t USING "
         "(thread_id) WHERE c.session_id = {0} ORDER BY c.call_id")

# Entries and exits of two threads: thread, method, action (0 enter, 1 exit, 2 unwound), microseconds.
EVENTS = [(1, 1, 0, 100), (1, 2, 0, 110), (2, 2, 0, 112), (1, 2, 1, 120), (1, 1, 2, 150), (2, 2, 1, 160)]
METHODS = {1: "a.B\trun\t()V\tB.java", 2: "a.C\tf\t(I)I\tC.java"}
ANDROID_CALLS = [(1, "a.B.run()V", 0, 0, 50000, "unwound"), (1, "a.C.f(I)I", 1, 10000, 10000, "returned"),
                 (2, "a.C.f(I)I", 0, 12000, 48000, "returned")]


def android_record(version, thread, method, action, at):
    times = struct.pack("<II", at // 2, at) if version == 3 else struct.pack("<I", at)
    return struct.pack("<BI" if version == 1 else "<HI", thread, method << 2 | action) + times


def android_header(version, flags=0):
    size = {3: struct.pack("<H", 14)}.get(version, b"")
    return (struct.pack("<IHHQ", 0x574f4c53, version | flags, 32, 10 ** 15) + size).ljust(32, b"\0")


def android_file(version):
    text = f"*version\n{version}\ndata-file-overflow=false\nclock={'dual' if version == 3 else 'wall'}\npid=77\n"
    text += f"num-method-calls={len(EVENTS)}\n*threads\n1\tmain\n2\tworker\n*methods\n"
    text += "".join(f"{number << 2:#x}\t{line}\n" for number, line in METHODS.items()) + "*end\n"
    return text.encode() + android_header(version) + b"".join(android_record(version, *event) for event in EVENTS)


def android_stream(version):
    data = android_header(version, 0xf0)
    for thread, name in ((1, b"main"), (2, b"worker")):
        data += struct.pack("<HBHH", 0, 2, thread, len(name)) + name
    named = set()
    for event in EVENTS:
        if event[1] not in named:
            named.add(event[1])
            line = f"{event[1] << 2:#x}\t{METHODS[event[1]]}\n".encode()
            data += struct.pack("<HBH", 0, 1, len(line)) + line
        data += android_record(version, *event)
    summary = b"*version\n2\n*end\n"
    return data + struct.pack("<HBI", 0, 3, len(summary)) + summary


def fdr_metadata(kind, content):
    return (bytes([kind << 1 | 1]) + content).ljust(16, b"\0")


def fdr_function(kind, number, delta):
    return struct.pack("<II", number << 4 | kind << 1, delta)


def fdr_file():
    """Two buffers of one thread, cycles of 2 GHz, with an event of the program and a change of the processor."""
    data = struct.pack("<HHIQQQ", 5, 1, 3, 2 * 10 ** 9, 256, 0)
    first = (fdr_metadata(0, struct.pack("<i", 41)) + fdr_metadata(4, struct.pack("<QI", 5, 6))
             + fdr_metadata(9, struct.pack("<i", 40)) + fdr_metadata(2, struct.pack("<HQ", 1, 10 ** 12))
             + fdr_function(0, 7, 100) + fdr_metadata(5, struct.pack("<ii", 3, 50)) + b"abc" + fdr_function(0, 9, 50)
             + fdr_function(1, 9, 200))
    second = (fdr_metadata(0, struct.pack("<i", 41)) + fdr_metadata(9, struct.pack("<i", 40))
              + fdr_metadata(2, struct.pack("<HQ", 2, 10 ** 12 + 1000)) + fdr_function(1, 7, 100))
    for buffer in (first, second):
        data += fdr_metadata(7, struct.pack("<Q", len(buffer))) + buffer
    return data


def varint(value):
    data = b""
    while value > 0x7f:
        data += bytes([value & 0x7f | 0x80])
        value >>= 7
    return data + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def perfetto_file():
    """A sequence with a clock of microseconds that counts on, interned names, a whole call as Chromium writes it, and
    a compressed part."""
    snapshot = field(1, field(1, 6) + field(2, 5_000_000)) + field(1, field(1, 64) + field(2, 0) + field(3, 1) + field(4, 1000))
    thread = field(60, field(1, 99) + field(4, field(1, 50) + field(2, 51) + field(5, "worker")))
    defaults = field(59, field(58, 64) + field(11, field(11, 99)))
    packets = [field(13, 1) + field(6, snapshot), field(13, 1) + field(6, snapshot) + defaults, thread,
               field(12, field(2, field(1, 3) + field(2, "outer"))) + field(8, 10) + field(11, field(9, 1) + field(10, 3)),
               field(8, 5) + field(11, field(9, 1) + field(23, "inner")), field(8, 5) + field(11, field(9, 2))]
    packed = [field(8, 0) + field(11, field(9, 0) + field(23, "whole") + field(6, field(2, ord("X")) + field(3, 4))),
              field(8, 10) + field(11, field(9, 2))]
    data = b"".join(field(1, field(10, 8) + packet) for packet in packets)
    inner = b"".join(field(1, field(10, 8) + packet) for packet in packed)
    return data + field(1, field(50, zlib.compress(inner)))


PERFETTO_CALLS = [(51, "outer", 0, 0, 20000, "returned"), (51, "inner", 1, 5000, 5000, "returned"),
                  (51, "whole", 1, 10000, 4000, "returned")]


def pprof_file():
    """As Go writes it: two values, packed numbers, an inlined function, an address without a function, gzip."""
    texts = ["", "samples", "count", "cpu", "nanoseconds", "main.main", "main.f", "main.inlined", "main.go", "/bin/app"]
    data = field(1, field(1, 1) + field(2, 2)) + field(1, field(1, 3) + field(2, 4))
    data += field(2, field(1, varint(2) + varint(1)) + field(2, varint(3) + varint(30)))
    data += field(2, field(1, 3) + field(1, 1) + field(2, 2) + field(2, 20))
    data += field(3, field(1, 1) + field(5, 9))
    for number, lines in ((1, (1,)), (2, (3, 2)), (3, ())):
        data += field(4, field(1, number) + field(2, 1) + field(3, 0x1000 + number)
                      + b"".join(field(4, field(1, line)) for line in lines))
    for number, name in ((1, 5), (2, 6), (3, 7)):
        data += field(5, field(1, number) + field(2, name) + field(4, 8))
    return data + b"".join(field(6, text) for text in texts) + field(14, 3)


PPROF_PATHS = [("main.main", 0, 0, 0, 50), ("main.f", 1, 0, 0, 30), ("main.inlined", 2, 3, 30, 30), ("0x1003", 1, 2, 20, 20)]

FILES = {"v1.trace": ("android-trace", android_file(1), ANDROID_CALLS), "v2.trace": ("android-trace", android_file(2), ANDROID_CALLS),
         "v3.trace": ("android-trace", android_file(3), ANDROID_CALLS),
         "streamed2.trace": ("android-trace", android_stream(2), ANDROID_CALLS),
         "streamed3.trace": ("android-trace", android_stream(3), ANDROID_CALLS),
         "fdr.xray": ("xray", fdr_file(), [(41, "function 7", 0, 0, 500, "returned"), (41, "function 9", 1, 50, 100, "returned")]),
         "made.perfetto": ("perfetto", perfetto_file(), PERFETTO_CALLS)}


def write(path, data):
    with open(path, "wb") as output:
        output.write(data)


def test_cuts(sojourn, database, name, kind, data):
    path = sojourn.path("cut")
    for size in sorted({1, len(data) // 3, len(data) // 2, 2 * len(data) // 3, len(data) - 9, len(data) - 1}):
        write(path, data[:size])
        refused(sojourn, database, 1, "byte ", "--format", kind, path)


def test(sojourn, _):
    database = sojourn.path("imported.db")
    for name, (kind, data, expected) in FILES.items():
        path = sojourn.path(name)
        write(path, data)
        done = imported(sojourn, database, path)
        rows = [tuple(int(value) if str(value).lstrip("-").isdigit() else value for value in row.values())
                for row in asked(sojourn, database, CALLS.format(done["session_id"]))]
        check(done["format"] == kind and rows == expected, f"{name}: {done} {rows}")
        test_cuts(sojourn, database, name, kind, data)
    for name, data in (("a.pb", pprof_file()), ("a.pb.gz", gzip.compress(pprof_file()))):
        write(sojourn.path(name), data)
        done = imported(sojourn, database, sojourn.path(name))
        rows = [(row["name"], *(int(row[key]) for key in ("depth", "calls", "self_ns", "total_ns"))) for row in asked(
            sojourn, database, f"SELECT name, depth, calls, self_ns, total_ns FROM call_tree({done['session_id']})")]
        check(done["format"] == "pprof" and sorted(rows) == sorted(PPROF_PATHS), f"{name}: {done} {rows}")
        test_cuts(sojourn, database, name, "pprof", data)
    sessions = asked(sojourn, database, "SELECT count(*) AS n FROM sessions")
    check(int(sessions[0]["n"]) == len(FILES) + 2, f"a cut file added a session: {sessions}")


def write_seeds(folder):
    for name, (kind, data, _) in {**FILES, "pprof": ("pprof", pprof_file(), []),
                                  "pprof_gzip": ("pprof", gzip.compress(pprof_file(), mtime=0), [])}.items():
        write(os.path.join(folder, name.replace(".", "_")), bytes([IMPORTERS.index(kind)]) + data)
    function_txt = b"1[5,10]enter:f(1, 2) tid:7 ~\n2[5,11]enter:g tid:7\n3[5,20]leave:f(1, 2)ret:! tid:7\n"
    write(os.path.join(folder, "function_txt"), bytes([IMPORTERS.index("function.txt")]) + function_txt)
    text = (b"---\nheader:\n  cycle-frequency: 1000000000\nrecords:\n  - { type: 0, func-id: 3, function: 'a b', cpu: 0, "
            b"thread: 1, process: 1, kind: function-enter, tsc: 17, data: '' }\n...\n")
    write(os.path.join(folder, "xray_text"), bytes([IMPORTERS.index("xray")]) + text)
    callgrind = (b"# callgrind format\ncreator: callgrind-3\npositions: line\nevents: Ir\nsummary: 12\nob=(1) a\nfn=(1) f\n1 5\n"
                 b"cfn=(2) g\ncalls=2 1\n+1 7\nfn=(2)\n* 7\n")
    write(os.path.join(folder, "callgrind"), bytes([IMPORTERS.index("callgrind")]) + callgrind)
    basic = struct.pack("<HHIQQQ", 3, 0, 3, 10 ** 9, 0, 0) + struct.pack("<HBBiQIIQ", 0, 0, 0, 3, 99, 1, 1, 0)
    write(os.path.join(folder, "xray_basic"), bytes([IMPORTERS.index("xray")]) + basic)


if __name__ == "__main__":
    if sys.argv[1] == "--seeds":
        write_seeds(sys.argv[2])
    else:
        main(test)
