"""Shared by the tests of the package: its path, the shared vectors, and daemons. Import this module before the package."""

import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

SKIPPED = 77
PATIENCE = 60  # seconds to wait for anything
SOURCE = pathlib.Path(__file__).resolve().parents[3]
VECTORS = SOURCE / "tests" / "vectors"
FOUR_NODES = """
[[resource.config]]
hosts = "node[0-3]"
cores = "0-1"
[[resource.config]]
hosts = "node3"
properties = ["gpu"]
gpus = "0"
"""


def need(module, package):
    """Skips the test if a module is missing that Debian has for its own Python."""
    if importlib.util.find_spec(module):
        return
    # The first Python in $PATH may not be the system's one.
    system = "/usr/bin/python3"
    if sys.executable != system and os.path.exists(system):
        os.execv(system, [system, *sys.argv])
    print(f"skipped: needs {package}")
    sys.exit(SKIPPED)


def vectors(name):
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


def thorough(short, long):
    """The size of a random test: `long` if RESOURCED_THOROUGH is set."""
    return long if os.environ.get("RESOURCED_THOROUGH") else short


def bin_directory():
    """Takes the first argument of the test, and returns it as a path."""
    return pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/default/bin").resolve()


class Daemon:
    """The real daemon, in a directory of its own."""

    def __init__(self, programs, config=FOUR_NODES, listen=("ipc://DIR/bus", "local://DIR/local")):
        self._directory = tempfile.TemporaryDirectory(prefix="resourced-python-")
        self.path = pathlib.Path(self._directory.name)
        self._programs = programs
        self._listen = [uri.replace("DIR", str(self.path)) for uri in listen]
        self.log = self.path / "log"
        self.configure(config)
        self.process = None
        self.start()

    def configure(self, config):
        (self.path / "resourced.toml").write_text(config.replace("DIR", str(self.path)), encoding="utf-8")

    def start(self):
        command = [self._programs / "resourced", "--config", self.path / "resourced.toml", "--state", self.path / "state"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command + [word for uri in self._listen for word in ("--listen", uri)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.uris = []
        for line in self.process.stdout:
            self.uris.append(line.split()[-1])
            if len(self.uris) == len(self._listen):
                return
        raise RuntimeError(self.log.read_text(encoding="utf-8"))

    @property
    def uri(self):
        return self.uris[0]

    def kill(self):
        self._end(signal.SIGKILL)

    def stop(self):
        self._end(signal.SIGTERM)

    def _end(self, number):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(PATIENCE)
        self.process.stdout.close()

    def ctl(self, *arguments):
        """Runs resourcectl, which must succeed, and returns its output."""
        command = [self._programs / "resourcectl", "--uri", self.uri, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end(signal.SIGKILL)
        self._directory.cleanup()


sys.dont_write_bytecode = True  # do not write into the source tree
sys.path.insert(0, str(SOURCE / "client/python"))
need("zmq", "python3-zmq")
