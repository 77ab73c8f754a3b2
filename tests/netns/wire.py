"""Network namespaces, and wires between them that lose, delay and cut packets on purpose.

A wire is a pair of tun devices, one in each namespace, and a thread that carries packets from one to the other. It
needs root and /dev/net/tun, but not netem, which many kernels lack. Namespaces have no names, so they end with the
processes that use them, even if the test is killed.
"""

import ctypes
import fcntl
import heapq
import os
import random
import selectors
import signal
import struct
import subprocess
import threading
import time

CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000

libc = ctypes.CDLL(None, use_errno=True)


def call(function, *arguments):
    if function(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function.__name__}: {os.strerror(number)}")


class Namespace:
    """A network namespace, which lasts as long as this object or a process in it."""

    def __init__(self):
        with open("/proc/self/ns/net") as here:
            call(libc.unshare, CLONE_NEWNET)
            try:
                self.fd = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            finally:
                call(libc.setns, here.fileno(), CLONE_NEWNET)
        self.ip("link", "set", "lo", "up")

    def enter(self):
        call(libc.setns, self.fd, CLONE_NEWNET)

    def start(self, command, **options):
        """A process in this namespace, that ends with the test."""

        def prepare():
            self.enter()
            call(libc.prctl, PR_SET_PDEATHSIG, signal.SIGKILL)

        return subprocess.Popen(command, preexec_fn=prepare, **options)

    def ip(self, *arguments):
        if self.start(["ip", *arguments]).wait() != 0:
            raise OSError(f"ip {' '.join(arguments)} failed")

    def tun(self, name, address, peer):
        """The descriptor of a point-to-point device; packets are read from it and written to it."""
        with open("/proc/self/ns/net") as here:
            self.enter()
            try:
                fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
                fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
            finally:
                call(libc.setns, here.fileno(), CLONE_NEWNET)
        self.ip("address", "add", address, "peer", peer, "dev", name)
        self.ip("link", "set", name, "up")
        return fd


class Wire:
    """Between a hub and a node, 10.77.NUMBER.1 and 10.77.NUMBER.2. Its faults may change at any time."""

    def __init__(self, hub, node, number):
        self.hub_address, self.node_address = f"10.77.{number}.1", f"10.77.{number}.2"
        self.cut = False
        self.loss = 0.0
        self.delay = 0.0
        """When a packet of the node first arrived at the hub since this was last None."""
        self.heard_at = None
        self.carried = self.lost = 0
        self._hub = hub.tun(f"node{number}", self.hub_address, self.node_address)
        self._node = node.tun("uplink", self.node_address, self.hub_address)
        # Each run loses the same packets, if it sends the same packets.
        self._random = random.Random(number)
        threading.Thread(target=self._carry, daemon=True).start()

    def cut_off(self):
        self.cut = True

    def mend(self):
        self.heard_at = None
        self.cut = False

    def _carry(self):
        under_way = []
        waiting = selectors.DefaultSelector()
        waiting.register(self._hub, selectors.EVENT_READ, self._node)
        waiting.register(self._node, selectors.EVENT_READ, self._hub)
        count = 0
        while True:
            patience = max(0, under_way[0][0] - time.monotonic()) if under_way else None
            for key, _ in waiting.select(patience):
                packet = os.read(key.fd, 65536)
                if self.cut or self._random.random() < self.loss:
                    self.lost += 1
                    continue
                count += 1
                heapq.heappush(under_way, (time.monotonic() + self.delay, count, key.data, packet))
            while under_way and under_way[0][0] <= time.monotonic():
                _, _, to, packet = heapq.heappop(under_way)
                # Packets that were in transit when the wire was cut are lost too.
                if self.cut:
                    self.lost += 1
                    continue
                self.carried += 1
                if to == self._hub and self.heard_at is None:
                    self.heard_at = time.monotonic()
                try:
                    os.write(to, packet)
                except OSError:
                    self.lost += 1
