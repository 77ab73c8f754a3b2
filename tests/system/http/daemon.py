"""The real daemon with HTTP, in a directory of its own, for tests in Python."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time

PATIENCE = 30  # seconds to wait for anything
EIGHT_NODES = """
[[resource.config]]
hosts = "node[0-7]"
cores = "0-3"
"""


class Daemon:
    def __init__(self, program, http='listen = ["127.0.0.1:0", "unix://DIR/http"]', config=EIGHT_NODES, more=""):
        self.directory = tempfile.TemporaryDirectory(prefix="resourced-http-")
        self.path = pathlib.Path(self.directory.name)
        self.program = program
        self.write(http, config, more)
        self.start()

    def write(self, http, config=EIGHT_NODES, more=""):
        text = f"{config}\n[http]\n{http}\n{more}\n".replace("DIR", str(self.path))
        (self.path / "resourced.toml").write_text(text)

    def command(self, *options):
        return [self.program, "--config", str(self.path / "resourced.toml"), "--state", str(self.path / "state"),
                *options]

    def start(self):
        self.log = open(self.path / "log", "ab")
        self.process = subprocess.Popen(
            self.command("--listen", f"ipc://{self.path}/bus", "--listen", f"local://{self.path}/local"),
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.endpoints = []
        for line in self.process.stdout:
            self.endpoints.append(line.split()[-1])
            if len(self.endpoints) == 2 + self.http_endpoints():
                break
        else:
            self.process.wait(PATIENCE)
            log = (self.path / "log").read_text()
            self.process.stdout.close()
            self.log.close()
            self.directory.cleanup()
            raise RuntimeError(log)
        tcp = [re.search(r":(\d+)$", uri) for uri in self.endpoints if uri.startswith("http")]
        self.port = int(tcp[0][1]) if tcp else None

    def http_endpoints(self):
        listen = re.search(r"^listen = \[(.*)\]", (self.path / "resourced.toml").read_text(), re.MULTILINE)
        return listen[1].count('"') // 2 if listen else 0

    def hang_up(self):
        """Reloads the configuration, and waits for the line of the log with the result."""
        before = self.reloads()
        self.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + PATIENCE
        while self.reloads() == before:
            if time.monotonic() > deadline:
                raise TimeoutError("no reload")
            time.sleep(0.01)

    def reloads(self):
        log = (self.path / "log").read_text()
        return len(re.findall("configuration reloaded|reload refused", log))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.log.close()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
        self.process.stdout.close()
        self.log.close()
        self.directory.cleanup()

    @property
    def bus(self):
        return f"ipc://{self.path}/bus"

    def memory(self):
        """Resident memory in bytes."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        return connection

    def exchange(self, request):
        """Sends bytes, ends the sending side, and returns all bytes of the answer."""
        with self.connect() as connection:
            try:
                connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
            except OSError:  # the daemon has ended the connection already
                pass
            return read_all(connection)


def read_all(connection):
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer else None


def read_until_closed(connection):
    """The bytes that came until the daemon closed or reset the connection."""
    try:
        return read_all(connection)
    except ConnectionResetError:
        return b""


def serves(daemon):
    answer = daemon.exchange(b"GET /api/resource.status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    return answer.startswith(b"HTTP/1.1 200 OK\r\n") and json.loads(answer.split(b"\r\n\r\n", 1)[1])["online"] == "0-7"
