"""A network between two programs that a test can cut. Both programs then lose their connections in the middle of the
data."""
import contextlib
import socket
import struct
import threading


class Network:
    """Listens at `port` and forwards to another port of the loopback. While it is cut, it forwards nothing."""

    def __init__(self, to):
        self.to, self.lock, self.pairs = to, threading.Lock(), []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self.to))
                except OSError:
                    near.close()
                    continue
                with self.lock:
                    self.pairs.append((near, far))
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self.pump, args=(one, other), daemon=True).start()

    @staticmethod
    def pump(one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(4096):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def cut(self):
        """Resets every connection. Neither side knows which of the last bytes arrived."""
        with self.lock:
            for one in (one for pair in self.pairs for one in pair):
                with contextlib.suppress(OSError):
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    one.shutdown(socket.SHUT_RD)
                one.close()
            self.pairs.clear()

    def close(self):
        self.cut()
        self.listener.close()
