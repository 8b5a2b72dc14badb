#!/usr/bin/env python3
"""A ClickHouse of one node for tests in other languages: prints its address, and ends with standard input.

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
