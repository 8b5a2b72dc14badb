#!/usr/bin/env python3
"""Every link of the documents to a file of the tree leads to one, and to a heading that is there. Pictures are small,
and the table of figures and the READMEs of components are short.

links.py SOURCE_FOLDER
"""
import glob
import os
import re
import sys

MOST_PICTURE_BYTES = 200 * 1024
MOST_LINES_OF_RESULTS = 400
MOST_LINES_OF_README = 150
GENERATED = os.path.join("schema", "README.md")
COMPONENTS = ("agent", "collector-server", "proto", "schema", "web-static", "tests")
FOLDERS = (".", "docs", "agent", "tests/bench")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def headings_of(path):
    """The anchors of a page as GitHub makes them."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"^```.*?^```", "", file.read(), flags=re.MULTILINE | re.DOTALL)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def problems_of(page):
    with open(page, encoding="utf-8") as file:
        text = re.sub(r"^```.*?^```", "", file.read(), flags=re.MULTILINE | re.DOTALL)
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = os.path.join(os.path.dirname(page), name) if name else page
        if not os.path.exists(path):
            yield f"{page}: there is no {target}"
        elif anchor and anchor not in headings_of(path):
            yield f"{page}: {target} has no such heading"


def count_lines(path):
    with open(path, encoding="utf-8") as file:
        return len(file.readlines())


def long_readmes(source):
    for folder in COMPONENTS:
        for page in glob.glob(os.path.join(source, folder, "**", "README.md"), recursive=True):
            name = os.path.relpath(page, source)
            if name != GENERATED and "node_modules" not in name and count_lines(page) > MOST_LINES_OF_README:
                yield f"{name} has more than {MOST_LINES_OF_README} lines"


def main():
    source = sys.argv[1]
    pages = [page for folder in FOLDERS for page in glob.glob(os.path.join(source, folder, "*.md"))]
    pictures = glob.glob(os.path.join(source, "docs", "pictures", "*"))
    problems = [problem for page in pages for problem in problems_of(page)]
    problems += [f"{picture} is larger than {MOST_PICTURE_BYTES} bytes" for picture in pictures
                 if os.path.getsize(picture) > MOST_PICTURE_BYTES]
    problems += long_readmes(source)
    if count_lines(os.path.join(source, "tests", "bench", "RESULTS.md")) > MOST_LINES_OF_RESULTS:
        problems.append("RESULTS.md is too long: move old tables to history/")
    if len(pages) < 15 or not pictures:
        problems.append("pages or pictures are not found")
    print("\n".join(problems) or "passed")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
