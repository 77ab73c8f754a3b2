"""A socket between a client and the daemon, on which requests and answers can be lost."""

import contextlib
import queue
import socket
import threading


def socket_for(uri):
    """A socket for this endpoint, and its address."""
    scheme, _, rest = uri.partition("://")
    if scheme == "ipc":
        return socket.socket(socket.AF_UNIX), rest
    host, _, port = rest.rpartition(":")
    return socket.socket(), (host, int(port))


class Connection:
    """A connection of the client, and the one to the daemon for it. They end together."""

    def __init__(self, near, far):
        self.ends = near, far
        self.losing = set()
        self.lost = queue.Queue()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        near, far = self.ends
        requests = threading.Thread(target=self.carry, args=("requests", near, far), daemon=True)
        requests.start()
        self.carry("answers", far, near)
        requests.join()
        near.close()
        far.close()

    def carry(self, what, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if what in self.losing:
                    self.lost.put(what)
                else:
                    sink.sendall(data)
        self.end()

    def end(self):
        for end in self.ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Relay:
    """Listens at `uri`."""

    def __init__(self, directory, uri):
        self.target = uri
        self.listener, address = socket_for(f"ipc://{directory}/relay" if uri.startswith("ipc:") else "tcp://127.0.0.1:0")
        self.listener.bind(address)
        self.listener.listen()
        name = self.listener.getsockname()
        self.uri = f"ipc://{name}" if isinstance(name, str) else f"tcp://127.0.0.1:{name[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):  # closed
            while True:
                near, _ = self.listener.accept()
                far, address = socket_for(self.target)
                far.connect(address)
                self.connection = Connection(near, far)

    def lose(self, *what):
        """From now on "requests" or "answers" of the present connection are lost, or both."""
        self.connection.losing.update(what)

    def wait(self, what, patience):
        """Waits until some are lost."""
        while self.connection.lost.get(timeout=patience) != what:
            pass

    def cut(self):
        """Ends the present connection."""
        self.connection.end()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
