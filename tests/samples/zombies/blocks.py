"""Allocates and frees blocks of every size in three threads. blocks.py ROUNDS"""
import hashlib, json, re, sys, threading
def work(seed, out):
    digest = hashlib.sha256()
    for i in range(int(sys.argv[1])):
        text = json.dumps({"n": [seed * i] * (i % 60), "t": "x" * (i % 3000)})
        digest.update(re.sub("[0-9]", "y", text).encode())
        json.loads(text)
    out[seed] = digest.hexdigest()
out = {}
threads = [threading.Thread(target=work, args=(n, out)) for n in range(3)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(out.items()))
