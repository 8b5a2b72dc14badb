#!/usr/bin/env python3
"""Exports a recording as cobertura and as spans of OpenTelemetry. The XML is valid by cobertura's DTD, has the sums of the
lcov file, and its names are whole. The spans have the calls, times and callers that SQL returns.

interchange.py BUILD_FOLDER
"""
import json
import os
import re
import subprocess
import sys
from xml.etree import ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "system", "support"))
from sojourn_testing import check, json_rows, main

RATES = ["line-rate", "branch-rate", "complexity"]
# The elements of coverage-04.dtd: their attributes, which have to be there, and their children in this order.
ELEMENTS = {"coverage": (["lines-covered", "lines-valid", "branches-covered", "branches-valid", "version", "timestamp", *RATES],
                         ["sources", "packages"]),
            "sources": ([], ["source"]), "source": ([], []), "packages": ([], ["package"]),
            "package": (["name", *RATES], ["classes"]), "classes": ([], ["class"]),
            "class": (["name", "filename", *RATES], ["methods", "lines"]), "methods": ([], ["method"]),
            "method": (["name", "signature", *RATES], ["lines"]), "lines": ([], ["line"]), "line": (["number", "hits", "branch"], [])}


def check_element(element):
    attributes, children = ELEMENTS[element.tag]
    check(sorted(element.attrib) == sorted(attributes), f"{element.tag} has {element.attrib}")
    check(list(dict.fromkeys(child.tag for child in element)) == [tag for tag in children if element.find(tag) is not None],
          f"{element.tag} has {[child.tag for child in element]}")
    for child in element:
        check_element(child)


def test_cobertura(sojourn, database):
    for name in ("a.info", "a.cobertura.xml"):
        sojourn.run(["export", "-o", sojourn.path(name), database], check=True, capture_output=True)
    with open(sojourn.path("a.info"), encoding="utf-8") as file:
        text = file.read()
    root = ElementTree.parse(sojourn.path("a.cobertura.xml")).getroot()
    check_element(root)
    classes = root.findall(".//class")
    check([one.get("filename") for one in classes] == re.findall(r"^SF:(.*)$", text, re.MULTILINE) and len(classes) == 1,
          f"files {[one.attrib for one in classes]}")
    found = {method.get("name"): (method.find("lines/line").get("number"), method.find("lines/line").get("hits"))
             for method in root.findall(".//method")}
    lines = dict(reversed(pair) for pair in re.findall(r"^FN:(\d+),(.*)$", text, re.MULTILINE))
    counts = dict(reversed(pair) for pair in re.findall(r"^FNDA:(\d+),(.*)$", text, re.MULTILINE))
    check(found == {name: (line, counts[name]) for name, line in lines.items()} and len(found) > 2, f"{found}, lcov {text}")
    check(any("<" in name and "&" in name for name in found), f"no special characters: {found}")
    check([(one.get("number"), one.get("hits")) for one in root.findall("./packages/package/classes/class/lines/line")]
          == re.findall(r"^DA:(\d+),(\d+)$", text, re.MULTILINE), f"lines, lcov {text}")
    sums = [sum(map(int, re.findall(rf"^{key}:(\d+)$", text, re.MULTILINE))) for key in ("LH", "LF")]
    check([int(root.get("lines-covered")), int(root.get("lines-valid"))] == sums
          and abs(float(root.get("line-rate")) - sums[0] / sums[1]) < 1e-4, f"{root.attrib}, lcov {sums}")


def value_of(attribute):
    (value,) = attribute["value"].values()
    return value


def test_otlp(sojourn, database):
    done = sojourn.run(["export", "-o", sojourn.path("a.otlp.json"), database], capture_output=True, text=True)
    check(done.returncode == 1 and "choose a part" in done.stderr, f"{done}")
    check(not os.path.exists(sojourn.path("a.otlp.json")), "a refused export left a file")
    sojourn.run(["export", "-o", sojourn.path("a.otlp.json"), "--depth", "6", database], check=True, capture_output=True)
    spans = {}
    with open(sojourn.path("a.otlp.json"), encoding="utf-8") as file:
        for line in file:
            (resource,) = json.loads(line)["resourceSpans"]
            (scope,) = resource["scopeSpans"]
            check([one["key"] for one in resource["resource"]["attributes"]] == ["service.name", "process.pid"], f"{resource}")
            for span in scope["spans"]:
                check(re.fullmatch("[0-9a-f]{32}", span["traceId"]) and re.fullmatch("[0-9a-f]{16}", span["spanId"])
                      and span["kind"] == 1 and span["spanId"] not in spans, f"{span}")
                spans[span["spanId"]] = span
    rows = json_rows(sojourn.run(
        ["sql", "--json", "SELECT printf('%016x', c.call_id) AS id, printf('%016x', c.parent_id) AS parent, c.depth, f.name, "
         "s.started_realtime_ns + c.start_ns AS start, c.duration_ns AS took, t.tid, c.ending FROM calls c JOIN functions f USING "
         "(function_id) JOIN threads t USING (thread_id) JOIN sessions s ON s.session_id = c.session_id WHERE c.depth <= 6",
         database], check=True, capture_output=True, text=True).stdout)
    check(len(rows) == len(spans) > 300, f"{len(rows)} calls, {len(spans)} spans")
    for row in rows:
        span = spans[row["id"]]
        attributes = {one["key"]: value_of(one) for one in span["attributes"]}
        check((span["name"], span["startTimeUnixNano"], span.get("parentSpanId"), attributes["thread.id"],
               attributes["sojourn.ending"]) == (row["name"], str(row["start"]), row["parent"] if int(row["depth"]) else None,
                                                 str(row["tid"]), row["ending"])
              and int(span["endTimeUnixNano"]) - int(row["start"]) == int(row["took"]), f"{row} {span}")


def test(sojourn, _):
    database, program, source = sojourn.path("a.db"), sojourn.path("app"), os.path.join(HERE, "covered_app.cc")
    subprocess.run(["g++", "-O1", "-g", "-fno-optimize-sibling-calls", source, "-o", program], check=True)
    sojourn.run(["record", "-q", "-o", database, "--", program], check=True, capture_output=True)
    sojourn.run(["symbols", "-d", database, "add", program], check=True, capture_output=True)
    test_cobertura(sojourn, database)
    test_otlp(sojourn, database)


if __name__ == "__main__":
    main(test)
