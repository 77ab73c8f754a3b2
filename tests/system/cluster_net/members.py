"""The programs of a cluster, each on a host of the network: members of etcd, daemons and node agents."""

import base64
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

ETCD, ETCDCTL = "/usr/bin/etcd", "/usr/bin/etcdctl"
PREFIX = "/resourced/"
PORT = 7481
LEASE_TTL = 2
HOSTS = 8
AGENTS = range(6)
PARTITIONS = {"": range(3), "night": range(3, 5), "day": range(5, 8)}


class Failure(Exception):
    pass


def until(reached, what, patience=120):
    """Waits for a condition of a program by asking it repeatedly, if it gives no other sign."""
    deadline = time.monotonic() + patience
    while not (result := reached()):
        if time.monotonic() > deadline:
            raise Failure(f"waited in vain until {what}")
        time.sleep(0.02)
    return result


def unpacked(text):
    """The lines of a batch, decompressed."""
    import lz4.block  # imported here, as the check first looks whether it is installed

    if not text.startswith(b"lz4 "):
        return text
    size, _, block = text.removeprefix(b"lz4 ").partition(b"\n")
    return lz4.block.decompress(block, uncompressed_size=int(size))


class Disk:
    """A file system in memory that can be filled."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.mkdir()
        self._mount("-t", "tmpfs", "-o", "size=1g", "tmpfs")

    def fill(self):
        """Shrinks the file system to what it holds now."""
        while True:
            state = os.statvfs(self.path)
            used = (state.f_blocks - state.f_bfree) * state.f_frsize
            command = ["mount", "-o", f"remount,size={used}", self.path]
            if subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0:
                return

    def make_room(self):
        self._mount("-o", "remount,size=1g")

    def _mount(self, *arguments):
        subprocess.run(["mount", *arguments, self.path], check=True)


class Program:
    """A process on a host; it is always started with the same arguments."""

    def __init__(self, network, host, directory, name):
        self.network, self.host, self.name, self.directory = network, host, name, pathlib.Path(directory)
        self.process = None

    def command(self):
        raise NotImplementedError

    def environment(self):
        return {}

    def start(self):
        assert not self.runs()
        with self.log_file.open("a") as log:
            self.process = self.network.start(self.host, self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                              stderr=log, env=os.environ | self.environment())

    @property
    def log_file(self):
        return self.directory / f"{self.name}.log"

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def until_ended(self):
        return until(lambda: not self.runs(), f"{self.name} ends") and self.process.returncode


class EtcdMember(Program):
    def __init__(self, network, directory, name, names):
        super().__init__(network, name, directory, name)
        self.disk = Disk(self.directory / name)
        peers = ",".join(f"{one}=http://{network.address[one]}:2380" for one in names)
        client, peer = (f"http://{network.address[name]}:{port}" for port in (2379, 2380))
        self._command = [ETCD, "--name", name, "--data-dir", self.disk.path / "data", "--log-level", "error",
                         "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
                         "--initial-advertise-peer-urls", peer, "--initial-cluster", peers]

    def command(self):
        return self._command

    def environment(self):
        return {"ETCDCTL_API": "3"}


class Etcd:
    """Three members of etcd, and requests to them from an operator's host."""

    def __init__(self, network, directory, names, operator):
        self.network, self.operator = network, operator
        self.members = [EtcdMember(network, directory, name, names) for name in names]
        for member in self.members:
            member.start()
        for member in self.members:
            self.until_serving(member)

    def urls(self):
        return [f"http://{self.network.address[member.host]}:2379" for member in self.members]

    def _control(self, urls, *arguments):
        process = self.network.start(
            self.operator, [ETCDCTL, "--endpoints", ",".join(urls), "--dial-timeout", "2s", "--command-timeout", "4s",
                            "-w", "json", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ | {"ETCDCTL_API": "3"})
        output = process.communicate()[0]
        return json.loads(output) if process.returncode == 0 else None

    def ask(self, *arguments):
        return until(lambda: self._control(self.urls(), *arguments), f"etcd answers {arguments}")

    def until_serving(self, member):
        url = f"http://{self.network.address[member.host]}:2379"
        until(lambda: self._control([url], "get", "none"), f"{member.name} serves")

    def leader(self):
        """The member that leads etcd."""
        for one in self.ask("endpoint", "status"):
            status = one["Status"]
            if status["leader"] == status["header"]["member_id"]:
                url = one["Endpoint"]
                return self.members[self.urls().index(url)]
        return self.members[0]

    def head(self):
        found = self.ask("get", PREFIX + "head").get("kvs", [])
        return int(base64.b64decode(found[0]["value"])) if found else 0

    def log(self, after):
        """The batches after an event, each as (last sequence, header, records)."""
        pages = self.ask("get", f"{PREFIX}log/{after + 1:020}", f"{PREFIX}log0").get("kvs", [])
        for entry in pages:
            last = int(base64.b64decode(entry["key"]).decode().rpartition("/")[2])
            header, _, text = base64.b64decode(entry["value"]).partition(b"\n")
            yield last, json.loads(header), [json.loads(line) for line in unpacked(text).decode().splitlines()]


class Daemon(Program):
    def __init__(self, network, directory, name, binaries, clock_library, etcd, server_key, keys):
        super().__init__(network, name, directory, name)
        self.binaries, self.clock_library = binaries, clock_library
        self.disk = Disk(self.directory / name)
        self.uri = f"tcp://{network.address[name]}:{PORT}"
        self.clock = self.directory / f"{name}.clock"
        self.set_clock(0)
        self.config = self.directory / f"{name}.toml"
        partitions = "".join(f'[[acquire.partition]]\nname = "{part}"\ntargets = "{ranks[0]}-{ranks[-1]}"\n'
                             for part, ranks in PARTITIONS.items() if part)
        self.config.write_text(
            f'[[resource.config]]\nhosts = "n[0-{HOSTS - 1}]"\ncores = "0-3"\n'
            f'[bus]\nlisten = ["{self.uri}"]\ncurve-key-file = "{server_key}"\n'
            f'heartbeat-interval = "1s"\nheartbeat-timeout = "3s"\n'
            f'[store]\ndirectory = "{self.disk.path / "state"}"\n'
            f'[monitor]\nmode = "agents"\ncoalesce = "0.1s"\ngrace = "2s"\nflap-count = 0\n'
            f'[cluster]\nname = "{name}"\nlease-ttl = "{LEASE_TTL}s"\nadvertise = "{self.uri}"\n'
            f'etcd = {json.dumps(etcd.urls())}\n{partitions}{keys}')

    def command(self):
        return [self.binaries / "resourced", "--config", self.config]

    def environment(self):
        return {"LD_PRELOAD": str(self.clock_library), "SHIFTED_CLOCK": str(self.clock)}

    @property
    def store(self):
        return self.disk.path / "state" / "resourced.sqlite"

    def set_clock(self, hours):
        """Shifts the wall clock of this daemon by so many hours."""
        with self.clock.open("r+b" if self.clock.exists() else "wb") as file:
            file.write((hours * 3600 * 10**9).to_bytes(8, sys.byteorder, signed=True))


class Agent(Program):
    def __init__(self, network, host, directory, rank, binaries, uris, key):
        super().__init__(network, host, directory, f"agent{rank}")
        self._command = [binaries / "resource-agent", "--uri", uris, "--key", key, "--hostname", f"n{rank}",
                         "--synthetic", "package:1 core:4 pu:1"]

    def command(self):
        return self._command
