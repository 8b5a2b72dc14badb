"""Interpreter work for budget.py: calls, objects, strings, sorting. argv[1]: rounds."""
import sys


class Number:
    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return Number(self.value + other.value)


def add_up(count):
    total = Number(0)
    for i in range(count):
        total = total + Number(len(str(i)) % 7)
    return total.value


for _ in range(int(sys.argv[1])):
    print(add_up(600000), sum(sorted((x * 7919) % 10007 for x in range(300000))))
