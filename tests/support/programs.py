"""A daemon of this build for tests, in a directory of its own."""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

PATIENCE = 30  # seconds

# The packaged inventory, whose hosts are named by the examples in help texts and manual pages.
INVENTORY = """[[resource.config]]
hosts = "node[0-7]"
cores = "0-3"
[[resource.config]]
hosts = "node[0-5]"
properties = ["batch"]
[[resource.config]]
hosts = "node[6-7]"
gpus = "0-1"
properties = ["gpu", "debug"]
"""


def find_flux():
    """The path of the real Flux's program, or None. A named place without the program is an error."""
    named = os.environ.get("RESOURCED_FLUX")
    if not named:
        return shutil.which("flux")
    for candidate in (named, f"{named}/src/cmd/flux", f"{named}/bin/flux"):
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return os.path.abspath(candidate)
    sys.exit(f"RESOURCED_FLUX={named}: no program flux there, in src/cmd or in bin")


class Daemon:
    """A daemon that listens once it is constructed; a standby may do so later."""

    def __init__(self, programs, configuration=INVENTORY, listens=True):
        self.programs = pathlib.Path(programs).resolve()
        self.directory = tempfile.TemporaryDirectory(prefix="resourced-")
        self.path = pathlib.Path(self.directory.name)
        (self.path / "resourced.toml").write_text(configuration, "utf-8")
        self.uri = f"ipc://{self.path}/bus"
        self.local = self.path / "local"  # the socket for clients of Flux
        with open(self.path / "log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [self.programs / "resourced", "--config", self.path / "resourced.toml"]
                + ["--state", self.path / "state", "--listen", self.uri, "--listen", f"local://{self.local}"],
                stdout=subprocess.PIPE, stderr=log, text=True)
        if listens and not self.process.stdout.readline().startswith("listening on"):
            raise RuntimeError((self.path / "log").read_text("utf-8"))

    def ctl(self, *arguments):
        command = [self.programs / "resourcectl", "--uri", self.uri, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout

    def lose_drained(self, host):
        """Loads an R with a further host, drains the host, and loads the former R: the drain waits for the host."""
        former, further = self.path / "former.json", self.path / "further.json"
        former.write_text(self.ctl("R", "show"), "utf-8")
        resources = json.loads(former.read_text("utf-8"))
        execution = resources["execution"]
        execution["R_lite"].append({"rank": "100000", "children": {"core": "0"}})
        execution["nodelist"].append(host)
        further.write_text(json.dumps(resources), "utf-8")
        self.ctl("reload", "--force", further)
        self.ctl("drain", host)
        self.ctl("reload", former)

    def stop(self):
        self.process.kill()
        self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.directory.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Etcd:
    """An etcd of one member, with a directory for its data."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="resourced-")
        path = pathlib.Path(self.directory.name)
        # Chooses two free ports, as etcd cannot choose them.
        with socket.socket() as client, socket.socket() as peer:
            for one in (client, peer):
                one.bind(("127.0.0.1", 0))
            self.url, peers = (f"http://127.0.0.1:{one.getsockname()[1]}" for one in (client, peer))
        with open(path / "log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["etcd", "--data-dir", path / "data", "--listen-client-urls", self.url, "--advertise-client-urls",
                 self.url, "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
                 "--initial-cluster", f"default={peers}"], stdout=log, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(PATIENCE)
        self.directory.cleanup()


class Cluster:
    """Two daemons with their log in etcd; the first one leads."""

    def __init__(self, programs):
        with contextlib.ExitStack() as stack:
            etcd = stack.enter_context(Etcd())
            leader = stack.enter_context(Daemon(programs, self.configuration(etcd, "mgmt1")))
            standby = stack.enter_context(Daemon(programs, self.configuration(etcd, "mgmt2"), listens=False))
            self.uri = f"{leader.uri},{standby.uri}"
            while leader.ctl("cluster", "show", "--json").count("\n") < 2:
                pass
            self.stack = stack.pop_all()

    @staticmethod
    def configuration(etcd, name):
        return f'{INVENTORY}[cluster]\netcd = ["{etcd.url}"]\nname = "{name}"\n'

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()
