"""Objects of many sizes, so many rounds as its argument says."""
import json
import re
import sys

for i in range(int(sys.argv[1])):
    t = json.dumps({"n": [i] * (i % 60), "t": "x" * (i % 3000)})
    json.loads(t)
    re.sub("[0-9]", "y", t)
