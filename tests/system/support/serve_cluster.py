#!/usr/bin/env python3
"""Runs a ClickHouse of one node for tests in other languages. Prints its address, and ends when standard input
ends.

serve_cluster.py FOLDER
"""
import sys

from clickhouse_node import Node

node = Node(sys.argv[1])
try:
    node.start()
    print(node.url, flush=True)
    sys.stdin.read()
finally:
    node.stop()
