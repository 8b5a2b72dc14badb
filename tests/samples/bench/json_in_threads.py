"""Computes in two threads until it is killed."""
import json
import threading
import time


def work():
    while True:
        json.loads(json.dumps({"n": [i * i for i in range(200)]}))
        time.sleep(0.001)


threading.Thread(target=work, daemon=True).start()
work()
