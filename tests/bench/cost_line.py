#!/usr/bin/env python3
"""Is the factor of the cost line ("about 1.3 times the CPU of a plain run") true? Programs of Debian run plain and
recorded by turns; the factor that the line says is set beside that of the CPU times, whose medians are taken.
cost_line.py BUILD_FOLDER [--rounds N] [--only WORD]"""
import argparse
import os
import re
import resource
import statistics
import subprocess
import tempfile

LINES = 20000
SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "samples", "bench")


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def programs_of(folder):
    """Returns (name, command, options of record) of each program. Each uses some tenths of a second."""
    text = write(folder, "text", "".join(f"{i * 7919 % 100003} line {i} of a text with words {i % 97}\n" for i in range(LINES)))
    data = write(folder, "data.json", "[" + ",".join(f'{{"id":{i},"name":"n{i}","tags":[{i},{i + 1}]}}' for i in range(LINES)) + "]")
    xml = write(folder, "data.xml", "<all>" + "".join(f"<one id='{i}'>text {i}</one>" for i in range(2 * LINES)) + "</all>")
    work = os.path.join(folder, "work")
    subprocess.run(["gcc", "-O2", "-g", "-o", work, os.path.join(SAMPLES, "work.c")], check=True)
    subprocess.run(["javac", "-d", folder, os.path.join(SAMPLES, "Work.java")], check=True)
    main_c = write(folder, "main.c", "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n" + "".join(
        f"int f{i}(int n) {{ int s = 0; for (int k = 0; k < n; k++) s += k * {i} % 7; return s; }}\n" for i in range(300)))
    assembly, unit = os.path.join(folder, "main.s"), os.path.join(folder, "main.o")
    subprocess.run(["gcc", "-O1", "-S", "-o", assembly, main_c], check=True)
    subprocess.run(["gcc", "-O1", "-c", "-o", unit, main_c], check=True)
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout.strip()
    loop = "x=0; for (i=0; i<400000; i++) x += i % 7; print x"
    return [
        ("work (C, symbols)", [work, "60"], []),
        ("work, heap monitor", [work, "20"], ["--zombies", "heap"]),
        ("perl, fib(22)", ["perl", "-e", "sub f{my $n=shift;$n<2?$n:f($n-1)+f($n-2)} print f(22)"], []),
        ("perl, split and sort", ["perl", "-ne", "push @l, [split]; END { print scalar sort { $a->[0] <=> $b->[0] } @l }", text], []),
        ("perl, heap monitor", ["perl", "-e", "my %h; $h{$_ % 1000} .= $_ for 1..60000; print scalar %h"], ["--zombies", "heap"]),
        ("python3, json", ["python3", "-c", f"import json; d = json.load(open('{data}')); print(len(json.dumps(d)))"], []),
        ("python3, loop", ["python3", "-c", "print(sum(len(str(i)) for i in range(200000)))"], []),
        ("lua5.4", ["lua5.4", "-e", "local t = {} for i = 1, 300000 do t[i % 100] = tostring(i) end print(#t)"], []),
        ("sqlite3", ["sqlite3", ":memory:", "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 200000) "
                     "SELECT sum(n), count(DISTINCT n % 1000) FROM t"], []),
        ("mawk", ["mawk", "{ s += length($3); n[$1 % 100]++ } END { print s, length(n) }", text, text, text, text], []),
        ("sed", ["sed", "-n", "s/line \\([0-9]*\\) of/\\1/p", text, text, text], []),
        ("grep", ["grep", "-c", "9.*words [1-5]*$", text, text, text, text], []),
        ("sort", ["sort", "-n", text, text, text], []),
        ("gzip", ["gzip", "-c", text], []),
        ("bzip2", ["bzip2", "-c", text], []),
        ("xz", ["xz", "-2", "-c", text], []),
        ("zstd", ["zstd", "-q", "-12", "-c", text], []),
        ("bc", ["sh", "-c", f"echo '{loop.replace('print x', 'x')}' | bc"], []),
        ("jq", ["jq", "map(.tags[0]) | add", data], []),
        ("cc1", [cc1, "-quiet", "-O2", "-o", os.devnull, main_c], []),
        ("as", ["as", "-o", os.devnull, assembly], []),
        ("ld", ["ld", "-r", "-o", os.path.join(folder, "all.o"), *[unit] * 1], []),
        ("objdump", ["objdump", "-d", unit], []),
        ("readelf", ["readelf", "-aW", unit], []),
        ("openssl", ["openssl", "dgst", "-sha256", *[text] * 8], []),
        ("git", ["git", "hash-object", *[text] * 10], []),
        ("vim", ["vim", "-u", "NONE", "-es", "-c", "g/line 1/s/text/TEXT/g", "-c", "q!", text], []),
        ("php", ["php", "-r", "$s = 0; for ($i = 0; $i < 300000; $i++) { $s += strlen((string)$i); } echo $s;"], []),
        ("ruby", ["ruby", "-e", "puts (1..200000).map { |i| i.to_s.size }.sum"], []),
        ("node", ["node", "-e", "let s = 0; for (let i = 0; i < 300000; i++) { s += String(i).length } console.log(s)"], []),
        ("xmllint", ["xmllint", "--xpath", "count(//one[@id mod 7 = 0])", xml], []),
        ("xsltproc's parser", ["xmllint", "--format", "-o", os.devnull, xml], []),
        ("guile", ["guile", "--no-auto-compile", "-c", "(let f ((n 0) (s 0)) (if (< n 200000) (f (+ n 1) (+ s (string-length (number->string n)))) (display s)))"], []),
        ("tclsh", ["sh", "-c", "echo 'set s 0; for {set i 0} {$i < 200000} {incr i} { incr s [string length $i] }; puts $s' | tclsh"], []),
        ("40 short programs", ["sh", "-c", "for i in $(seq 20); do perl -e 1; /bin/ls / >&2; done 2>&1"], []),
        ("java, work", ["java", "-cp", folder, "Work", "200000", "24"], []),
        ("java, library too", ["java", "-cp", folder, "Work", "20000", "20"], ["--java-system"]),
        ("java, start", ["java", "-cp", folder, "Work", "1", "1"], []),
    ]


def cpu_of(command):
    """Returns the CPU seconds of a command and its descendants."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command[0]} ended with {done.returncode}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def recorded(sojourn, command, record_options, folder):
    """Returns the CPU seconds of the recorded program, and the line about costs."""
    database, summary = (os.path.join(folder, name) for name in ("run.db", "summary.json"))
    for name in os.listdir(folder):
        if name.startswith("run.db"):
            os.unlink(os.path.join(folder, name))
    done = subprocess.run([sojourn, "record", "-o", database, "--summary", summary, *record_options, "--", *command],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    text = " ".join(done.stderr.split())
    line = re.search(r"cost (CPU: .*?recorder: [0-9.]+ [a-zµ]+ CPU)", text)
    with open(summary, encoding="utf-8") as file:
        cpu_ns = int(re.search(r'"traced_cpu_ns": (\d+)', file.read())[1])
    return cpu_ns / 1e9, line[1] if line else text[-200:]


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("build")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--lines", action="store_true", help="the cost line of each program, too")
    options = arguments.parse_args()
    sojourn = os.path.join(options.build, "bin", "sojourn")
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        print("| program | plain s CPU | recorded | factor | said | off |\n|---|---|---|---|---|---|", flush=True)
        for name, command, record_options in programs_of(folder):
            if options.only not in name:
                continue
            recorded(sojourn, command, record_options, folder)  # plans are in the cache
            rows = [(cpu_of(command), *recorded(sojourn, command, record_options, folder)) for _ in range(options.rounds)]
            plain, cpu = (statistics.median(row[at] for row in rows) for at in (0, 1))
            said = [re.search(r"\((?:more than |about )([0-9.]+)", row[2]) for row in rows]
            told = statistics.median(float(found[1]) for found in said) if None not in said else None
            factor = cpu / plain
            off = told / factor - 1 if told is not None else None
            errors.append((abs(off) if off is not None else 9, name))
            print(f"| {name} | {plain:.3f} | {cpu:.3f} | {factor:.2f} | {'-' if told is None else format(told, '.2f')} | "
                  f"{'-' if off is None else format(off, '+.0%')} |", flush=True)
            if options.lines:
                print(f"    {rows[-1][2]}", flush=True)
    print(f"\nmedian error {statistics.median(error for error, _ in errors):.0%}, worst {max(errors)[0]:.0%} ({max(errors)[1]}), "
          f"{len(errors)} programs")


if __name__ == "__main__":
    main()
