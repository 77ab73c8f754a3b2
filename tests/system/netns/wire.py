"""Network namespaces, and wires between them that lose, delay and cut packets on purpose.

A wire is a pair of tun devices, one in each namespace, and a thread that carries packets from one to the other. It
needs root and /dev/net/tun, but not netem, which many kernels lack. Namespaces have no names, so they end with the
processes that use them, even if the test is killed.
"""

import ctypes
import errno
import fcntl
import heapq
import os
import random
import selectors
import signal
import socket
import struct
import subprocess
import threading
import time

PATIENCE = 120
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
    """A network namespace, which exists as long as this object or a process in it."""

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
        """Starts a process in this namespace, which ends with the test."""

        def prepare():
            self.enter()
            call(libc.prctl, PR_SET_PDEATHSIG, signal.SIGKILL)

        return subprocess.Popen(command, preexec_fn=prepare, **options)

    def ip(self, *arguments):
        if self.start(["ip", *arguments]).wait() != 0:
            raise OSError(f"ip {' '.join(arguments)} failed")

    def tun(self, name, *address):
        """Makes a device with this address; packets are read from and written to the returned descriptor."""
        with open("/proc/self/ns/net") as here:
            self.enter()
            try:
                fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
                fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
            finally:
                call(libc.setns, here.fileno(), CLONE_NEWNET)
        self.ip("address", "add", *address, "dev", name)
        self.ip("link", "set", name, "up")
        return fd


def has_data(packet):
    """Whether this is an IPv4 packet of TCP with data."""
    headers = (packet[0] & 15) * 4
    if packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
        return False
    return len(packet) > headers + (packet[headers + 12] >> 4) * 4


class Faults:
    """The faults of packets on their way. They may be changed at any time."""

    def __init__(self):
        self.cut = False
        self.loss = 0.0
        self.delay = 0.0
        self.carried = self.lost = 0


class Relay:
    """Carries packets between tun devices."""

    def __init__(self, seed):
        # The seed makes each run lose the same packets, if the same ones are sent.
        self._random = random.Random(seed)
        self._under_way = []
        self._count = 0

    def route(self, device, packet):
        """The device to which a packet from `device` goes, and the faults on its way; None for nowhere."""
        raise NotImplementedError

    def arrived(self, device):
        """Called when a packet has arrived at this device."""

    def carry(self, devices, control=None, obey=None):
        """Carries packets until `obey`, which is called when `control` is readable, returns False."""
        waiting = selectors.DefaultSelector()
        for device in filter(lambda one: one is not None, [*devices, control]):
            waiting.register(device, selectors.EVENT_READ)
        while True:
            patience = max(0, self._under_way[0][0] - time.monotonic()) if self._under_way else None
            for key, _ in waiting.select(patience):
                if key.fd != control:
                    self._take(key.fd, os.read(key.fd, 65536))
                elif not obey():
                    return
            while self._under_way and self._under_way[0][0] <= time.monotonic():
                _, _, to, packet, faults = heapq.heappop(self._under_way)
                self._deliver(to, packet, faults)

    def _take(self, device, packet):
        way = self.route(device, packet)
        if way is None:
            return
        to, faults = way
        if faults.cut or self._random.random() < faults.loss:
            faults.lost += 1
            return
        self._count += 1
        heapq.heappush(self._under_way, (time.monotonic() + faults.delay, self._count, to, packet, faults))

    def _deliver(self, to, packet, faults):
        # Packets in transit when the way is cut are lost, too.
        if faults.cut:
            faults.lost += 1
            return
        faults.carried += 1
        self.arrived(to)
        try:
            os.write(to, packet)
        except OSError:
            faults.lost += 1


class Wire(Relay, Faults):
    """A wire between a hub, 10.77.NUMBER.1, and a node, 10.77.NUMBER.2."""

    def __init__(self, hub, node, number):
        Relay.__init__(self, number)
        Faults.__init__(self)
        self.hub_address, self.node_address = f"10.77.{number}.1", f"10.77.{number}.2"
        """The time at which a packet of the node first arrived at the hub after this was set to None."""
        self.heard_at = None
        self._cuts_at_data, self._data_lost = False, threading.Event()
        self._hub = hub.tun(f"node{number}", self.hub_address, "peer", self.node_address)
        self._node = node.tun("uplink", self.node_address, "peer", self.hub_address)
        threading.Thread(target=self.carry, args=([self._hub, self._node],), daemon=True).start()

    def cut_off(self):
        self.cut = True

    def cut_off_at_data(self):
        """Cuts the wire at the next data that the hub sends. As they are not acknowledged, the hub sends them again for
        minutes, and no keepalives meanwhile."""
        self._cuts_at_data = True
        if not self._data_lost.wait(PATIENCE):
            raise OSError(errno.ETIMEDOUT, "the hub has sent nothing")

    def mend(self):
        self.heard_at = None
        self.cut = False

    def route(self, device, packet):
        if self._cuts_at_data and device == self._hub and has_data(packet):
            self.cut, self._cuts_at_data = True, False
            self._data_lost.set()
        return self._node if device == self._hub else self._hub, self

    def arrived(self, device):
        if device == self._hub and self.heard_at is None:
            self.heard_at = time.monotonic()
