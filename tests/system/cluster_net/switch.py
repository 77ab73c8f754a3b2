"""A switch between the hosts of a test, as a process of its own, so that other work does not delay packets.

Arguments are DESCRIPTOR=ADDRESS for each tun device. Standard input has commands, one a line, each a JSON object:
`from` and `to`, lists of addresses, and the faults of that direction: `cut`, `delay` in seconds, `loss` from 0 to 1;
those that are left out are none. Each is answered with an empty line once it holds.
"""

import json
import os
import pathlib
import sys

sys.dont_write_bytecode = True  # do not write into the source tree
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "netns"))
from wire import Faults, Relay  # noqa: E402

DESTINATION = slice(16, 20)


class Switch(Relay):
    def __init__(self, devices):
        super().__init__(0)
        self._device_of = {address: device for device, address in devices.items()}
        self._faults = {(device, to): Faults() for device in devices for to in self._device_of}
        self._text = b""

    def route(self, device, packet):
        to = packet[DESTINATION]
        faults = self._faults.get((device, to)) if packet[0] >> 4 == 4 else None
        return faults and (self._device_of[to], faults)

    def obey(self):
        data = os.read(0, 65536)
        *lines, self._text = (self._text + data).split(b"\n")
        for line in lines:
            command = json.loads(line)
            for device in map(self._device_of.get, map(packed, command["from"])):
                for to in map(packed, command["to"]):
                    faults = self._faults[device, to]
                    faults.cut = command.get("cut", False)
                    faults.delay, faults.loss = command.get("delay", 0.0), command.get("loss", 0.0)
            os.write(1, b"\n")
        return bool(data)


def packed(address):
    return bytes(map(int, address.split(".")))


if __name__ == "__main__":
    pairs = [argument.split("=") for argument in sys.argv[1:]]
    of_devices = {int(device): packed(address) for device, address in pairs}
    switch = Switch(of_devices)
    switch.carry(of_devices, 0, switch.obey)
