"""Work of the interpreter in three threads. workload.py ROUNDS"""
import collections, json, re, sys, threading, zlib
def work(seed, out):
    state, words = seed, collections.Counter()
    for i in range(4000 * int(sys.argv[1])):
        state = (state * 1103515245 + 12345) % 2147483648
        words[re.sub("[0-9]", "x", hex(state))] += 1
        if i % 50 == 0:
            state ^= zlib.crc32(json.dumps({"n": [state] * 9}).encode())
        try:
            [][state]
        except IndexError:
            state += 1
    out[seed] = (state, sum(words.values()), max(words.values()))
out = {}
threads = [threading.Thread(target=work, args=(n, out)) for n in range(3)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(out.items()))
