"""Hosts in network namespaces, with a switch between them (switch.py) that makes faults on the way from one host to
another."""

import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "netns"))
from wire import Namespace  # noqa: E402


class Network:
    def __init__(self, names):
        self._hosts = {name: Namespace() for name in names}
        self.address = {name: f"10.78.0.{number}" for number, name in enumerate(names, 1)}
        devices = [host.tun("net", f"{self.address[name]}/24") for name, host in self._hosts.items()]
        for host in self._hosts.values():
            # One packet for each message, as the switch, a Python program, carries few packets.
            host.ip("link", "set", "net", "mtu", "65000")
        pairs = [f"{device}={self.address[name]}" for device, name in zip(devices, names)]
        self._switch = subprocess.Popen([sys.executable, HERE / "switch.py", *pairs], pass_fds=devices, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def start(self, host, command, **options):
        return self._hosts[host].start(command, **options)

    def between(self, some, others, both=True, **faults):
        """Applies these faults to packets from `some` hosts to `others` from now on, and with `both` to those in
        return."""
        ways = [(some, others), (others, some)] if both else [(some, others)]
        for sources, targets in ways:
            command = {"from": [self.address[name] for name in sources],
                       "to": [self.address[name] for name in targets], **faults}
            self._switch.stdin.write(json.dumps(command) + "\n")
            self._switch.stdin.flush()
            self._switch.stdout.readline()

    def mend(self):
        self.between(self._hosts, self._hosts, both=False)

    def end(self):
        self._switch.stdin.close()
        self._switch.wait()
