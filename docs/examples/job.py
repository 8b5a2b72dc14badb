"""Reads a document again and again, and asks a server that is slow to answer. job.py ROUNDS"""
import json
import sys
import time


def ask():
    time.sleep(0.2)


def read(document):
    return json.loads(document)


text = json.dumps([{"name": str(number), "size": number * 1.5} for number in range(200)])
for _ in range(int(sys.argv[1])):
    read(text)
ask()
