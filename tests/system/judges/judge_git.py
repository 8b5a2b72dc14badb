#!/usr/bin/env python3
"""Every git command on a repository of some hundred objects prints the same and leaves the same files, with all
functions of git and of its libraries hooked. judge_git.py BUILD_FOLDER; SJ_LONG=1: many thousand objects"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from judging import check_session, need, run_both, sizes
from sojourn_testing import check, main

FILES = 40
MODULES = ("git", "libpcre2*", "libz.so*")
CHANGING = ("checkout", "merge", "gc")  # these commands begin twice with the same repository


def history(commits):
    """Returns a stream for git fast-import: many files, renames, a merge after every ten commits."""
    yield "feature done\n"
    for commit in range(1, commits + 1):
        branch = "main" if commit % 10 else "side"
        message = f"Commit {commit}\n\nBody of {commit * 7919}.\n"
        yield f"commit refs/heads/{branch}\nmark :{commit}\n"
        yield f"committer Judge <judge@example.org> {1600000000 + commit * 60} +0000\n"
        yield f"data {len(message)}\n{message}\n"
        if commit == 10:
            yield "from :9\n"
        elif commit > 11 and commit % 10 == 1:
            yield f"merge :{commit - 1}\n"
        for number in range(3):
            text = "".join(f"line {i} of {(commit + i * number) % 97}\n" for i in range(60 + commit % 30))
            yield f"M 100644 inline d{commit * number % 7}/f{commit * (number + 1) % FILES}.txt\n"
            yield f"data {len(text)}\n{text}\n"
    yield "done\n"


def commands():
    yield "log", ["log", "--stat", "-p", "--graph", "-n", "60", "main"]
    yield "history", ["log", "--follow", "-M", "--format=%H %an %s", "--", "d0/f1.txt"]
    yield "blame", ["blame", "-M", "-C", "main", "--", "d0/f1.txt"]
    yield "grep", ["grep", "-n", "-P", "of (9[0-7]|1\\d)$", "main"]
    yield "diff", ["diff", "--word-diff", "--find-renames", "main~50", "main"]
    yield "merge_base", ["merge-base", "main", "side"]
    yield "rev_list", ["rev-list", "--objects", "--all"]
    yield "archive", ["archive", "--format=tar", "main"]
    yield "checkout", ["checkout", "-q", "-f", "-B", "work", "main"]
    yield "status", ["status", "--porcelain=v2", "--branch"]
    yield "merge", ["-c", "user.name=J", "-c", "user.email=j@example.org", "merge", "-s", "ours", "-m", "m", "side"]
    yield "gc", ["gc", "-q", "--aggressive", "--prune=now"]
    yield "fsck", ["fsck", "--full", "--strict", "--no-progress"]
    yield "bad", ["show", "nothing-of-this-name"]


def one_round(sojourn, commits):
    origin = sojourn.path("origin.git")
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", origin], check=True)
    subprocess.run(["git", "-C", origin, "fast-import", "--quiet"], input="".join(history(commits)), text=True, check=True)
    fixed = {"GIT_COMMITTER_DATE": "1700000000 +0000", "GIT_AUTHOR_DATE": "1700000000 +0000",
             "GIT_CONFIG_NOSYSTEM": "1", "HOME": sojourn.folder, "GIT_PAGER": "cat"}
    work, saved = sojourn.path("work"), sojourn.path("saved")
    subprocess.run(["git", "clone", "-q", origin, work], check=True)
    subprocess.run(["git", "-C", work, "fetch", "-q", "origin", "side:side"], check=True)

    def reset():
        shutil.rmtree(work)
        shutil.copytree(saved, work, symlinks=True)

    database = sojourn.path("git.db")
    for name, words in commands():
        if name in CHANGING:
            shutil.rmtree(saved, ignore_errors=True)
            shutil.copytree(work, saved, symlinks=True)
        plain = run_both(sojourn, "git_" + name, ["git", *words], MODULES, database, cwd=work,
                         environment=fixed, prepare=reset if name in CHANGING else None)
        if name == "log":
            check(len(plain[1]) > 100000, "the history is too short")
        check((plain[0] != 0) == (name == "bad"), f"git {name} ended with {plain[0]}: {plain[2]}")
    print(f"git: {check_session(sojourn, database, 3)} calls", flush=True)
    for folder in (origin, work, saved):
        shutil.rmtree(folder)
    os.unlink(database)


def test(sojourn, _):
    need("git")
    for commits in sizes(120, 20000):
        one_round(sojourn, commits)


if __name__ == "__main__":
    main(test)
