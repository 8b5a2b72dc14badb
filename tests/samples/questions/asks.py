"""Answers to the statements of its input by Python's sqlite3. asks.py DATABASE EXTENSION"""
import csv
import json
import sqlite3
import sys

database = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
database.enable_load_extension(True)
database.load_extension(sys.argv[2])
told = csv.writer(sys.stdout, lineterminator="\n")


def shown(value):
    text = format(value, ".15g") if isinstance(value, float) else value
    return text + ".0" if isinstance(value, float) and text.lstrip("-").isdigit() else text


for text, values in json.load(sys.stdin):
    cursor = database.execute(text, values)
    told.writerow([column[0] for column in cursor.description])
    told.writerows([shown(value) for value in row] for row in cursor)
