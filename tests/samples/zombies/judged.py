"""Many kinds of blocks, threads and a child. judged.py ROUNDS"""
import collections, ctypes, gc, itertools, json, re, subprocess, sys, threading, zlib
total = 0
for i in range(int(sys.argv[1])):
    text = json.dumps({'n': list(range(i % 60)), 't': 'x' * (i % 3000)})
    total += len(re.sub('[0-9]', 'y', text)) + len(zlib.compress(text.encode()))
    gc.collect() if i % 100 == 0 else None
threads = [threading.Thread(target=lambda: sorted(str(i) for i in range(2000))) for _ in range(4)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
print(total, subprocess.run([sys.executable, '-c', 'print(sum(range(10)))'], capture_output=True).stdout)
sys.exit(3)
