"""An interpreter with the libraries that many programs of a fleet have loaded.

libraries_in_threads.py BUSY WAITING: so many threads of each kind, until its input ends."""
import hashlib
import sqlite3
import ssl  # noqa: F401 its libraries
import sys
import threading


def work():
    state, database = b"", sqlite3.connect(":memory:", check_same_thread=False)
    while True:
        state = hashlib.sha256(state).digest()
        database.execute("SELECT hex(?)", (state,)).fetchone()


for _ in range(int(sys.argv[1])):
    threading.Thread(target=work, daemon=True).start()
for _ in range(int(sys.argv[2])):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
