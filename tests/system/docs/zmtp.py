"""ZeroMQ for the test of docs/protocol.md: a connection by hand, and a client that connects again by itself."""

import os
import socket
import subprocess
import sys

from connector import PATIENCE


def python_with_zmq():
    """The first Python in $PATH may not be the system's one, for which Debian has pyzmq."""
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import zmq"], capture_output=True, check=False).returncode == 0:
            return python
    return None


# A client that lets libzmq connect again. It acquires, tells of its second connection, and after a line of input of the
# next message that arrives.
RECONNECTING = """
from zmq.utils.monitor import recv_monitor_message
dealer = zmq.Context().socket(zmq.DEALER)
monitor = dealer.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
dealer.connect(sys.argv[1])
def show():
    parts = dealer.recv_multipart()
    print(parts[1].decode(), decode(parts)[0], flush=True)
recv_monitor_message(monitor)
dealer.send_multipart(encode("resource.acquire", {}, STREAMING, 1))
show()
recv_monitor_message(monitor)
print("connected again", flush=True)
sys.stdin.readline()
dealer.send_multipart(encode("resource.ping", {}, 0, 2))
show()
os._exit(0)
"""


def zmtp_property(name, value):
    return bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value


class Zmtp:
    """A connection to the daemon's ZeroMQ endpoint, without a library."""

    def __init__(self, page, daemon):
        self.page = page
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(str(daemon.bus))
        self.stream = self.socket.makefile("rb")
        self.send = self.socket.sendall

    def shake_hands(self, ready=None):
        """Returns the greeting of the daemon, and its first frame."""
        self.send(self.page.bytes_of("zmtp greeting"))
        greeting = self.stream.read(64)
        self.send(ready or self.page.bytes_of("zmtp ready"))
        return greeting, self.read_frame()

    def read_some(self):
        return self.socket.recv(64)

    def read_frame(self):
        flags = self.stream.read(1)[0]
        size = int.from_bytes(self.stream.read(8 if flags & 2 else 1), "big")
        return flags, self.stream.read(size)

    def expect(self, expected):
        self.page.assertEqual(self.stream.read(len(expected)).hex(" "), expected.hex(" "))

    def expect_end(self):
        """Reads up to the end of the connection, which the daemon may reset."""
        try:
            while self.socket.recv(4096):
                pass
        except ConnectionResetError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.socket.close()
